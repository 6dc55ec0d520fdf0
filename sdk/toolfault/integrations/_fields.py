"""What a log line may say about the tool call it was written in, and the failure it carries."""

from __future__ import annotations

from toolfault.errors import ToolError
from toolfault.telemetry import capture_failure
from toolfault.telemetry._conversations import current_conversation
from toolfault.tools import mark_reported, running_call, was_reported

# A chain of causes may be circular; ten links are more than any real one has.
_MAX_CAUSES = 10


def fields(error: ToolError | None) -> dict[str, str]:
    """Return tool, conversation and code, as far as they are known here."""
    found: dict[str, str] = {}
    call = running_call()
    tool = error.tool if error is not None else call.tool if call is not None else None
    if tool is not None:
        found["tool"] = tool
    conversation = current_conversation()
    if conversation is not None:
        found["conversation"] = conversation.id
    if error is not None:
        found["code"] = error.code.value
    return found


def tool_error_in(error: object) -> ToolError | None:
    """Return the ``ToolError`` that ``error`` is or was raised from, or None."""
    for _ in range(_MAX_CAUSES):
        if isinstance(error, ToolError):
            return error
        if not isinstance(error, BaseException):
            return None
        error = error.__cause__ or error.__context__
    return None


def capture_once(error: ToolError) -> None:
    """Report a failure that was only logged; one that was reported before is left alone.

    The mark travels on the error itself: the call that failed with it, or the first line that
    logged it, has reported it.
    """
    if was_reported(error, error.tool):
        return
    capture_failure(error, tool=error.tool)
    mark_reported(error, error.tool)
