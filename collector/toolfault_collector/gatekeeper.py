"""Who may send: the key of a request, looked up once and remembered for a moment."""

from __future__ import annotations

import hashlib
import time
from typing import Final

from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import Scope

from toolfault_collector.engine import read_connection
from toolfault_collector.keys import ApiKey, authenticate
from toolfault_collector.problems import Problem

__all__ = ["Gatekeeper"]

# A revoked key is refused after this long at the latest, in every process; the promise is 5 s.
REMEMBER_SECONDS: Final = 2.0
MAX_REMEMBERED: Final = 1_024


class Gatekeeper:
    """Checks the bearer keys of requests against *engine*."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[bytes, tuple[float, ApiKey]] = {}

    async def admit(self, scope: Scope, headers: Headers, *, kind: str) -> ApiKey:
        """Return the key of the request.

        Raises:
            Problem: 401 without a valid key, in the same words whatever is wrong with it; 403
                with a valid key of another *kind*.
        """
        query = scope.get("query_string", b"").lower()
        if b"key=" in query or b"token=" in query:
            # URLs end up in logs and histories; a key in one is as good as published.
            detail = "send the key in the Authorization header, never in the URL"
            raise Problem(401, "key_in_url", detail, _CHALLENGE)
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise _unauthorized()
        key = await self._find(token.strip())
        if key is None:
            raise _unauthorized()
        if key.kind != kind:
            detail = f"this key is of kind {key.kind}; a key of kind {kind} is needed here"
            raise Problem(403, "wrong_key_kind", detail)
        return key

    def forget(self) -> None:
        """Look every key up again: one was revoked, in this process."""
        self._known.clear()

    async def _find(self, token: str) -> ApiKey | None:
        digest = hashlib.sha256(token.encode()).digest()
        until, key = self._known.get(digest, (0.0, None))
        if key is not None and until > time.monotonic():
            return key
        key = await run_in_threadpool(self._look_up, token)
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        if key is None:
            self._known.pop(digest, None)
        else:
            self._known[digest] = (time.monotonic() + REMEMBER_SECONDS, key)
        return key

    def _look_up(self, token: str) -> ApiKey | None:
        with read_connection(self._engine) as conn:
            return authenticate(conn, token)


_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="toolfault"'}


def _unauthorized() -> Problem:
    detail = "send a valid key: Authorization: Bearer tf_ingest_..."
    return Problem(401, "unauthorized", detail, _CHALLENGE)
