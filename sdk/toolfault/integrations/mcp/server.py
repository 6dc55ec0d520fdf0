"""The server of the MCP SDK, high-level and low-level: it reports a call, or tells its client."""

from __future__ import annotations

import functools
import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from toolfault.integrations._discover import improves
from toolfault.integrations.mcp.results import (
    KEY,
    PARTS,
    answered,
    idempotent,
    mapping,
    refused,
    schema_of,
    sink,
    with_parts,
)
from toolfault.integrations.seen import Call, Seen, note

__all__ = ["finds_handler", "handles", "registers", "requested"]

_LONGEST_ID = 128
_SINK = re.compile(r"[0-9a-f]{16}", re.ASCII)
_MOST_SINKS = 50  # of a process: whoever invents others makes no counter of their own
_sinks: set[str] = set()


def finds_handler(original: Any) -> Any:
    """Observe the handler of ``tools/call`` that a server of 2.x finds for a request."""

    @functools.wraps(original)
    def get_request_handler(self: Any, method: str) -> Any:
        entry = original(self, method)
        if method != "tools/call" or entry is None:
            return entry

        async def handler(ctx: Any, params: Any) -> Any:
            build = functools.partial(requested, params, ctx.meta)
            return await _served(build, lambda: entry.handler(ctx, params))

        return type(entry)(entry.params_type, handler)

    return get_request_handler


def handles(original: Any, kind: Any) -> Any:
    """Observe the handler of ``tools/call`` that a server of 1.x has when a request comes."""

    @functools.wraps(original)
    async def _handle_request(self: Any, *args: Any, **kwargs: Any) -> Any:
        handler = self.request_handlers.get(kind)
        if handler is not None and not hasattr(handler, "__toolfault__"):
            self.request_handlers[kind] = _observed(self, handler)
        return await original(self, *args, **kwargs)

    return _handle_request


def registers(original: Any) -> Any:
    """Observe the function that an application registers in 1.x, for what it raises."""

    @functools.wraps(original)
    def call_tool(self: Any, *args: Any, **kwargs: Any) -> Any:
        decorator = original(self, *args, **kwargs)

        def noting(function: Any) -> Any:
            decorator(_noting_errors(function))
            return function

        return noting

    return call_tool


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
        return await _served(functools.partial(requested, request.params, meta), run)

    observed.__toolfault__ = True  # type: ignore[attr-defined]
    return observed


def _noting_errors(function: Any) -> Any:
    """Return the application's handler, noting the exception of which the SDK keeps the text."""

    @functools.wraps(function)
    async def noting(*args: Any, **kwargs: Any) -> Any:
        try:
            return await function(*args, **kwargs)
        except Exception as error:
            note(error=error)
            raise

    return noting


def requested(params: Any, meta: Any) -> Seen:
    """Return what a request says of the call before the tool runs."""
    carried = mapping(meta)
    join = mapping(carried.get(KEY))
    ours = sink()
    theirs = _sink_of(join.get("sink"))
    own = ours is not None and theirs == ours
    session = join.get("conversation") or carried.get("openai/session")
    return Seen(
        "mcp",
        params.name,
        side="server",
        # Ids of requests begin anew with each client; of our own sink, the client has reported.
        call_id=None if own else _id(join.get("call")) or secrets.token_hex(8),
        turn=_id(join.get("turn")),
        conversation=_id(session),
        rung="meta",
        arguments=params.arguments or {},
        counted_by=theirs,
        reports=not own,
    )


async def _served(build: Callable[[], Seen], run: Callable[[], Awaitable[Any]]) -> Any:
    """Run the handler of a request and report the call, or tell the client what it was."""
    with Call(build, refused=refused) as call:
        result = await run()
        answer = getattr(result, "root", result)  # 1.x wraps what it answers in a ServerResult
        text = call.ended(lambda seen: answered(seen, answer), improve=improves("mcp"))
        better = with_parts(answer, text, _description(call, improved=text is not None))
    if better is answer:
        return result
    return better if answer is result else type(result)(better)


def _description(call: Call, *, improved: bool) -> dict[str, Any] | None:
    """Return what a client of the same sink needs to know of a failure: no values."""
    if call.error is None or call.seen is None or call.seen.reports:
        return None
    issues = [
        {part: str(value) for part in PARTS if (value := getattr(issue, part))}
        for issue in call.error.issues
    ]
    code, category = str(call.error.code), str(call.error.category)
    return {"code": code, "category": category, "issues": issues, "improved": improved}


def _id(value: object) -> str | None:
    """Return an id that a peer sent, if it is one."""
    return value if isinstance(value, str) and 0 < len(value) <= _LONGEST_ID else None


def _sink_of(value: object) -> str | None:
    """Return where a peer says that it reports, if it says so; counters are kept by it."""
    if not isinstance(value, str) or _SINK.fullmatch(value) is None:
        return None
    if value not in _sinks and len(_sinks) < _MOST_SINKS:
        _sinks.add(value)
    return value if value in _sinks else None
