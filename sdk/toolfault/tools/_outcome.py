"""How a call ends: with a value, with a failure, or aborted. Each end leaves one record."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from toolfault.errors import (
    ArgumentsNotObjectError,
    AvailabilityReason,
    ErrorCategory,
    InvocationKind,
    ToolError,
    ToolInvocationError,
    ToolResult,
    default_adapt_error,
    hide,
    secret_values,
)
from toolfault.tools._call import Call, finished
from toolfault.tools._log import (
    flow,
    log_broken_adapter,
    log_failure,
    log_returned_failure,
    log_unavailable,
    logger,
)
from toolfault.tools._rejection import advised

if TYPE_CHECKING:
    from toolfault.tools._tool import Tool

__all__ = [
    "adapt_error",
    "blocked",
    "describe",
    "failed",
    "returned",
    "salvaged_failure",
    "salvaged_success",
    "salvaged_tear",
    "supplied",
    "torn_off",
    "unavailable",
]

adapt_error = default_adapt_error
"""The default adapter under its short name, for tools that adapt some failures and not others."""

# Why an available call left no result.


class PassReason(str, Enum):
    """Why a failure carries a reason although its tool was available."""

    PASSTHROUGH = "passthrough"

    def __str__(self) -> str:
        return str(self.value)


PASSTHROUGH = PassReason.PASSTHROUGH


# What is left to do when the SDK itself fails around a call: the host never notices.


def salvaged_success(call: Call, value: Any, broken: Exception) -> ToolResult[Any]:
    """Return the value of a tool that did its work, although its result could not be built."""
    _note(call, broken)
    finished(call, value, None)
    return ToolResult("OK", value)


def salvaged_failure(call: Call, exc: Exception, broken: Exception) -> ToolResult[Any]:
    """Return a plain failure where the full one could not be built."""
    _note(call, broken)
    error = ToolError(call.tool, type(exc).__name__, "internal_error")
    finished(call, None, error)
    return ToolResult.failure(error)


def salvaged_tear(call: Call, broken: Exception) -> None:
    """Leave a plain record of a call that was torn off."""
    _note(call, broken)
    finished(call, None, ToolError(call.tool, "cancelled", "cancelled"))


def _note(call: Call, broken: Exception) -> None:
    logger().debug("the SDK failed around tool '%s'", call.tool, exc_info=broken)


# The ends.

_RESERVED = frozenset({"success", "error", "error_code", "error_details", "metadata"})
_KINDS = {
    "parse": InvocationKind.DESERIALIZE,
    "validation": InvocationKind.VALIDATION,
    "handler": InvocationKind.EXEC,
}


def unavailable(call: Call) -> ToolResult[Any]:
    """Answer a call to a tool that is not available: one sentence, whatever the reason."""
    reason = call.reason or AvailabilityReason.NOT_REGISTERED
    log_unavailable(call, reason)
    requested = call.tool_requested if call.tool_requested != call.tool else None
    error = ToolError.unavailable(call.tool, reason, tool_requested=requested)
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
        return salvaged_success(call, value, broken)


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
    defaults = tool.compiled.defaults
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
    result: ToolResult[Any] = ToolResult.failure(
        error,
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
        return tool.compiled.rejection(call, exc, tool.label)
    from toolfault.tools._models import is_validation_error

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


def torn_off(call: Call, exc: BaseException, *, passed_through: bool = False) -> None:
    """Leave the record of a call whose exception goes on to the caller unchanged.

    Cancellation, interrupt and exit have the code ``cancelled``; exception types that a tool lets
    through have ``internal_error`` and the reason ``passthrough``.
    """
    if call.finished:
        return
    from toolfault.errors import exception_text

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
        error.reason = PASSTHROUGH  # type: ignore[assignment] # a reason that is no availability
    finished(call, None, error)
