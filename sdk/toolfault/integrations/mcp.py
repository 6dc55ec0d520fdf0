"""MCP SDK, client and server, 1.9 up to 2.x: every ``tools/call`` is one event.

The side nearest the model counts. A client says in ``_meta["toolfault"]`` which call, conversation
and turn a request belongs to and where its own events go (``sink``). A server whose events go to
the same place reports nothing for that call; it answers with the code and the issues in the
``_meta["toolfault"]`` of its result, and the client's event gets them. A server that finds another
sink or none reports the call as ``side=server``. The two sides are never added up.

On the server the request handler is wrapped, where the text that goes to the client is final; the
``ToolManager`` below it only notes what that text no longer tells: exception, schema, known tools.
"""

from __future__ import annotations

import functools
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolfault.integrations._discover import hook, improves
from toolfault.integrations._failure import causes
from toolfault.integrations.seen import Call, Seen, note
from toolfault.telemetry import client
from toolfault.telemetry._conversations import current_scope
from toolfault.telemetry._guard import debug
from toolfault.tools import running_call

__all__ = ["install", "requested"]

_KEY = "toolfault"
# JSON-RPC codes of a request nobody answered in time: MCP 1.x took HTTP's, 2.x has its own.
_TIMEOUTS = (408, -32001)
_HEADER_MISMATCH = -32020  # the client lists the tools anew and asks again
# Results and errors that are not the end of a call: a person is asked, or a task polled, first.
_NOT_THE_END = ("InputRequiredResult", "CreateTaskResult", "UrlElicitationRequiredError")
_LONGEST_ID = 128
_PARTS = ("field", "code", "message", "expected", "received_type")  # of an issue, for the client
_LISTED = "_toolfault_listed"  # on a client's session: schemas of the tools it listed, by name


def install(module: Any) -> None:
    """Hook one module of the SDK: the client's session, the server, or a manager of tools."""
    if module.__name__ == "mcp.client.session":
        hook("mcp", module.ClientSession, "call_tool", _client_calls)
        hook("mcp", module.ClientSession, "list_tools", _lists)
    elif module.__name__ == "mcp.server.lowlevel.server":
        if hasattr(module.Server, "get_request_handler"):
            hook("mcp", module.Server, "get_request_handler", _finds_handler)
        else:
            kind = module.types.CallToolRequest
            hook("mcp", module.Server, "_handle_request", lambda handle: _handles(handle, kind))
            hook("mcp", module.Server, "call_tool", _registers)
    else:
        hook("mcp", module.ToolManager, "call_tool", _manages)


# -- client ------------------------------------------------------------------------------------


def _client_calls(original: Any) -> Any:
    """Observe ``ClientSession.call_tool``, through which every Python client of MCP calls.

    Inside a tool call that is observed already, the request belongs to that call: it carries its
    ids and has no event of its own.
    """
    takes_meta = "meta" in (original.__kwdefaults__ or {})

    @functools.wraps(original)
    async def call_tool(
        self: Any, name: str, arguments: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        around = running_call()
        join = _join(None if around is None else around.call_id)
        given = kwargs.get("meta")
        if takes_meta and "sink" in join and (given is None or isinstance(given, Mapping)):
            kwargs["meta"] = {**(given or {}), _KEY: join}
        if around is not None:
            return await original(self, name, arguments, *args, **kwargs)
        with Call(lambda: _called(self, name, arguments, join["call"])) as call:
            try:
                result = await original(self, name, arguments, *args, **kwargs)
            except BaseException as error:
                call.raised(error, functools.partial(_refused, error=error))
                raise
            improve = improves("mcp") and not _told(result).get("improved")
            return _with(result, call.ended(lambda seen: _answered(seen, result), improve=improve))

    return call_tool


def _lists(original: Any) -> Any:
    """Keep the schemas of the tools that a client lists."""

    @functools.wraps(original)
    async def list_tools(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = await original(self, *args, **kwargs)
        try:
            known = vars(self).setdefault(_LISTED, {})
            known.update((tool.name, _schema(tool)) for tool in result.tools)
        except Exception:  # noqa: BLE001 - a result of an unusual form
            debug("a list of tools could not be read")
        return result

    return list_tools


def _called(session: Any, name: str, arguments: Any, call_id: str) -> Seen:
    listed: dict[str, Any] = vars(session).get(_LISTED, {})
    return Seen(
        "mcp",
        name,
        call_id=call_id,
        arguments=arguments or {},
        schema=listed.get(name),
        known_tools=tuple(listed),
    )


def _schema(tool: Any) -> Any:
    return _member(tool, "input_schema", "inputSchema")


def _join(call_id: str | None) -> dict[str, str]:
    """Return what a server is told of the call."""
    told = {"call": call_id or secrets.token_hex(8)}
    scope, where = current_scope(), _sink()
    if scope is not None:
        told["conversation"] = scope.conversation.id
        if scope.turn is not None:
            told["turn"] = scope.turn
    if where is not None:
        told["sink"] = where
    return told


def _sink() -> str | None:
    running = client()
    return None if running is None else running.sink


def _refused(seen: Seen, *, error: BaseException) -> None:
    """Fill in how a request ended that got an error of the protocol, or no answer."""
    code = getattr(getattr(error, "error", None), "code", None)
    if code in _TIMEOUTS:
        seen.stage = "timeout"
    elif code == _HEADER_MISMATCH or type(error).__name__ in _NOT_THE_END:
        seen.stage = "control"


def _answered(seen: Seen, result: Any) -> None:
    """Fill in what a result tells; what was noted on the way stays."""
    if type(result).__name__ in _NOT_THE_END:
        seen.stage = "control"
    elif _member(result, "is_error", "isError"):
        seen.told = _text(result)
        seen.error = seen.error or _described(seen, result)
        if seen.stage == "ok":
            told = _stage_of_text(seen.tool, seen.told)
            seen.stage = "exec" if told == "returned" and seen.error is not None else told
    else:
        seen.stage, seen.error, seen.result = "ok", None, _value(result)
        text = _text(result)
        if text.startswith("{"):  # it may say that the call failed
            seen.told = text


def _described(seen: Seen, result: Any) -> Any:
    """Return the failure as a server of the same sink describes it, or None."""
    told = _told(result)
    code, issues = told.get("code"), told.get("issues") or ()
    if not isinstance(code, str):
        return None
    from toolfault.errors import Issue, ToolError

    seen.stage = "unknown" if code == "not_available" else "validation" if issues else "exec"
    if not issues:
        return ToolError(seen.tool, seen.told, code, category=told.get("category"))
    named = [Issue(**{part: each.get(part) for part in _PARTS}) for each in issues]
    return ToolError.from_issues(seen.tool, named).with_(kind="validation", phase="validation")


def _told(result: Any) -> dict[str, Any]:
    """Return what the server says of the failure in the metadata of its result."""
    return _mapping(_mapping(getattr(result, "meta", None)).get(_KEY))


# -- server ------------------------------------------------------------------------------------


def _finds_handler(original: Any) -> Any:
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


def _handles(original: Any, kind: Any) -> Any:
    """Observe the handler of ``tools/call`` that a server of 1.x has when a request comes."""

    @functools.wraps(original)
    async def _handle_request(self: Any, *args: Any, **kwargs: Any) -> Any:
        handler = self.request_handlers.get(kind)
        if handler is not None and not hasattr(handler, "__toolfault__"):
            self.request_handlers[kind] = _observed(self, handler)
        return await original(self, *args, **kwargs)

    return _handle_request


def _registers(original: Any) -> Any:
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
            note(schema=_schema(tool), known_tools=tuple(listed))
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
    carried = _mapping(meta)
    join = _mapping(carried.get(_KEY))
    ours = _sink()
    own = ours is not None and join.get("sink") == ours
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
        reports=not own,
    )


async def _served(build: Callable[[], Seen], run: Callable[[], Awaitable[Any]]) -> Any:
    """Run the handler of a request and report the call, or tell the client what it was."""
    with Call(build) as call:
        try:
            result = await run()
        except BaseException as error:
            call.raised(error, functools.partial(_refused, error=error))
            raise
        answer = getattr(result, "root", result)  # 1.x wraps what it answers in a ServerResult
        text = call.ended(lambda seen: _answered(seen, answer), improve=improves("mcp"))
        better = _with(answer, text, _description(call, improved=text is not None))
    if better is answer:
        return result
    return better if answer is result else type(result)(better)


def _description(call: Call, *, improved: bool) -> dict[str, Any] | None:
    """Return what a client of the same sink needs to know of a failure: no values."""
    if call.error is None or call.seen is None or call.seen.reports:
        return None
    issues = [
        {part: str(value) for part in _PARTS if (value := getattr(issue, part))}
        for issue in call.error.issues
    ]
    code, category = str(call.error.code), str(call.error.category)
    return {"code": code, "category": category, "issues": issues, "improved": improved}


def _manages(original: Any) -> Any:
    """Note what the ``ToolManager`` of a high-level server knows of a call."""

    @functools.wraps(original)
    async def call_tool(self: Any, name: str, arguments: Any, *args: Any, **kwargs: Any) -> Any:
        tool = self.get_tool(name)
        note(
            schema=getattr(tool, "parameters", None),
            known_tools=tuple(each.name for each in self.list_tools()),
            fn=getattr(tool, "fn", None),
        )
        try:
            return await original(self, name, arguments, *args, **kwargs)
        except Exception as error:
            note(error=error, stage="unknown" if tool is None else _stage_of(error))
            raise

    return call_tool


def _stage_of(error: Exception) -> str:
    if type(error.__cause__).__name__ == "ValidationError":
        # 2.x says whose it was: what a body raises is unexpected. In 1.x the schema decides.
        return "exec" if type(error).__name__ == "UnexpectedToolError" else "validation"
    return "timeout" if any(isinstance(each, TimeoutError) for each in causes(error)) else "exec"


# -- results of 1.x and 2.x ----------------------------------------------------------------------


def _stage_of_text(tool: str, text: str) -> str:
    """Return what the text of a server means that says no more: this SDK's and FastMCP's own."""
    ours = (
        rf".{{0,99}}\d validation errors? for (call\[)?{re.escape(tool)}"  # pydantic's first line
    )
    if text.startswith(("Input validation error", "Invalid arguments")) or re.match(ours, text):
        return "validation"
    return "unknown" if text.startswith("Unknown tool") else "returned"


def _with(result: Any, text: str | None, described: Mapping[str, Any] | None = None) -> Any:
    """Return ``result`` with another text or with a description of its failure."""
    update: dict[str, Any] = {}
    texts = [] if text is None else [each for each in result.content if hasattr(each, "text")]
    if texts:
        update["content"] = [texts[0].model_copy(update={"text": text})]
    if described:
        update["meta"] = {**_mapping(getattr(result, "meta", None)), _KEY: dict(described)}
    return result.model_copy(update=update) if update else result


def _member(owner: Any, name: str, name_in_1: str) -> Any:
    """Return an attribute by its name in 2.x or in 1.x; asked for by both, FastMCP warns."""
    return getattr(owner, name if hasattr(owner, name) else name_in_1, None)


def _mapping(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _id(value: object) -> str | None:
    """Return an id that a peer sent, if it is one."""
    return value if isinstance(value, str) and 0 < len(value) <= _LONGEST_ID else None


def _text(result: Any) -> str:
    return "\n".join(block.text for block in result.content if hasattr(block, "text"))


def _value(result: Any) -> object:
    """Return what the tool returned, as far as the result tells: a mapping may say it failed."""
    value = _member(result, "structured_content", "structuredContent")
    if isinstance(value, Mapping):
        return value["result"] if set(value) == {"result"} else dict(value)
    blocks = list(getattr(result, "content", ()))
    return getattr(blocks[0], "text", None) if len(blocks) == 1 else None
