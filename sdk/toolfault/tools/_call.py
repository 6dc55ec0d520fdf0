"""One tool call on its way through the SDK, and the one record it leaves."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter, time
from typing import TYPE_CHECKING, Any

from toolfault.tools import _observe
from toolfault.tools._running import RunningCall, mark_reported

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
        self.raw = raw
        self.started_at = time()
        self._began = perf_counter()
        if _observe.clock is not None:
            self._began_by_host = _observe.reading()

    @property
    def elapsed_ms(self) -> float:
        """Milliseconds since the call began."""
        began = self._began_by_host
        if began is not None:
            now = _observe.reading()
            if now is not None:
                return max(now - began, 0.0) * 1000.0
        return (perf_counter() - self._began) * 1000.0


def finished(call: Call, result: object, error: ToolError | None) -> None:
    """Close the call and tell the observers; every path of every call ends here, once."""
    if call.finished:
        return
    call.finished = True
    observers = _observe.observers
    if not observers:
        return
    call.duration_ms = call.elapsed_ms
    call.result = result
    if error is not None:
        call.success = False
        call.error = error
        mark_reported(error)
    _observe.notify(call)
