"""Where a server of the MCP SDK keeps what answers ``tools/call``, in 1.x and in 2.x."""

from __future__ import annotations

import functools
from typing import Any

from toolfault.integrations._discover import around
from toolfault.integrations.mcp.server import requested, served
from toolfault.integrations.mcp.tools import idempotent, schema_of
from toolfault.integrations.seen import note

__all__ = ["finds_handler", "handles", "registers"]


def finds_handler(original: Any, server: Any, method: str) -> Any:
    """Observe the handler of ``tools/call`` that a server of 2.x finds for a request."""
    entry = original(server, method)
    if method != "tools/call" or entry is None:
        return entry

    async def handler(ctx: Any, params: Any) -> Any:
        build = functools.partial(requested, params, ctx.meta)
        return await served(build, lambda: entry.handler(ctx, params))

    return type(entry)(entry.params_type, handler)


async def handles(kind: Any, original: Any, server: Any, *args: Any, **kwargs: Any) -> Any:
    """Observe the handler of ``tools/call`` that a server of 1.x has when a request comes."""
    handler = server.request_handlers.get(kind)
    if handler is not None and not hasattr(handler, "__toolfault__"):
        server.request_handlers[kind] = _observed(server, handler)
    return await original(server, *args, **kwargs)


def registers(original: Any, server: Any, *args: Any, **kwargs: Any) -> Any:
    """Observe the function that an application registers in 1.x, for what it raises."""
    decorator = original(server, *args, **kwargs)

    def noting(function: Any) -> Any:
        decorator(around(function, _notes_error))
        return function

    return noting


def _observed(server: Any, handler: Any) -> Any:
    async def observed(request: Any) -> Any:
        async def run() -> Any:
            result = await handler(request)
            listed = getattr(server, "_tool_cache", {})  # from 1.10 on
            tool = listed.get(request.params.name)
            note(
                schema=schema_of(tool),
                known_tools=tuple(listed),
                idempotent=idempotent(tool),
            )
            return result

        meta = getattr(getattr(request.params, "meta", None), "model_extra", None)
        return await served(functools.partial(requested, request.params, meta), run)

    observed.__toolfault__ = True  # type: ignore[attr-defined]
    return observed


async def _notes_error(original: Any, *args: Any, **kwargs: Any) -> Any:
    """Note the exception of the application's handler, of which the SDK keeps the text."""
    try:
        return await original(*args, **kwargs)
    except Exception as error:
        note(error=error)
        raise
