"""One tool call: the record it leaves, who is told, and the call that runs right now.

Telemetry, the pytest fixture and tests subscribe here. Tools know nothing of who listens, so the
error contract works without a collector. A handler may report its own error and then raise: that
is one failure, not two. Whoever captures errors asks ``report`` first; if a call is running, the
call carries the error to its one record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from time import perf_counter, time
from typing import TYPE_CHECKING, Any, NamedTuple

from toolfault.errors import AvailabilityReason, ToolError

if TYPE_CHECKING:
    from toolfault.tools._checks import Findings

# The one seam through which finished calls leave this layer: who listens, and what they get.


class Repair(NamedTuple):
    """One value that was repaired before validation: where, and between which types.

    Attributes:
        field: Dotted path with ``*`` for list indexes.
        from_type: Python type name of what the model sent.
        to_type: Python type name of what the function got.
    """

    field: str
    from_type: str
    to_type: str

    def to_dict(self) -> dict[str, str]:
        """Return the repair as it travels in events."""
        return self._asdict()

    def __repr__(self) -> str:
        return f"Repair({self.field!r}, {self.from_type!r}, {self.to_type!r})"


class CallRecord:
    """One finished tool call; built only while somebody listens.

    The same object is the running call before it ends.

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
        phantom_arguments: Names of what the model sent, the tool does not have, and nobody
            refused: the tool ran without it.
        idempotent: Whether executing it again changes nothing more, as its tool declares; None
            where nobody says.
        framework: Name of the integration that saw the call, or None.
        side: ``agent`` or ``server`` (MCP), where an integration saw it.
        counted_by: Of a server's call: where its client says that it reports it (``Client.sink``).
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
    phantom_arguments: tuple[str, ...] = ()
    idempotent: bool | None = None
    framework: str | None = None
    side: str | None = None
    counted_by: str | None = None

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


def replace_observer(known: Observer, replacement: Observer) -> None:
    """Call ``replacement`` from now on where ``known`` was called; nothing where it was not."""
    global observers  # noqa: PLW0603
    observers = tuple(replacement if each == known else each for each in observers)


def notify(record: CallRecord) -> None:
    """Hand ``record`` to every observer; a failing one affects neither the call nor the others."""
    for observer in observers:
        try:
            observer(record)
        except Exception:  # noqa: BLE001, PERF203 - a listener hurts neither host nor others
            say(logging.DEBUG, "observer failed", exc_info=True)


# The one logger of the SDK. Its handlers and filters are the host's code, and may raise.

logger = logging.getLogger("toolfault")
logger.addHandler(logging.NullHandler())  # unless the host listens it says nothing, nor on stderr


def say(level: int, text: str, *args: object, **details: Any) -> None:
    """Write one line of the log; what a filter or handler of the host raises ends here."""
    try:
        logger.log(level, text, *args, **details)
    except Exception:  # noqa: BLE001 - the promise to the host
        return


def has_handler() -> bool:
    """Say whether any handler but a null one would get a record."""
    place: logging.Logger | None = logger
    while place is not None:
        for handler in place.handlers:
            if not issubclass(type(handler), logging.NullHandler):  # `isinstance` asks the handler
                return True
        place = place.parent if place.propagate else None
    return False


# The call that runs right now in this context, for logs and for errors a tool reports itself.

_MARK = "_toolfault_reported"
_attributes_of: Any = BaseException.__dict__["__dict__"].__get__  # whatever its class says
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
        if is_same or isinstance(error, ToolError):
            _attributes_of(error)[_MARK] = tool
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
        marks = _attributes_of(told)
        if _MARK in marks and (told is error or tool is None or marks[_MARK] == tool):
            return True
        told = told.__cause__
    return False


# One call on its way, and its one end.

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
        if clock is not None:
            self._began_by_host = reading()

    @property
    def started_at(self) -> float:  # type: ignore[override] # of a call it is seldom asked for
        """Start, seconds since the epoch."""
        return time() - (perf_counter() - self.began)

    @property
    def elapsed_by_host_ms(self) -> float | None:
        """Milliseconds since the call began by the host's clock; None where it does not say."""
        began, now = self._began_by_host, reading()
        return None if began is None or now is None else max(now - began, 0.0) * 1000.0


def finished(call: Call, result: object, error: ToolError | None) -> None:
    """Close the call and tell the observers; every path of every call ends here, once."""
    if call.finished:
        return
    call.finished = True
    if not observers and type(RUNNING.get()) is not Frame:
        return
    call.duration_ms = (perf_counter() - call.began) * 1000.0
    if clock is not None:
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
    notify(call)
