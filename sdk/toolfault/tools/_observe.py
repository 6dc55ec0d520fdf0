"""The one seam through which finished tool calls leave the tools layer.

Telemetry, the pytest fixture and tests subscribe here. Tools know nothing of who listens, so the
error contract works without a collector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolfault.errors import ToolError

__all__ = [
    "CallRecord",
    "Observer",
    "Repair",
    "notify",
    "observe",
    "reading",
    "time_calls_by",
    "unobserve",
]


class Repair:
    """One value that was repaired before validation: where, and between which types.

    Attributes:
        field: Dotted path with ``*`` for list indexes.
        from_type: Python type name of what the model sent.
        to_type: Python type name of what the function got.
    """

    __slots__ = ("field", "from_type", "to_type")

    def __init__(self, field: str, from_type: str, to_type: str) -> None:
        self.field = field
        self.from_type = from_type
        self.to_type = to_type

    def to_dict(self) -> dict[str, str]:
        """Return the repair as it travels in events."""
        return {"field": self.field, "from_type": self.from_type, "to_type": self.to_type}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Repair) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.field, self.from_type, self.to_type))

    def __repr__(self) -> str:
        return f"Repair({self.field!r}, {self.from_type!r}, {self.to_type!r})"


class CallRecord:
    """One finished tool call; built only while somebody listens.

    Written out instead of a dataclass: ``dataclasses`` imports ``inspect`` (17 ms), and the SDK
    has 30 ms for its whole import. The same object is the running call before it ends.

    Attributes:
        tool: Resolved tool name, the key of every analysis.
        tool_requested: Name as the model called it (alias, invented name).
        call_id: The provider's id of the call, or None.
        success: Whether the call succeeded.
        started_at: Start, seconds since the epoch.
        duration_ms: Length of the call, milliseconds: by the monotonic clock, or by the host's own
            where one is set (see ``time_calls_by``).
        arguments: Raw arguments as the model sent them, parsed, without context-injected ones;
            None when unknown. For fingerprints and near misses only, never sent.
        error: The failure, or None on success.
        coercions: Repairs made before validation: field, from type, to type.
        validation_mode: ``comprehensive`` (all issues at once), ``fail_fast`` or ``none``.
        schema_hash: 16 hex digits of the tool's parameter schema, or None.
        turn: Opaque model turn that issued the call; calls of one turn are parallel.
        result: What the call returned, for local checks; never sent.
        adapter_failed: Whether the tool's own ``adapt_error`` raised and the default one stood in.
        reported: Errors the handler reported itself while it ran (see ``report``). A failed call
            has absorbed them, a successful one has not: one event per call, none lost.
        framework: Name of the integration that saw the call, or None.
        side: ``agent`` or ``server`` (MCP), where an integration saw it.
    """

    # Defaults live on the class: a record of a success sets only what is its own, and it is built
    # on the path of every call.
    call_id: str | None = None
    success: bool = True
    duration_ms: float = 0.0
    arguments: Mapping[str, Any] | None = None
    error: ToolError | None = None
    coercions: tuple[Repair, ...] = ()
    validation_mode: str = "none"
    schema_hash: str | None = None
    turn: str | None = None
    result: object = None
    adapter_failed: bool = False
    reported: tuple[ToolError, ...] = ()
    framework: str | None = None
    side: str | None = None

    def __init__(  # noqa: PLR0913 - one record, one place where it is built
        self,
        tool: str,
        tool_requested: str,
        *,
        success: bool,
        started_at: float,
        duration_ms: float,
        call_id: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        error: ToolError | None = None,
        coercions: tuple[Repair, ...] = (),
        validation_mode: str = "none",
        schema_hash: str | None = None,
        turn: str | None = None,
        result: object = None,
        adapter_failed: bool = False,
        reported: tuple[ToolError, ...] = (),
    ) -> None:
        self.tool = tool
        self.tool_requested = tool_requested
        self.call_id = call_id
        self.success = success
        self.started_at = started_at
        self.duration_ms = duration_ms
        self.arguments = arguments
        self.error = error
        self.coercions = coercions
        self.validation_mode = validation_mode
        self.schema_hash = schema_hash
        self.turn = turn
        self.result = result
        self.adapter_failed = adapter_failed
        self.reported = reported

    def __repr__(self) -> str:
        state = "succeeded" if self.success else "failed"
        return f"<CallRecord {self.tool!r} {state} after {self.duration_ms:.3f} ms>"


Observer = Callable[[CallRecord], None]

observers: tuple[Observer, ...] = ()
"""Who listens. Replaced as a whole, never mutated: the hot path reads it without a lock."""


clock: Callable[[], float] | None = None
"""The host's own clock, where ``init(clock=)`` set one."""


def time_calls_by(host_clock: Callable[[], float] | None) -> None:
    """Take the durations of calls that begin from now on from ``host_clock``.

    Args:
        host_clock: Present time in seconds; None for the monotonic clock.
    """
    global clock  # noqa: PLW0603 - one process-wide clock, as there is one client
    clock = host_clock


def reading() -> float | None:
    """Return what the host's clock says; None where there is none or it fails."""
    if clock is None:
        return None
    try:
        return float(clock())
    except Exception:  # noqa: BLE001 - the host's function; the monotonic clock stands in
        return None


def observe(observer: Observer) -> None:
    """Call ``observer`` once for every finished tool call, in the caller's thread and context.

    Args:
        observer: Must be quick and must not block; what it raises is logged and swallowed.
    """
    global observers  # noqa: PLW0603 - one process-wide list, see above
    if observer not in observers:
        observers = (*observers, observer)


def unobserve(observer: Observer) -> None:
    """Stop calling ``observer``; unknown observers are ignored."""
    global observers  # noqa: PLW0603
    observers = tuple(known for known in observers if known != observer)


def notify(record: CallRecord) -> None:
    """Hand ``record`` to every observer; a failing one affects neither the call nor the others."""
    for observer in observers:
        try:
            observer(record)
        except Exception:  # noqa: PERF203 - a listener must never hurt the host or the others
            import logging

            logging.getLogger("toolfault").debug("observer failed", exc_info=True)
