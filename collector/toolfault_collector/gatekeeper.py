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
from toolfault_collector.keys import ApiKey, authenticate, is_well_formed
from toolfault_collector.problems import Problem

__all__ = ["Gatekeeper"]

# A revoked key is refused after this long at the latest, in every process; the promise is 5 s.
REMEMBER_SECONDS: Final = 2.0
MAX_REMEMBERED: Final = 1_024

_Remembered = dict[bytes, tuple[float, ApiKey | None]]


class Gatekeeper:
    """Checks the bearer keys of requests against *engine*."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # Apart, so that a stranger who invents keys drives no real one out.
        self._known: _Remembered = {}
        self._unknown: _Remembered = {}

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
        self._unknown.clear()

    async def _find(self, token: str) -> ApiKey | None:
        # Threads and connections are shared with the pages: what is no key costs neither.
        if not is_well_formed(token):
            return None
        digest = hashlib.sha256(token.encode()).digest()
        for remembered in (self._known, self._unknown):
            until, key = remembered.get(digest, (0.0, None))
            if until > time.monotonic():
                return key
        key = await run_in_threadpool(self._look_up, token)
        remembered, other = self._known, self._unknown
        if key is None:
            remembered, other = other, remembered
        if len(remembered) >= MAX_REMEMBERED:
            remembered.clear()
        other.pop(digest, None)
        remembered[digest] = (time.monotonic() + REMEMBER_SECONDS, key)
        return key

    def _look_up(self, token: str) -> ApiKey | None:
        with read_connection(self._engine) as conn:
            return authenticate(conn, token)


_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="toolfault"'}


def _unauthorized() -> Problem:
    detail = "send a valid key: Authorization: Bearer tf_ingest_..."
    return Problem(401, "unauthorized", detail, _CHALLENGE)
