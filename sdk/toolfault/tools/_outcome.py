"""How a call ends: with a value, with a failure, or aborted. Each end leaves one record.

A failure says everything that is wrong, and gives advice so that the next attempt succeeds: hints
for the model, and near misses for the developer, who learns what a remedy would have saved. Neither
carries a value out of the process. Each failure is a line of the local log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from toolfault.coerce import coerce_json, near_misses
from toolfault.errors import (
    REDACTED,
    ArgumentsNotObjectError,
    AvailabilityReason,
    ErrorCategory,
    InvocationKind,
    Issue,
    ToolError,
    ToolErrorCode,
    ToolInvocationError,
    ToolResult,
    default_adapt_error,
    did_you_mean,
    example_of,
    exception_text,
    hide,
    is_secret_value,
    redacted_repr,
    secret_values,
    to_jsonable,
    type_name,
    with_tools,
)
from toolfault.errors._cleaning import unchanging
from toolfault.errors._codes import Word
from toolfault.errors._error import joined_hints
from toolfault.errors._types import ABSENT
from toolfault.tools._call import Call, Repair, finished, has_handler, logger, say
from toolfault.tools._checks import Finding, Findings, Loc
from toolfault.tools._mending import at
from toolfault.tools._models import is_validation_error
from toolfault.tools._phantoms import pattern
from toolfault.tools._settings import DEFAULTS

if TYPE_CHECKING:
    from toolfault.tools._tool import Tool

# The local log.


def flow(text: str, *args: object) -> None:
    """Log a step of the execution at debug level."""
    if logger.isEnabledFor(logging.DEBUG):
        say(logging.DEBUG, text, *args)


_MAX_LINE = 2_000


def log_unchecked(tool: str, annotations: list[str], parameters: list[str]) -> None:
    """Log what of a tool's arguments is not checked, once, as its annotations are read.

    Args:
        tool: The tool.
        annotations: Those that the SDK knows nothing of.
        parameters: Names of those whose annotation cannot be resolved.
    """
    why = [f"nothing is known of {', '.join(dict.fromkeys(annotations))}"] if annotations else []
    why += [f"the annotation of '{name}' cannot be resolved" for name in parameters]
    text = "Tool '%s' checks only some of its arguments: %s"
    say(logging.WARNING, text, tool, "; ".join(why))


def log_unavailable(call: Call, reason: AvailabilityReason) -> None:
    """Log a call to a tool that is not available, with both of its names."""
    say(
        logging.WARNING,
        "Tool '%s' (resolved to '%s') %s",
        call.tool_requested,
        call.tool,
        reason.phrase,
        extra={"tool": call.tool, "tool_requested": call.tool_requested, "state": reason.value},
    )


def log_failure(call: Call, exc: BaseException, error: ToolError) -> None:
    """Log one failed call: ``Exception in tool '{resolved}': {first line}``, with a stack trace."""
    if not _is_heard():
        return
    raised_by_handler = call.phase == "handler" and not isinstance(exc, ToolError)
    text = _text(exc) if raised_by_handler else _text(error)
    shown = exc if call.phase == "handler" else _without_cause(error)
    say(
        logging.ERROR,
        "Exception in tool '%s': %s",
        call.tool,
        text,
        exc_info=(type(shown), shown, exc.__traceback__),
        extra=_fields(call, error),
    )


def log_returned_failure(call: Call, error: ToolError) -> None:
    """Log a failure that the tool returned instead of raising."""
    if _is_heard():
        line = _first_line(error.message)
        text = "Tool '%s' returned error: %s"
        say(logging.ERROR, text, call.tool, line, extra=_fields(call, error))


def log_broken_adapter(call: Call, broken: BaseException) -> None:
    """Log that a tool's ``adapt_error`` raised; the default one stood in."""
    text = "adapt_error of tool '%s' raised %s"
    say(logging.WARNING, text, call.tool, type(broken).__name__, exc_info=broken)


def log_undecided(call: Call, broken: BaseException) -> None:
    """Log that a policy or hook raised, which denies the call."""
    text = "The policy or hook of tool '%s' raised %s"
    say(logging.ERROR, text, call.tool, type(broken).__name__, exc_info=broken)


def _is_heard() -> bool:
    """Say whether a handler would get an error: composing the record costs more than asking."""
    return has_handler() and logger.isEnabledFor(logging.ERROR)


def _text(exc: BaseException) -> str:
    try:
        return _first_line(str(exc))
    except Exception:  # noqa: BLE001 - a hostile __str__
        return f"<unrepresentable {type(exc).__name__}>"


def _first_line(text: str) -> str:
    return text.partition("\n")[0][:_MAX_LINE]


def _without_cause(error: ToolError) -> ToolError:
    twin = error.with_()
    twin.__cause__ = None
    twin.__context__ = None
    return twin


def _fields(call: Call, error: ToolError) -> dict[str, Any]:
    return {
        "tool": call.tool,
        "tool_requested": call.tool_requested,
        "call_id": call.call_id,
        "parameters": to_jsonable(call.arguments, redact=True),
        "error_code": error.code.value,
        "error_category": error.category.value,
        "error_type": error.exception_type,
    }


# The failure.

_MAX_ISSUES = 50  # kept on one failure; issues_total says how many there were


def rejected_by_checks(
    tool: str, findings: Findings, label: str, *, secret: frozenset[str] = frozenset()
) -> ToolError:
    """Return the failure that says everything the checks found.

    Args:
        tool: The tool's name.
        findings: At least one finding.
        label: What was validated: ``parameters``, ``HTTP request``.
        secret: Names of fields whose values must not be shown.
    """
    found = findings.found
    issues = []
    for finding in found[:_MAX_ISSUES]:
        issues.append(_issue(finding, secret))  # noqa: PERF401 - a comprehension is a call more
    error = ToolError.from_issues(tool, issues, context=label, total=len(found))
    error.kind = InvocationKind.VALIDATION
    return error


def _issue(finding: Finding, secret: frozenset[str]) -> Issue:
    loc = _plain_loc(finding.loc)
    hidden = not secret.isdisjoint(loc)
    if finding.issue is not None:
        field = ".".join(str(part) for part in loc)
        issue = finding.issue.with_(field=field, loc=loc)
        return issue.with_(received=REDACTED) if hidden and issue.received is not None else issue
    value = finding.value if loc else ABSENT
    if value is not ABSENT:
        hidden = hidden or is_secret_value(loc, type_name(value))
    return Issue.of_value(
        loc,
        finding.code,
        finding.message,
        value,
        hidden=hidden,
        expected=finding.expected or None,
        type=finding.type,
    )


def _plain_loc(loc: Loc) -> tuple[str | int, ...]:
    """Return the path as text and indexes; a key that is neither goes by its representation."""
    for part in loc:
        if type(part) is not str and type(part) is not int:
            break
    else:
        return loc
    return tuple(
        part if type(part) in (str, int) else redacted_repr(part, limit=64) for part in loc
    )


def with_broken_json(failure: ToolError, arguments: object, label: str) -> ToolError:
    """Return a model's rejection with what is wrong in strings that a coercer tried to read.

    The model itself saw a string, and can only complain about its type.
    """
    issues = tuple(_broken_json(issue, arguments) for issue in failure.issues)
    if issues == failure.issues:
        return failure
    return ToolError.from_issues(
        failure.tool, issues, context=label, total=failure.issues_total, cause=failure.cause
    )


def _broken_json(issue: Issue, arguments: object) -> Issue:
    """Return an issue about a string that was meant as JSON, with what the parser says of it."""
    if issue.expected not in ("array", "object") or issue.received_type != "str":
        return issue
    value = issue.sent
    if value is ABSENT:  # an issue keeps no long text
        value = at(arguments, issue.loc)[1]
    if type(value) is not str:
        return issue
    if not value.lstrip().startswith(("{", "[")):
        return issue
    try:
        coerce_json(value)
    except ValueError as error:
        return issue.with_(code="malformed_json", message=str(error), expected=None)
    return issue


def repairs_of(findings: Findings) -> tuple[Repair, ...]:
    """Return the repairs as field and types, without values."""
    return tuple(
        Repair(pattern(loc), type_name(before), type_name(after))
        for loc, before, after in findings.repairs
    )


# What is added so that the next attempt succeeds: hints, and near misses.

_MAX_ADVISED = 20  # issues of one failure that are looked at; the model reads no more either
_UNUSED = ("derived", "off")


def advised(error: ToolError, arguments: Any, tool: Tool | None, *, ours: bool) -> ToolError:
    """Add hints and near misses to a parameter failure that is in nobody else's hands.

    Args:
        error: The failure; changed in place.
        arguments: What the model sent, parsed; None when it could not be.
        tool: The tool, or None where only its name is known.
        ours: Whether its issues are in nobody else's hands either.
    """
    hints = None if tool is None else tool.hints
    derive = _derives(hints)
    issues = error.issues
    if arguments is not None and error.is_composed:
        if not ours:
            issues = tuple(issue.copy() for issue in issues)
            error = error.with_(issues=issues, issues_total=error.issues_total)
        _judge(issues, arguments, tool, derive=derive)
        if derive:
            error.derived_hint = joined_hints(issue.hint for issue in issues)
    elif derive and error.suggestion:
        error.derived_hint = error.suggestion
    if error.retry_hint is None and hints is not None:
        error.retry_hint = _authored(error, hints)
    return error


def _derives(hints: str | Mapping[str, str] | None) -> bool:
    if isinstance(hints, str) and hints in _UNUSED:
        return hints == "derived"
    return DEFAULTS.hints == "derived"


def _authored(error: ToolError, hints: str | Mapping[str, str] | None) -> str | None:
    """Return the author's hints for the fields at fault, else the one for the tool."""
    if hints is None or (isinstance(hints, str) and hints in _UNUSED):
        return None
    if isinstance(hints, str):
        return hints
    found = [
        hints.get(issue.field) or hints.get(issue.field_pattern) or hints.get(issue.root_field)
        for issue in error.issues
    ]
    return joined_hints(found) or hints.get("*")


def _judge(issues: tuple[Issue, ...], arguments: Any, tool: Tool | None, *, derive: bool) -> None:
    """Note near misses on the issues, and derived hints where they are asked for."""
    known = list(tool.compiled.names) if derive and tool is not None else []
    for issue in issues[:_MAX_ADVISED]:
        code = issue.code
        if code is not ToolErrorCode.MISSING_FIELD:
            if issue.sent is ABSENT:  # an author, or a server of tools, found it
                issue.sent = _sent(issue, arguments)
            if issue.sent is not ABSENT:
                unknown = code is ToolErrorCode.UNKNOWN_FIELD
                issue.seek_near_miss(_among_missing(issues) if unknown else _near_misses)
        if derive:
            issue.hint = _derived(issue, known)


def _sent(issue: Issue, arguments: object) -> object:
    """Return the value in the arguments that an issue names by its path and its type, or ABSENT."""
    path, value = at(arguments, issue.loc)
    is_it = path and issue.received_type in (None, type_name(value))
    return unchanging(value) if is_it else ABSENT


def _near_misses(issue: Issue, choices: list[str] | None = None) -> tuple[str, ...]:
    return near_misses(issue.sent, issue, choices=choices)


def _among_missing(issues: tuple[Issue, ...]) -> Callable[[Issue], tuple[str, ...]]:
    """Return what finds the near misses of a name that is unknown: those that are missing."""
    missing = [issue.field for issue in issues if issue.code is ToolErrorCode.MISSING_FIELD]
    return partial(_near_misses, choices=missing)


def _derived(issue: Issue, known: list[str]) -> str | None:
    """Return did-you-mean for names and choices, else an example of the expected form."""
    if issue.code.value == "unknown_field":
        return did_you_mean(str(issue.loc[-1]) if issue.loc else issue.field, known)
    if issue.code.value == "invalid_choice" and type(issue.sent) is str:
        return did_you_mean(issue.sent, _quoted(issue.expected or ""))
    return example_of(issue)


def _quoted(text: str) -> list[str]:
    """Return the quoted choices of ``'a', 'b' or 'c'``."""
    return text.split("'")[1::2]


adapt_error = default_adapt_error
"""The default adapter under its short name, for tools that adapt some failures and not others."""

# Why an available call left no result.


class PassReason(Word):
    """Why a failure carries a reason although its tool was available."""

    PASSTHROUGH = "passthrough"


# What is left to do when the SDK itself fails around a call: the host never notices.


def fallback_success(call: Call, value: Any, broken: Exception) -> ToolResult[Any]:
    """Return the value of a tool that did its work, although its result could not be built."""
    _note(call, broken)
    finished(call, value, None)
    return ToolResult("OK", value)


def fallback_failure(call: Call, exc: Exception, broken: Exception) -> ToolResult[Any]:
    """Return a plain failure where the full one could not be built."""
    _note(call, broken)
    error = ToolError(call.tool, type(exc).__name__, "internal_error")
    finished(call, None, error)
    return ToolResult.failure(error)


def fallback_aborted(call: Call, broken: Exception) -> None:
    """Leave a plain record of a call that was aborted."""
    _note(call, broken)
    finished(call, None, ToolError(call.tool, "cancelled", "cancelled"))


def _note(call: Call, broken: Exception) -> None:
    say(logging.DEBUG, "the SDK failed around tool '%s'", call.tool, exc_info=broken)


# The ends.

_RESERVED = frozenset({"success", "error", "error_code", "error_details", "metadata"})
_KINDS = {
    "parse": InvocationKind.DESERIALIZE,
    "validation": InvocationKind.VALIDATION,
    "handler": InvocationKind.EXEC,
}


def unavailable(call: Call, known: Sequence[str] = ()) -> ToolResult[Any]:
    """Answer a call to a tool that is not available: one sentence, whatever the reason.

    Args:
        call: The call.
        known: Names of the tools that are available, if the model is to be told.
    """
    reason = call.reason or AvailabilityReason.NOT_REGISTERED
    log_unavailable(call, reason)
    requested = call.tool_requested if call.tool_requested != call.tool else None
    error = ToolError.unavailable(call.tool, reason, tool_requested=requested)
    if known:
        error = error.with_(told=with_tools(error.render("llm"), call.tool_requested, known))
    result: ToolResult[Any] = ToolResult.failure(error)
    finished(call, None, error)
    return result


def blocked(call: Call, reason: AvailabilityReason) -> ToolResult[Any]:
    """Answer a call that a policy denied or a hook blocked."""
    call.reason = reason
    return unavailable(call)


def supplied(call: Call, value: object) -> ToolResult[Any]:
    """Answer a call with what a hook supplied in place of the handler."""
    flow("Tool '%s' was answered by a hook", call.tool)
    call.phase = "handler"
    try:
        return returned(call, value)
    except Exception as broken:  # noqa: BLE001 - the SDK never raises into the host
        return fallback_success(call, value, broken)


def returned(call: Call, value: Any, tool: Tool | None = None) -> ToolResult[Any]:
    """Make a result of what a handler returned; a returned failure is a failure (contract E6)."""
    if type(value) is dict and value.get("success") is False:
        error = ToolError.from_returned(call.tool, value)
        data = {name: item for name, item in value.items() if name not in _RESERVED}
        return _reported(call, error, tool, data=data)
    # Never isinstance: it would read ``__class__`` of whatever the tool returned.
    if issubclass(type(value), ToolResult):
        return _returned_result(call, value, tool)
    result: ToolResult[Any] = ToolResult("OK", value)
    if tool is not None and tool.echo:
        result.fields = echoed(call, tool) or {}
    result.coercions = call.coercions
    finished(call, value, None)
    return result


def _returned_result(call: Call, value: ToolResult[Any], tool: Tool | None) -> ToolResult[Any]:
    if not value.success:
        error = value.error
        if error is None:
            error = ToolError.from_returned(call.tool, {"error": value.message})
        return _reported(call, error, tool, given=value)
    finished(call, value.value, None)
    if tool is None or not (tool.echo or call.coercions):
        return value
    return ToolResult(
        value.message,
        value.value,
        fields={**(echoed(call, tool) or {}), **value.fields},
        error_defaults=value.error_defaults,
        metadata=value.metadata,
        exclude_value_from_context=value.exclude_value_from_context,
        coercions=(*call.coercions, *value.coercions),
    )


def _reported(
    call: Call,
    error: ToolError,
    tool: Tool | None,
    *,
    data: dict[str, Any] | None = None,
    given: ToolResult[Any] | None = None,
) -> ToolResult[Any]:
    """Make a result of a failure that a handler returned instead of raising."""
    described = describe(call, error, tool)
    log_returned_failure(call, described)
    defaults = dict(tool.error_defaults) if tool is not None else {}
    details: dict[str, Any] = {
        "fields": echoed(call, tool),
        "error_defaults": {**defaults, **(data or {})},
        "coercions": call.coercions,
    }
    if given is not None:
        details["error_value"] = given.value
        details["fields"] = {**(details["fields"] or {}), **given.fields}
        details["error_defaults"] = {**defaults, **given.error_defaults}
        details["metadata"] = given.metadata
        if described.llm_message:
            details["message"] = described.llm_message
    result: ToolResult[Any] = ToolResult.failure(described, **details)
    finished(call, None, described)
    return result


def echoed(call: Call, tool: Tool | None) -> dict[str, Any] | None:
    """Return the arguments that the contract dict repeats; the same keys on every path."""
    if tool is None or not tool.echo:
        return None
    sent = call.arguments or {}
    defaults = tool.compiled.parameters.defaults
    return {name: sent.get(name, defaults.get(name)) for name in tool.echo}


def failed(
    call: Call, exc: Exception, tool: Tool | None, *, label: str = "parameters"
) -> ToolResult[Any]:
    """Make a result of an exception, log it, and leave the record.

    Args:
        call: The call.
        exc: What was raised; ``call.phase`` says where.
        tool: The tool, or None where only its name is known.
        label: What error texts call the arguments of an unknown tool.
    """
    error = describe(call, exc, tool, label=label)
    log_failure(call, exc, error)
    result: ToolResult[Any] = ToolResult(
        success=False,
        error=error,
        fields=echoed(call, tool) if tool is not None and tool.echo else None,
        error_defaults=None if tool is None else tool.error_defaults,
        coercions=call.coercions,
    )
    finished(call, None, error)
    return result


def describe(
    call: Call, exc: Exception, tool: Tool | None, *, label: str = "parameters"
) -> ToolError:
    """Return the failure that ``exc`` means: adapted once, under the tool's resolved name."""
    error, source, kind, ours = _failure(call, exc, tool, label)
    if not ours:
        # A tool may raise, and an adapter return, one and the same object again and again: it
        # stays as it is, and every call is an event of its own.
        error = error.with_(event_id=None)
    error.tool = call.tool
    error.tool_requested = None if call.tool_requested == call.tool else call.tool_requested
    error.kind = kind
    error.phase = call.phase
    error.adapter_failed = call.adapter_failed
    secrets = secret_values(call.arguments)
    if secrets:
        hide(error, secrets)
    if error.__cause__ is None:
        # The original exception stays attached, whoever wrote the failure (W-06).
        if isinstance(source, ToolError):
            error.__cause__ = source.__cause__
        elif call.phase == "handler":
            error.__cause__ = exc
    if error.category is ErrorCategory.PARAMETER:
        return advised(error, call.arguments, tool, ours=ours)
    return error


def _failure(
    call: Call, exc: Exception, tool: Tool | None, label: str
) -> tuple[ToolError, BaseException | None, InvocationKind, bool]:
    """Return the failure, what it was made of, where it arose, and whether it is ours alone."""
    if tool is None or tool.adapt_error is None:
        # What nearly every failure is; there is no adapter to be told of an invocation.
        error = call.rejection if exc is call.rejection else None
        if error is None and not isinstance(exc, ToolError):
            if call.phase == "validation":
                error = _rejection(call, exc, tool, label)
            elif call.phase == "handler":
                error = ToolError.from_exception(call.tool, exc)
                return error, exc, InvocationKind.EXEC, True
        if error is not None:
            return error, error, InvocationKind.VALIDATION, True
    invocation = _invocation(call, exc, tool, label)
    error = _adapted(call, invocation, tool)
    return error, invocation.exc, invocation.kind, _is_ours(call, exc, error, tool)


def _is_ours(call: Call, exc: Exception, error: ToolError, tool: Tool | None) -> bool:
    """Say whether ``error`` was made for this call and is in nobody else's hands."""
    if tool is not None and tool.adapt_error is not None and not call.adapter_failed:
        return False
    return error is call.rejection or not isinstance(exc, ToolError)


def _invocation(call: Call, exc: Exception, tool: Tool | None, label: str) -> ToolInvocationError:
    kind = _KINDS[call.phase]
    source: Exception = exc
    raw: object = call.raw if call.arguments is None else call.arguments
    if call.phase == "validation" and not isinstance(exc, ToolError):
        rejection = _rejection(call, exc, tool, label)
        if rejection is None:
            # A TypeError inside a validator is a bug of the validator, not of the arguments.
            kind = InvocationKind.INTERNAL
        else:
            source = rejection
    elif call.phase == "parse":
        if not isinstance(exc, (ValueError, ArgumentsNotObjectError)):
            kind = InvocationKind.INTERNAL  # a mapping of the host that cannot be read
        raw = getattr(exc, "doc", raw)  # the text as it was parsed, without the end marker
    return ToolInvocationError(kind, source, raw, tool=call.tool)


def _rejection(call: Call, exc: Exception, tool: Tool | None, label: str) -> ToolError | None:
    """Return the failure a library's validation error means; None for any other exception."""
    if tool is not None:
        return tool.rejection(call, exc)
    if not is_validation_error(exc):
        return None
    return ToolError.from_validation_error(call.tool, exc, call.arguments, label)


def _adapted(call: Call, invocation: ToolInvocationError, tool: Tool | None) -> ToolError:
    """Ask the tool's own adapter once; fall back to the default one if it raises."""
    if tool is None or tool.adapt_error is None:
        return default_adapt_error(invocation)
    try:
        error = tool.adapt_error(invocation)
        if not isinstance(error, ToolError):
            raise TypeError(f"adapt_error returned {type(error).__name__}, not a ToolError")  # noqa: TRY301
    except Exception as broken:  # noqa: BLE001 - the adapter is the host's code
        call.adapter_failed = True
        log_broken_adapter(call, broken)
        return default_adapt_error(invocation)
    return error


def record_aborted(call: Call, exc: BaseException, *, passed_through: bool = False) -> None:
    """Leave the record of a call whose exception goes on to the caller unchanged.

    Cancellation, interrupt and exit have the code ``cancelled``; exception types that a tool lets
    through have ``internal_error`` and the reason ``passthrough``.
    """
    if call.finished:
        return
    error = ToolError(
        call.tool,
        exception_text(exc) or type(exc).__name__,
        "internal_error" if passed_through else "cancelled",
        tool_requested=None if call.tool_requested == call.tool else call.tool_requested,
        kind=_KINDS[call.phase],
        phase=call.phase,
        cause=exc,
    )
    error.quotes_exception = True
    if passed_through:
        error.reason = PassReason.PASSTHROUGH  # type: ignore[assignment] # a reason that is no availability
    finished(call, None, error)
