"""The server of the MCP SDK, high-level and low-level: it reports a call, or tells its client."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from toolfault.integrations._discover import gives_handles, improves
from toolfault.integrations.mcp.meta import KEY, PARTS, mapping, sink
from toolfault.integrations.mcp.results import answered, refused, with_parts
from toolfault.integrations.seen import Call, Seen

__all__ = ["requested", "served"]

_LONGEST_ID = 128
_SINK = re.compile(r"[0-9a-f]{16}", re.ASCII)
_MOST_SINKS = 50  # of a process: whoever invents others makes no counter of their own
_sinks: set[str] = set()


def requested(params: Any, meta: Any) -> Seen:
    """Return what a request says of the call before the tool runs."""
    carried = mapping(meta)
    join = mapping(carried.get(KEY))
    ours = sink()
    theirs = _sink_of(join.get("sink"))
    own = ours is not None and theirs == ours
    session = _id(join.get("conversation") or carried.get("openai/session"))
    handle = _id(join.get("handle")) if session is None else None
    return Seen(
        "mcp",
        params.name,
        side="server",
        # Ids of requests begin anew with each client; of our own sink, the client has reported.
        call_id=None if own else _id(join.get("call")) or secrets.token_hex(8),
        turn=_id(join.get("turn")),
        conversation=session or handle,
        rung="meta" if handle is None else "handle",
        arguments=params.arguments or {},
        counted_by=theirs,
        reports=not own,
    )


async def served(build: Callable[[], Seen], run: Callable[[], Awaitable[Any]]) -> Any:
    """Run the handler of a request and report the call, or tell the client what it was."""
    with Call(build, refused=refused) as call:
        result = await run()
        answer = getattr(result, "root", result)  # 1.x wraps what it answers in a ServerResult
        text = call.ended(lambda seen: answered(seen, answer), improve=improves("mcp"))
        described = {**_description(call, improved=text is not None), **_handle(call)}
        better = with_parts(answer, text, described)
    if better is answer:
        return result
    return better if answer is result else type(result)(better)


def _handle(call: Call) -> dict[str, str]:
    """Return what a client that names no conversation may send back with its next request.

    The call that it begins with stays without a name: a client that sends nothing back would leave
    a conversation of one call each time.
    """
    seen = call.seen
    if seen is None or not gives_handles("mcp") or (seen.conversation and seen.rung == "meta"):
        return {}
    return {"handle": seen.conversation or secrets.token_hex(8)}


def _description(call: Call, *, improved: bool) -> dict[str, Any]:
    """Return what a client of the same sink needs to know of a failure: no values."""
    if call.error is None or call.seen is None or call.seen.reports:
        return {}
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
