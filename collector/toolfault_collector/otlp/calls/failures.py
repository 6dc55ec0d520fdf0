"""Whether a tool call failed, by which sign, and what the failure says.

The signs are asked in the order of how sure they are; the first that holds is kept with the call
(``detection``):

1. ``status``: the span's status is an error, with or without ``error.type``.
2. ``error_type``: ``error.type`` or what the dialect has instead (a level, a flag, a status).
3. ``exception_event``: the span has an event ``exception``.
4. ``exception_log``: a log record of the span holds an exception.
5. ``soft:<rule>``: the result reads like a failure. These may be wrong, so each can be switched off
   by its name; the call is then a success that keeps the mark.

Control flow is none of these: a run that waits for a person, hands over to another agent or was
denied by one has not failed, whatever its status says.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from toolfault_collector.importers.classify import classify
from toolfault_collector.importers.classify.soft import soft_rule
from toolfault_collector.otlp.calls.dialects import Reading, decoded
from toolfault_collector.otlp.calls.messages import text_of_result
from toolfault_collector.otlp.calls.spans import JSON, LogRecord, Span
from toolfault_collector.otlp.encoding.items import CUT

__all__ = [
    "EXCEPTION_EVENTS",
    "NOT_OFFERED",
    "SOFT_RULES",
    "Verdict",
    "best_text",
    "content_of",
    "control_flow_of_text",
    "ended_by_error",
    "rule_of_failure",
    "soft_failure",
    "verdict_of",
]

# Log events that hold an exception (semantic conventions 1.29, GenAI v0.1.0).
EXCEPTION_EVENTS: Final = frozenset(
    {
        "exception",
        "gen_ai.client.operation.exception",
        "gen_ai.execute_tool.exception",
        "gen_ai.execute_tool.internal.exception",
    }
)

_TEXT_RULES: Final[Mapping[str, re.Pattern[str]]] = {
    # What frameworks write in the place of a result.
    "unknown_tool": re.compile(
        r"\s*(?:error: |AI_NoSuchToolError: )?(?:unknown tool(?: name)?: "
        r"|model tried to call unavailable tool "
        r"|tool ['\"`]?[\w./:-]{1,128}['\"`]? (?:is )?(?:not found|does not exist|not registered)"
        r"|['\"`]?[\w./:-]{1,128}['\"`]? is not a valid tool\b|no tool named |no such tool)",
        re.IGNORECASE,
    ),
    "framework_error": re.compile(
        r"\s*(?:error (?:invoking|executing|calling|running) (?:the )?(?:tool|function)\b"
        r"|tool input validation failed\b"
        r"|an error occurred while (?:running|executing|calling) the (?:tool|function)"
        r"|tool ['\"`]?[\w./:-]{1,128}['\"`]? timed out\b|error: function failed"
        r"|tool execution failed\b|failed to parse tool arguments)",
        re.IGNORECASE,
    ),
    "invalid_arguments": re.compile(
        r"\s*(?:\d{1,4} validation errors?(?: for [^\n]{1,200})?:?\s*\n"
        r"|invalid input for tool |invalid arguments for (?:tool|function) "
        r"|(?:ai_)?invalidtoolinputerror|input validation error: )",
        re.IGNORECASE,
    ),
    "error_prefix": re.compile(
        r"\s*(?:error|exception|fatal|[A-Za-z_.]{1,100}(?:Error|Exception)): \S"
        r"|\s*traceback \(most recent call last\)|\s*error code:? \d",
        re.IGNORECASE,
    ),
}
_TOOL_MESSAGE: Final = re.compile(
    r"\btool_call_id=(?:'[^']*'|\"[^\"]*\").{0,200}\bstatus='error'", re.DOTALL
)
# A call that nothing answers, of a tool that its model was not offered.
NOT_OFFERED: Final = "not_offered"
# Each soft rule, and when it holds, in the order in which they are asked.
SOFT_RULES: Final[Mapping[str, str]] = {
    NOT_OFFERED: "Nothing answers the call, and its model was not offered a tool of that name.",
    "message_error": "The message that holds the result says that it is an error.",
    "unknown_tool": "The result begins like a framework's answer for a tool that does not exist.",
    "framework_error": "The result begins like a framework's words for an error, such as "
    "`Error executing tool`.",
    "invalid_arguments": "The result begins like a refusal of the arguments, such as "
    "`2 validation errors`.",
    "error_prefix": "The result begins like an error, such as `Error: ...`, `ValueError: ...` or "
    "a traceback.",
    "error_tag": "The result begins with `<tool_use_error>`.",
    "exit_code": "The result begins with an exit code that is not 0.",
    "json_is_error": "The result is a JSON object whose `isError` or `is_error` is true.",
    "json_status": "The result is a JSON object whose `status` says error or failed, or whose "
    "`success` or `ok` is false.",
    "json_error": "The result is a JSON object whose `error` or `errors` is not empty.",
}

# Exceptions by which frameworks stop, wait or hand over (by the last part of their name).
_INTERRUPTS: Final[Mapping[str, str]] = {
    "GraphInterrupt": "interrupt",
    "NodeInterrupt": "interrupt",
    "GraphBubbleUp": "interrupt",
    "Interrupt": "interrupt",
    "InterruptException": "interrupt",
    "ParentCommand": "hand-off",
    "CallDeferred": "deferred call",
    "ApprovalRequired": "waits for approval",
    "ToolApprovalRequired": "waits for approval",
    "UserInputRequired": "waits for a person",
    "StopResponse": "stop",
    "StopIteration": "stop",
    "AgentHandoff": "hand-off",
}
_NAMES: Final = re.compile(rf"(?:[\w.]{{1,200}}\.)?({'|'.join(_INTERRUPTS)})\b\s*(?:\(|:|$)")
_DENIED: Final = re.compile(
    r"\s*(?:the tool call was denied|tool execution (?:was )?(?:denied|not approved)"
    r"|user (?:rejected|denied|declined) (?:the )?(?:tool|this|execution|call)"
    r"|the user doesn'?t want to (?:proceed|take this action)"
    r"|(?:tool call|execution) (?:rejected|denied|declined) by (?:the )?(?:user|human|reviewer)"
    r"|request interrupted by user|\[request interrupted)",
    re.IGNORECASE,
)
_HANDED: Final = re.compile(
    r"\s*(?:successfully )?(?:transferred|handed (?:off|over)|transferring) (?:back )?to "
    r"|\s*\{['\"]assistant['\"]: ?['\"][^'\"]{1,200}['\"]\}\s*$",
    re.IGNORECASE,
)
# Pydantic AI's answers to the calls by which a model gives its final output.
_FINAL: Final = re.compile(r"\s*(?:final result processed|tool not executed - )", re.IGNORECASE)
_HANDING_TOOL: Final = re.compile(
    r"(?:transfer|hand_?off)_(?:back_)?to_|handoff to ", re.IGNORECASE
)
_REDACTED: Final = re.compile(
    r"details are redacted|^an error occurred while running the tool\. please try again"
    r"|^error executing tool \S{1,128}$|^error: function failed\.?$|^<?redacted>?$"
    r"|^tool[ _]error\.?$",
    re.IGNORECASE,
)
_REPR: Final = re.compile(
    r"^(?:[\w.]{1,200}\.)?(\w{1,100}(?:Error|Exception|Exit|Warning))\((['\"])"
)
_OTHER: Final = frozenset({"_OTHER", "tool_error", "TOOL_ERROR", "error", "Error", "Exception"})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of how a call went.

    Args:
        failed: Whether it failed.
        detection: The sign by which it did; ``explicit`` for a success without any.
        text: What is known of the failure; the most exact of the texts there are.
        control_flow: What it is instead of a failure or success, or None.
    """

    failed: bool = False
    detection: str = "explicit"
    text: str = ""
    error_type: str | None = None
    exception_type: str | None = None
    exception_message: str | None = None
    exception_stack: str | None = None
    control_flow: str | None = None


def verdict_of(reading: Reading, logs: Sequence[LogRecord], soft: Collection[str]) -> Verdict:
    """Decide how the call went that a tool span tells of.

    Args:
        reading: A span that is a tool call or part of one.
        logs: Log records of this span.
        soft: Names of the soft rules that count.
    """
    span, result = reading.span, decoded_result(reading)
    known, by = _known(reading, logs)
    if known.control_flow is not None:
        return known
    named = known.error_type
    signs = (
        ("status", span.status == "error"),
        ("error_type", reading.says_failed),
        (by, bool(by)),
    )
    for detection, holding in signs:
        if holding:
            # A status that is no more than the class of the exception says less than the result.
            status = _unwrapped(span.status_text)
            texts = (
                known.exception_message,
                None if status == named else status,
                _own_text(reading),
                _inner_text(content_of(result), text_of_result(result)),
                known.exception_type,
                named,
            )
            return replace(known, failed=True, detection=detection, text=best_text(texts))
    found = soft_failure(result)
    if found is None:
        return known
    rule, text = found
    failed = rule in soft
    return replace(known, failed=failed, detection=f"soft:{rule}", text=text if failed else "")


def ended_by_error(
    reading: Reading, logs: Sequence[LogRecord], tool: str
) -> tuple[int, Verdict] | None:
    """Return where the error of a span of a model or agent names *tool*, and the error; else None.

    Some frameworks end a run where a call fits no tool: nothing answers the call, and the span
    around it holds the error.
    """
    by_status = reading.span.status == "error"
    known, by = _known(reading, logs)
    if known.control_flow is not None or not (by_status or by):
        return None
    text = best_text((known.exception_message, _unwrapped(reading.span.status_text)))
    found = re.search(rf"(?<![\w-]){re.escape(tool)}(?![\w-])", text[:2_000])
    if found is None:
        return None
    return found.start(), replace(
        known, failed=True, detection="status" if by_status else by, text=text
    )


def soft_failure(value: JSON, *, marked: bool = False) -> tuple[str, str] | None:
    """Return the first soft rule by which a result reads like a failure, and what it says.

    Args:
        value: The result: JSON, or a text.
        marked: Whether the message that holds it says that it is an error.
    """
    content = content_of(value)
    text = text_of_result(content)
    if marked or _is_error_message(value) or _TOOL_MESSAGE.search(text[:20_000]):
        return "message_error", _inner_text(content, text)
    for rule, pattern in _TEXT_RULES.items():
        if pattern.match(text):
            return rule, text
    encoded = content if isinstance(content, str) else text
    found = soft_rule(encoded)
    if found is None or found in _TEXT_RULES:
        return None
    return found, _inner_text(decoded(encoded), text)


def _control_flow(
    reading: Reading, kind: str | None, error_type: str | None, message: str | None
) -> str | None:
    """Say what a span is where it is neither failure nor success: an interrupt, a hand-off, ..."""
    span = reading.span
    for text in (kind, error_type, span.status_text):
        if text and (found := _NAMES.match(text.strip())):
            return _INTERRUPTS[found[1]]
    tool = reading.field("tool")
    result = text_of_result(decoded_result(reading))
    handing = isinstance(tool, str) and _HANDING_TOOL.match(tool) and span.status != "error"
    if handing and (tool.startswith("handoff to ") or _HANDED.match(result)):
        return "hand-off"
    if span.attributes.get("gen_ai.tool.type") == "handoff":
        return "hand-off"
    if span.attributes.get("decision") in ("reject", "rejected", "deny", "denied"):
        return "denied"
    for text in (message, span.status_text, result, _own_text(reading)):
        if text and _DENIED.match(text):
            return "denied"
    return None


def control_flow_of_text(tool: str, text: str) -> str | None:
    """Say what an answer in a message is where it is neither failure nor success."""
    if _DENIED.match(text):
        return "denied"
    if _HANDED.match(text) and _HANDING_TOOL.match(tool):
        return "hand-off"
    return "final answer" if _FINAL.match(text) else None


def content_of(value: JSON, depth: int = 0) -> JSON:
    """Return what a tool gave, out of the message that LangChain makes of it."""
    value = decoded(value)
    if depth > 3 or not isinstance(value, Mapping):
        return value
    if "tool_call_id" in value and "content" in value:
        return value["content"]
    for key in ("data", "kwargs", "update"):
        inner = value.get(key)
        if isinstance(inner, Mapping) and _WRAPPER & value.keys() and "content" in inner:
            return content_of(inner, depth + 1)
    return value


_WRAPPER: Final = frozenset({"type", "lc", "graph", "id"})


def rule_of_failure(
    text: str,
    *,
    tool: str = "",
    error_type: str | None = None,
    exception_type: str | None = None,
    arguments: JSON = None,
    offered: bool | None = None,
) -> str | None:
    """Name the rule of a failure whose text says nothing of its own; None where the text decides.

    Args:
        text: What is known of the failure.
        tool: Name of the tool.
        error_type: Value of ``error.type``: a class, a JSON-RPC code, an HTTP status.
        exception_type: Class of the exception, with or without its module.
        arguments: As they were sent; frameworks that hold back why a call failed still tell these.
        offered: Whether the model was offered a tool of this name, None where nobody knows.
    """
    held_back = not text or text in _OTHER or _REDACTED.search(text) is not None
    found = classify("" if held_back else text, tool=tool)
    if found.rule not in _SAYS_LITTLE:
        return None
    if offered is False:
        return "no_such_tool"
    if (
        isinstance(arguments, str)
        and arguments.lstrip()[:1] == "{"
        and not arguments.endswith(CUT)  # then it is the receiver who left out their end
        and decoded(arguments) is arguments
    ):
        return "json"
    names = [name for name in (exception_type, error_type) if name]
    for name in names:
        if rule := _rule_of_type(name):
            return rule
    if found.rule == "unclassified" and any(name not in _OTHER for name in names):
        return "exception"  # somebody's own, with a sentence that says nothing known
    return "unclassified" if held_back else None


_SAYS_LITTLE: Final = frozenset({"unclassified", "exception", "invalid", "command"})
# Last part of an exception's name, or a code, to the rule of the same meaning.
_OF_TYPES: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), rule)
    for pattern, rule in (
        (
            r"-32602$|\w*ValidationError$|InvalidToolInput|InvalidParams|\w*ArgumentError$|\w*ToolCallError$",
            "invalid",
        ),
        (
            r"-32601$|\w*(?:NoSuchTool|UnknownTool|ToolNotFound)(?:Error|Exception)?$",
            "no_such_tool",
        ),
        (r"-32700$|JSONDecodeError$|JSONParseError$", "json"),
        (r"-32001$|(?:\w*Timeout(?:Error|Exception|Expired)?|504|408)$", "timeout"),
        (r"(?:RateLimit\w*|TooManyRequests\w*|429)$", "rate_limit"),
        (r"(?:CancelledError|AbortError|Cancelled)$", "cancelled"),
        (r"(?:PermissionError|AccessDenied\w*)$", "access_denied"),
        (r"(?:FileNotFoundError|NotFoundError)$", "not_found"),
        (r"(?:IsADirectoryError|NotADirectoryError)$", "is_directory"),
        (r"(?:IntegrityError|UniqueViolation)$", "unique"),
        (
            r"(?:Connect(?:ion)?\w*Error|ConnectError|\w*NetworkError|APIConnectionError)$",
            "connection",
        ),
        (r"(?:HTTPStatusError|HTTPError|APIStatusError|[45]\d\d)$", "http_status"),
        (r"(?:SyntaxError|ProgrammingError)$", "syntax"),
        (r"(?:OSError|IOError)$", "io"),
    )
)


def _rule_of_type(name: str) -> str | None:
    last = name.rpartition(".")[2] if not name.startswith("-") else name
    return next((rule for pattern, rule in _OF_TYPES if pattern.match(last)), None)


def decoded_result(reading: Reading) -> JSON:
    """Return the result of a tool span, out of its JSON."""
    return decoded(reading.field("result"))


def _known(reading: Reading, logs: Sequence[LogRecord]) -> tuple[Verdict, str]:
    """Return what a span says of an error, and how its exception was found; "" if it has none."""
    exception, by = _exception(reading.span, logs)
    kind, message = _said(exception, "exception.type"), _said(exception, "exception.message")
    error_type = reading.field("error_type")
    named = str(error_type) if error_type is not None else None
    known = Verdict(
        error_type=named,
        exception_type=kind,
        exception_message=message,
        exception_stack=_said(exception, "exception.stacktrace"),
        control_flow=_control_flow(reading, kind, named, message),
    )
    return known, by


def _exception(span: Span, logs: Sequence[LogRecord]) -> tuple[Mapping[str, JSON], str]:
    """Return the last exception of a span with how it was found: in its events, or in logs."""
    for event in reversed(span.events):
        if event.name == "exception" or "exception.type" in event.attributes:
            return event.attributes, "exception_event"
    for log in logs:
        if log.event_name in EXCEPTION_EVENTS or "exception.type" in log.attributes:
            return log.attributes, "exception_log"
    return {}, ""


def _said(exception: Mapping[str, JSON], key: str) -> str | None:
    value = exception.get(key)
    return value if isinstance(value, str) and value else None


def _own_text(reading: Reading) -> str:
    value = reading.field("error_text")
    return text_of_result(decoded(value)) if value is not None else ""


def _unwrapped(text: str) -> str:
    """Take the sentence out of a status text that is the repr of an exception."""
    found = _REPR.match(text)
    if found is None:
        return text.strip()
    quote = found[2]
    inner = text[found.end() :]
    end = inner.find(f"{quote})")
    said = inner[:end] if end >= 0 else inner
    return f"{found[1]}: " + said.replace("\\n", "\n").replace("\\'", "'").strip()


def best_text(texts: Sequence[str | None]) -> str:
    """Return the first text that says something, before those that were held back."""
    said = [text.strip() for text in texts if text and text.strip()]
    open_ = [text for text in said if not _REDACTED.search(text) and text not in _OTHER]
    return next(iter(open_ or said), "")


def _is_error_message(value: JSON, depth: int = 0) -> bool:
    """Recognise LangChain's message of a tool that handled its own error, three levels deep."""
    if depth > 3 or not isinstance(value, Mapping):
        return False
    if value.get("status") == "error" and ("tool_call_id" in value or "toolUseId" in value):
        return True
    inner = [value.get(key) for key in ("data", "kwargs", "output", "update", "toolResult")]
    messages = value.get("messages")
    if isinstance(messages, list) and len(messages) == 1:
        inner += messages
    return any(_is_error_message(each, depth + 1) for each in inner)


def _inner_text(value: JSON, text: str, depth: int = 0) -> str:
    """Return the sentence in a result that says that it is an error."""
    if isinstance(value, Mapping) and depth < 4:
        for key in (
            "error",
            "errors",
            "message",
            "error_message",
            "detail",
            "content",
            "text",
            "data",
            "kwargs",
            "output",
            "result",
            "reason",
        ):
            inner = value.get(key)
            if isinstance(inner, str) and inner.strip():
                return inner
            if isinstance(inner, Mapping | list) and inner:
                return _inner_text(inner, text_of_result(inner), depth + 1)
    return text
