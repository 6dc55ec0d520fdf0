"""One tool call on its way through the SDK, and the one record it leaves."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter, time
from typing import TYPE_CHECKING, Any

from toolfault.tools import _observe
from toolfault.tools._running import RUNNING, Frame, RunningCall, mark_reported

if TYPE_CHECKING:
    from toolfault.errors import AvailabilityReason, ToolError
    from toolfault.tools._checks import Findings

__all__ = ["Call", "finished"]

_NOTHING: Mapping[str, Any] = {}


class Call(RunningCall):
    """One call: what came in, how far it got, what came out. It becomes its own record.

    Attributes:
        raw: Arguments as they came in.
        injected: Values for context parameters.
        phase: ``parse``, ``validation`` or ``handler``; decides what an exception means.
        reason: Why the tool is not available.
        findings: What the validation found; kept for describing a rejection.
        rejection: The failure that our own checks made of it.
    """

    raw: object = None
    injected: Mapping[str, Any] = _NOTHING
    phase: str = "validation"
    reason: AvailabilityReason | None = None
    findings: Findings | None = None
    rejection: ToolError | None = None
    _began_by_host: float | None = None

    def __init__(self, tool: str, tool_requested: str, raw: object = None) -> None:
        self.tool = tool
        self.tool_requested = tool_requested
        if raw is not None:
            self.raw = raw
        self.began = perf_counter()
        if _observe.clock is not None:
            self._began_by_host = _observe.reading()

    @property
    def started_at(self) -> float:  # type: ignore[override] # of a call it is seldom asked for
        """Start, seconds since the epoch."""
        return time() - (perf_counter() - self.began)

    @property
    def elapsed_by_host_ms(self) -> float | None:
        """Milliseconds since the call began by the host's clock; None where it does not say."""
        began, now = self._began_by_host, _observe.reading()
        return None if began is None or now is None else max(now - began, 0.0) * 1000.0


def finished(call: Call, result: object, error: ToolError | None) -> None:
    """Close the call and tell the observers; every path of every call ends here, once."""
    if call.finished:
        return
    call.finished = True
    if not _observe.observers and type(RUNNING.get()) is not Frame:
        return
    call.duration_ms = (perf_counter() - call.began) * 1000.0
    if _observe.clock is not None:
        by_host = call.elapsed_by_host_ms
        call.duration_ms = call.duration_ms if by_host is None else by_host
    call.result = result
    if error is not None:
        call.success = False
        call.error = error
        mark_reported(error, call.tool)
    around = RUNNING.get()
    if type(around) is Frame and around.attach(call, call.began):
        return
    _observe.notify(call)
