"""The tool call that runs right now in this context, for logs and for errors a tool reports itself.

A handler may report its own error and then raise: that is one failure, not two. Whoever captures
errors asks ``report`` first; if a call is running, the call carries the error to its one record.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from time import perf_counter
from typing import TYPE_CHECKING, Any

from toolfault.tools._observe import CallRecord

if TYPE_CHECKING:
    from toolfault.errors import ToolError

__all__ = [
    "RUNNING",
    "Frame",
    "RunningCall",
    "leave",
    "mark_reported",
    "report",
    "running_call",
    "was_reported",
]

_MARK = "_toolfault_reported"
_MAX_CAUSES = 10  # a chain of causes may be circular; ten links are more than any real one has


class RunningCall(CallRecord):
    """A record in the making: ``tool``, ``tool_requested`` and ``call_id`` are known.

    Attributes:
        finished: Whether the call has ended; its record is complete then.
    """

    finished: bool = False


class Frame(RunningCall):
    """A call that a framework makes of a tool, open while the tool's body may run.

    It is the running call of the body, so that what the body reports belongs to it. A decorated
    tool that the framework calls attaches its own call here instead of leaving a record: the
    framework knows the ids, the decorator knows what went wrong.

    Args:
        tool: The tool, as the framework calls it.
        call_id: The provider's id of the call, or None.
    """

    inner: RunningCall | None = None
    seen: Any = None  # what the integration knows of the call
    ended: float | None = None

    def __init__(self, tool: str, call_id: str | None = None) -> None:
        self.tool = self.tool_requested = tool
        self.call_id = call_id
        self.began = perf_counter()

    def attach(self, call: RunningCall, began: float) -> bool:
        """Take the finished call of a decorated tool and say whether it leaves no record.

        The last try counts where a framework tries again by itself. What ends after the framework
        has stopped waiting for it was counted by its time-out. Other tools that the body calls
        are calls of their own.

        Args:
            call: The call; its record is complete.
            began: When it began, by ``perf_counter``.
        """
        if self.finished:
            return self.ended is not None and began < self.ended
        if self.inner is not None and self.inner.tool != call.tool:
            return False
        self.inner = call
        return True

    def close(self) -> None:
        """Say that the framework has its result; what still runs is late."""
        self.finished = True
        self.ended = perf_counter()


RUNNING: ContextVar[RunningCall | None] = ContextVar("toolfault_running_call", default=None)


def leave(token: Token[RunningCall | None]) -> None:
    """Make the call before it the running one again."""
    try:
        RUNNING.reset(token)
    except ValueError:  # a coroutine that is closed from another context
        return


def running_call() -> RunningCall | None:
    """Return the tool call whose handler runs in this context, or None."""
    call = RUNNING.get()
    # A task started by the handler keeps this context after the call has ended.
    return None if call is None or call.finished else call


def report(error: ToolError, *, tool: str | None = None) -> bool:
    """Attach ``error`` to the running call and say whether there is one to carry it.

    Args:
        error: What the handler reports.
        tool: Name of the tool the error is about; another tool's error is not attached.

    Returns:
        True if the record of the running call will carry the error (``CallRecord.reported``), so
        that the caller must not emit an event of its own.
    """
    call = running_call()
    if call is None or (tool is not None and tool not in (call.tool, call.tool_requested)):
        return False
    call.reported = (*call.reported, error)
    return True


def mark_reported(error: BaseException | None, tool: str | None = None) -> None:
    """Note on an error and its causes that a record carries them, so that nothing repeats it.

    What it was raised from is the same failure. What merely was being handled as it was raised is
    so only if it is a ``ToolError``: any other may be the failure of somebody else.

    Args:
        error: What failed.
        tool: The tool that failed with it.
    """
    is_same = True
    for _ in range(_MAX_CAUSES):
        if error is None:
            return
        if is_same or hasattr(error, "event_id"):  # a ToolError, without importing the class here
            _own(error)[_MARK] = tool
        is_same = is_same and error.__cause__ is not None
        error = error.__cause__ or error.__context__


def was_reported(error: BaseException, tool: str | None = None) -> bool:
    """Say whether a record or an earlier log line has reported ``error``.

    Args:
        error: What failed.
        tool: The tool it is about to be reported for. An error that was only raised from that of
            another tool is a failure of its own.
    """
    told: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if told is None:
            return False
        marks = _own(told)
        if _MARK in marks and (told is error or tool is None or marks[_MARK] == tool):
            return True
        told = told.__cause__
    return False


def _own(error: BaseException) -> dict[str, object]:
    """Return the attributes of an error without running code of its class."""
    found: dict[str, object] = object.__getattribute__(error, "__dict__")
    return found
