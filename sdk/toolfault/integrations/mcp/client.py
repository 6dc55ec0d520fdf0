"""The client of the MCP SDK: each request of a tool is one call, that of the model."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from toolfault.integrations._discover import improves
from toolfault.integrations.mcp.meta import KEY, sink, told
from toolfault.integrations.mcp.results import answered, is_error, refused, with_parts
from toolfault.integrations.mcp.tools import idempotent, schema_of
from toolfault.integrations.seen import Call, Seen, note, note_answer
from toolfault.telemetry._conversations import current_scope
from toolfault.telemetry._guard import debug
from toolfault.tools import running_call

__all__ = ["client_calls", "lists"]

_LISTED = (
    "_toolfault_listed"  # on a client's session: schema and mark of the tools it listed, by name
)


async def client_calls(
    original: Any, session: Any, name: str, arguments: Any = None, *args: Any, **kwargs: Any
) -> Any:
    """Observe ``ClientSession.call_tool``, through which every Python client of MCP calls.

    Inside the call of a framework's tool that stands for this one, the request belongs to that
    call: it carries its ids and has no event of its own. What another tool requests is reported by
    the server alone, so it is not told that anybody else does.
    """
    takes_meta = "meta" in (getattr(original, "__kwdefaults__", None) or {})
    around = running_call()
    stands = around is not None and _stands_for(around.tool, name)
    join = _join(None if around is None else around.call_id, reports=around is None or stands)
    given = kwargs.get("meta")
    if takes_meta and sink() is not None and (given is None or isinstance(given, Mapping)):
        kwargs["meta"] = {**(given or {}), KEY: join}
    if around is not None:
        if stands:
            note(idempotent=_listed(session, name)[1])
        result = await original(session, name, arguments, *args, **kwargs)
        if stands:
            note_answer(lambda: is_error(result), lambda seen: answered(seen, result))
        return result
    with Call(lambda: _called(session, name, arguments, join["call"]), refused=refused) as call:
        result = await original(session, name, arguments, *args, **kwargs)
        improve = improves("mcp") and not told(result).get("improved")
        return with_parts(result, call.ended(lambda seen: answered(seen, result), improve=improve))


async def lists(original: Any, session: Any, *args: Any, **kwargs: Any) -> Any:
    """Keep what is to be known of the tools that a client lists."""
    result = await original(session, *args, **kwargs)
    try:
        known = vars(session).setdefault(_LISTED, {})
        known.update((tool.name, (schema_of(tool), idempotent(tool))) for tool in result.tools)
    except Exception:  # noqa: BLE001 - a result of an unusual form
        debug("a list of tools could not be read")
    return result


def _called(session: Any, name: str, arguments: Any, call_id: str) -> Seen:
    schema, mark = _listed(session, name)
    return Seen(
        "mcp",
        name,
        call_id=call_id,
        arguments=arguments or {},
        schema=schema,
        idempotent=mark,
        known_tools=tuple(vars(session).get(_LISTED, ())),
    )


def _listed(session: Any, name: str) -> tuple[Any, bool | None]:
    """Return the schema of a tool and whether it is idempotent, as far as they are known."""
    known: tuple[Any, bool | None] = vars(session).get(_LISTED, {}).get(name, (None, None))
    return known


def _stands_for(tool: str, name: Any) -> bool:
    """Say whether a framework's *tool* is the server's *name*, or that behind a prefix."""
    if not isinstance(name, str) or not name or not tool.endswith(name):
        return False
    return not tool[: -len(name)][-1:].isalnum()


def _join(call_id: str | None, *, reports: bool) -> dict[str, str]:
    """Return what a server is told of the call: where it is reported only if it is, here."""
    told = {"call": call_id or secrets.token_hex(8)}
    scope, where = current_scope(), sink() if reports else None
    if scope is not None:
        told["conversation"] = scope.conversation.id
        if scope.turn is not None:
            told["turn"] = scope.turn
    if where is not None:
        told["sink"] = where
    return told
