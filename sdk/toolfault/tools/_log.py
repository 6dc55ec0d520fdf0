"""Local log lines: full detail for the developer, in the texts of contract.md 1.1 (L-11 to L-14).

The parameters travel as structured fields, redacted, since a log record is easily shipped
elsewhere. The stack trace of a rejected argument shows where, not what: a validation library prints
the values it was given. ``logging`` is imported when the first line is due, not with the SDK: it
costs more than all else.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from toolfault.errors import ToolError

if TYPE_CHECKING:
    import logging

    from toolfault.errors import AvailabilityReason
    from toolfault.tools._call import Call

__all__ = [
    "flow",
    "log_broken_adapter",
    "log_failure",
    "log_returned_failure",
    "log_unavailable",
    "log_undecided",
    "logger",
]

# The logger.

_logger: logging.Logger | None = None


def logger() -> logging.Logger:
    """Return the SDK's logger; unless the host listens it says nothing, also not on stderr."""
    global _logger  # noqa: PLW0603 - made once, on first use
    if _logger is None:
        import logging

        made = logging.getLogger("toolfault")
        if not any(isinstance(handler, logging.NullHandler) for handler in made.handlers):
            made.addHandler(logging.NullHandler())
        _logger = made
    return _logger


def flow(text: str, *args: Any) -> None:
    """Log a step of the execution at debug level.

    A host that never imported ``logging`` cannot be listening, and pays nothing.
    """
    if _logger is None and "logging" not in sys.modules:
        return
    log = logger()
    if log.isEnabledFor(10):
        try:
            log.debug(text, *args)
        except Exception:  # noqa: BLE001 - a filter of the host that raises
            return


# The lines of failures.

_MAX_LINE = 2_000


def log_unavailable(call: Call, reason: AvailabilityReason) -> None:
    """Log a call to a tool that is not available, with both of its names."""
    _say(
        "warning",
        "Tool '%s' (resolved to '%s') %s",
        (call.tool_requested, call.tool, reason.phrase),
        extra={"tool": call.tool, "tool_requested": call.tool_requested, "state": reason.value},
    )


def log_failure(call: Call, exc: BaseException, error: ToolError) -> None:
    """Log one failed call: ``Exception in tool '{resolved}': {first line}``, with a stack trace."""
    if not _is_heard():
        return
    raised_by_handler = call.phase == "handler" and not isinstance(exc, ToolError)
    text = _text(exc) if raised_by_handler else _text(error)
    shown = exc if call.phase == "handler" else _without_cause(error)
    _say(
        "error",
        "Exception in tool '%s': %s",
        (call.tool, text),
        exc_info=(type(shown), shown, exc.__traceback__),
        extra=_fields(call, error),
    )


def log_returned_failure(call: Call, error: ToolError) -> None:
    """Log a failure that the tool returned instead of raising."""
    if _is_heard():
        text = _first_line(error.message)
        args = (call.tool, text)
        _say("error", "Tool '%s' returned error: %s", args, extra=_fields(call, error))


def log_broken_adapter(call: Call, broken: BaseException) -> None:
    """Log that a tool's ``adapt_error`` raised; the default one stood in."""
    text = "adapt_error of tool '%s' raised %s"
    _say("warning", text, (call.tool, type(broken).__name__), exc_info=broken)


def log_undecided(call: Call, broken: BaseException) -> None:
    """Log that a policy or hook raised, which denies the call."""
    text = "The policy or hook of tool '%s' raised %s"
    _say("error", text, (call.tool, type(broken).__name__), exc_info=broken)


def _say(level: str, text: str, args: tuple[Any, ...], **details: Any) -> None:
    """Write one line; a filter or handler of the host that raises is not the caller's problem."""
    try:
        getattr(logger(), level)(text, *args, **details)
    except Exception:  # noqa: BLE001 - the promise to the host
        return


def _is_heard() -> bool:
    """Say whether a handler would get an error: composing the record costs more than asking."""
    import logging

    log = logger()
    if not log.isEnabledFor(logging.ERROR):
        return False
    place: logging.Logger | None = log
    while place is not None:
        for handler in place.handlers:
            if not isinstance(handler, logging.NullHandler):
                return True
        place = place.parent if place.propagate else None
    return False


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
    from toolfault.errors import to_jsonable

    return {
        "tool": call.tool,
        "tool_requested": call.tool_requested,
        "call_id": call.call_id,
        "parameters": to_jsonable(call.arguments, redact=True),
        "error_code": error.code.value,
        "error_category": error.category.value,
        "error_type": error.exception_type,
    }
