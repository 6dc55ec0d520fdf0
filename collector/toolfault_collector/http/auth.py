"""Who may send: a request carries a valid key of the right kind in its Authorization header."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.types import Scope

from toolfault_collector.admin.keys import ApiKey, KeyCache
from toolfault_collector.http.problems import Problem

__all__ = ["admit"]

_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="toolfault"'}


async def admit(keys: KeyCache, scope: Scope, headers: Headers, *, kind: str) -> ApiKey:
    """Return the key of the request.

    Raises:
        Problem: 401 without a valid key, in the same words whatever is wrong with it; 403 with a
            valid key of another *kind*.
    """
    query = scope.get("query_string", b"").lower()
    if b"key=" in query or b"token=" in query:
        # URLs end up in logs and histories; a key in one is as good as published.
        detail = "send the key in the Authorization header, never in the URL"
        raise Problem(401, "key_in_url", detail, _CHALLENGE)
    scheme, _, token = headers.get("authorization", "").partition(" ")
    key = await keys.find(token.strip()) if scheme.lower() == "bearer" else None
    if key is None:
        detail = f"send a valid key: Authorization: Bearer tf_{kind}_..."
        raise Problem(401, "unauthorized", detail, _CHALLENGE)
    if key.kind != kind:
        detail = f"this key is of kind {key.kind}; a key of kind {kind} is needed here"
        raise Problem(403, "wrong_key_kind", detail)
    return key
