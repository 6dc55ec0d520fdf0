"""What a framework tells of one finished tool call, and the one function that makes an event of it.

Every integration fills a ``Seen`` and hands it to ``observe``. Whatever is hard about it is here,
once for all frameworks: cause chains, whose fault a failure is, unreadable JSON, control flow that
is no failure, what was told to the model, and finding all issues where a framework names one.

A call whose body may run is opened as a ``Call`` before, so that a decorated tool inside it leaves
no second record::

    with Call(lambda: Seen("some_framework", request.name, call_id=request.id)) as call:
        answer = original(request)
        text = call.ended(lambda seen: fill(seen, answer))
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter, time
from types import TracebackType
from typing import Any

from toolfault._forks import fork_safe_lock
from toolfault.errors import ErrorCategory, ToolError
from toolfault.integrations._conversation import conversation_of
from toolfault.integrations._discover import improves
from toolfault.integrations._failure import (
    causes,
    failure_of,
    improved,
    is_control_flow,
    reported_failure,
    shown,
)
from toolfault.telemetry._conversations import Conversation, current_scope
from toolfault.telemetry._guard import debug
from toolfault.tools import CallRecord, mark_reported, notify
from toolfault.tools._arguments import parsed
from toolfault.tools._call import RUNNING, Frame, RunningCall, leave
from toolfault.tools._phantoms import dropped, undeclared

__all__ = [
    "Call",
    "Seen",
    "current_call",
    "note",
    "note_answer",
    "observe",
    "open_call",
    "schema_of",
]

_PASSED = ("ok", "exec", "returned")  # how calls end whose arguments nobody refused
# Their schema is made for failures alone, of which a share would say nothing.
_WITHOUT_NAMES = frozenset({"agent_framework", "google_adk"})
_REMEMBERED = 4_096  # finished calls of which a second report is recognised


@dataclass(slots=True)
class Seen:
    """One tool call as a framework tells of it; everything but the first two may be unknown.

    Attributes:
        framework: Name of the integration (``langchain``).
        tool: Name as the model called it.
        side: ``agent``, or ``server`` for a server of tools (MCP).
        call_id: The provider's id of the call.
        turn: Id of the model turn that issued the call; calls of one turn are parallel.
        conversation: Id of the conversation, used where the host has opened none.
        rung: Where that id comes from: ``framework`` (a run or thread id), ``meta`` (the
            protocol's metadata) or ``handle`` (a handle that the client sends back).
        model: Name of the model.
        agent: Name of the agent.
        arguments: What the model sent: its text, or a mapping.
        schema: JSON schema that the model was shown.
        model_class: Class of which the framework makes the schema, where that costs too much for
            every call.
        known_tools: Names of the tools the model has.
        fn: The function behind the tool, if the framework tells; a decorated one has hints.
        idempotent: Whether executing the call again changes nothing more, as the tool declares.
        stage: How the call ended: ``ok``, ``parse`` (the arguments are not JSON), ``validation``
            (they were refused), ``unknown`` (no such tool), ``exec`` (the body raised),
            ``returned`` (it returned an error), ``timeout``, ``cancelled`` or ``control`` (an
            interrupt, a hand-off or the like: no failure).
        error: What was raised, outermost.
        result: What the tool returned.
        told: The text that the model reads of a failure.
        told_as: Makes what the model reads of a text, where the framework wraps it.
        duration_ms: Length of the call, milliseconds; None to take it from the open call.
        counted_by: Where the other side of a protocol says that it reports the call, which is not
            where this process does.
        failed_inside: Fills in what another process answered that the call asked, if it failed.
        reports: Whether this process reports the call; False where the other side of a protocol
            does, which wants to know what went wrong (``Call.error``).
        call: The open call this belongs to.
    """

    framework: str
    tool: str
    side: str = "agent"
    call_id: str | None = None
    turn: str | None = None
    conversation: str | None = None
    rung: str = "framework"
    model: str | None = None
    agent: str | None = None
    arguments: Any = None
    schema: Mapping[str, Any] | None = None
    model_class: Any = None
    known_tools: Sequence[str] = ()
    fn: Any = None
    idempotent: bool | None = None
    stage: str = "ok"
    error: BaseException | None = None
    result: Any = None
    told: str | None = None
    told_as: Callable[[str], str] | None = None
    duration_ms: float | None = None
    counted_by: str | None = None
    failed_inside: Callable[[Seen], None] | None = None
    reports: bool = True
    call: Call | None = field(default=None, repr=False)


class Call:
    """A tool call that a framework makes: open while the body may run.

    Inside another open call with the same id it does nothing: two integrations may see the same
    call, and the outer one sees what the model reads in the end. An exception that leaves the block
    is what the call ended with, unless something else was said before.

    Args:
        build: Tells what is known before the body runs; called inside the guard.
        refused: Adds to what is known what an exception of the framework means, which is
            ``Seen.error`` by then; called inside the guard.
    """

    __slots__ = ("_refused", "_token", "error", "frame", "is_over", "seen")

    def __init__(
        self, build: Callable[[], Seen], *, refused: Callable[[Seen], object] | None = None
    ) -> None:
        self._token: Any = None
        self._refused = refused
        self.frame: Frame | None = None
        self.is_over = False
        self.error: ToolError | None = None
        try:
            self.seen: Seen | None = build()
            around = open_call()
            call_id = self.seen.call_id
            if around is not None and call_id is not None and around.call_id == call_id:
                self.seen = None
            else:
                self.seen.call = self
                self.frame = Frame(str(self.seen.tool), call_id)
                self.frame.seen = self.seen
        except Exception:  # noqa: BLE001 - the promise to the host
            debug("an integration could not read a call")
            self.seen = None

    def __enter__(self) -> Call:
        if self.frame is not None:
            self._token = RUNNING.set(self.frame)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self.raised(error)
        if self._token is not None:
            leave(self._token)

    def ended(
        self, fill: Callable[[Seen], object] | None = None, *, improve: bool | None = None
    ) -> str | None:
        """Say how the call ended; the first word counts.

        Args:
            fill: Adds to what is known what came of the call; called inside the guard.
            improve: Whether a better text for the model is wanted; None as the host has asked for
                with ``instrument``.

        Returns:
            The text to put in place of the framework's, or None.
        """
        seen = self.seen
        if seen is None or self.is_over:
            return None

        def build() -> Seen:
            assert seen is not None
            if fill is not None:
                fill(seen)
            return seen

        return observe(build, improve=improves(seen.framework) if improve is None else improve)

    def raised(self, error: BaseException) -> None:
        """Say that the framework passes ``error`` on to the host."""

        def with_error(seen: Seen) -> None:
            seen.error = error
            if not isinstance(error, Exception) or type(error).__name__ == "CancelledError":
                seen.stage = "cancelled"
            elif seen.stage == "ok":
                seen.stage = "exec"
            if self._refused is not None:
                self._refused(seen)

        self.ended(with_error, improve=False)


def open_call() -> Frame | None:
    """Return the framework's call whose body runs in this context, or None."""
    running = RUNNING.get()
    return running if type(running) is Frame and not running.finished else None


def current_call() -> Call | None:
    """Return the call that is open in this context, for hooks inside of its framework."""
    frame = open_call()
    return None if frame is None else frame.seen.call


def note(**details: Any) -> None:
    """Add to the call that is open here what only an inner part of its framework knows.

    The first word counts, since the innermost part speaks first. Nothing happens where no call is
    open.

    Args:
        details: Attributes of ``Seen``.
    """
    frame = open_call()
    seen = None if frame is None else frame.seen
    if seen is None:
        return
    for name, value in details.items():
        is_unsaid = seen.stage == "ok" if name == "stage" else getattr(seen, name) in (None, ())
        if value is not None and is_unsaid:
            setattr(seen, name, value)


def note_answer(is_failure: Callable[[], bool], tell: Callable[[Seen], None]) -> None:
    """Say how the request that the open call made of another process was answered, last of all.

    A framework may turn a failure of it into control flow, which is none: then this one counts.

    Args:
        is_failure: Says whether the answer was a failure; called inside the guard.
        tell: Fills in what it tells; called inside the guard.
    """
    frame = open_call()
    if frame is None or frame.seen is None:
        return
    try:
        frame.seen.failed_inside = tell if is_failure() else None
    except Exception:  # noqa: BLE001 - the promise to the host
        debug("the answer of another process could not be read")


def observe(build: Callable[[], Seen], *, improve: bool = False) -> str | None:
    """Report one finished call, once, and say what to tell the model; never raises.

    Args:
        build: Makes the ``Seen``; all access to the framework's objects belongs in it, since an
            attribute may be missing in another version.
        improve: Whether a better text is wanted for arguments that cannot be read, that are wrong,
            and for tools that do not exist. Everything else keeps the framework's words.

    Returns:
        The text to put in place of the framework's, or None to leave it.
    """
    try:
        return _observed(build(), improve=improve)
    except Exception:  # noqa: BLE001 - the promise to the host
        debug("an integration could not report a call")
        return None


def _observed(seen: Seen, *, improve: bool) -> str | None:
    call, inner = seen.call, _closed(seen)
    if seen.stage == "control" or is_control_flow(seen.error):
        if seen.failed_inside is None:
            return None
        seen.stage, seen.error = "ok", None
        seen.failed_inside(seen)
    arguments = parsed(seen.arguments)
    if seen.stage != "parse" and arguments is None and inner is not None:
        arguments = inner.arguments if isinstance(inner.arguments, dict) else None
    if seen.told:
        seen.told = shown(seen.told, arguments)
    error = _failure(seen, arguments, inner)
    better = improved(seen, error) if improve and error is not None else None
    if error is not None:
        told = better or seen.told
        if told:
            told = told if seen.told_as is None else seen.told_as(told)
            error = error.with_(told=told)
    if call is not None:
        call.error = error
    conversation = conversation_of(seen)
    if seen.reports and _is_first(seen, conversation):
        _leave(_record(seen, arguments, error, inner), conversation)
    if seen.error is not None:
        mark_reported(seen.error, seen.tool)
    return better


def _closed(seen: Seen) -> RunningCall | None:
    """Close the open call and return the decorated call that it turned out to be."""
    if seen.call is None:
        return None
    seen.call.is_over = True
    frame = seen.call.frame
    if frame is None:
        return None
    frame.close()
    if frame.inner is None or _is_own(seen, frame.inner):
        return frame.inner
    _leave(frame.inner, conversation_of(seen))
    return None


def _failure(
    seen: Seen, arguments: dict[Any, Any] | None, inner: RunningCall | None
) -> ToolError | None:
    """Return the failure of the call; what the decorator found says more than the framework."""
    known = inner.error if inner is not None else None
    if known is None or seen.stage in ("parse", "timeout", "cancelled"):
        return failure_of(seen, arguments)
    if (
        seen.stage == "validation"
        and known.category is not ErrorCategory.PARAMETER
        and isinstance(known.cause, TypeError)
    ):  # the decorated function takes any arguments, for another one that does not
        return failure_of(seen, arguments)
    if seen.error is None or any(cause in (known, known.cause) for cause in causes(seen.error)):
        return known.with_(tool=str(seen.tool), tool_requested=None, event_id=None)
    return failure_of(seen, arguments)


def _is_own(seen: Seen, inner: RunningCall) -> bool:
    """Whether a decorated call inside is this very call; else a tool that its body called.

    A framework may know the function by another name, so only a failure that the body has dealt
    with tells the two apart.
    """
    if inner.error is None or inner.tool == seen.tool or seen.stage != "ok":
        return True
    return reported_failure(seen) is not None


_reported: OrderedDict[tuple[str | None, str], str] = OrderedDict()
_lock = fork_safe_lock()


def _is_first(seen: Seen, conversation: Conversation | None) -> bool:
    """Whether no other integration of this process has reported the call before.

    The same integration tells of each call once, and some models number their calls anew in every
    turn.
    """
    if seen.call_id is None:
        return True
    key = (conversation.id if conversation is not None else None, str(seen.call_id))
    with _lock:
        first = _reported.setdefault(key, seen.framework)
        if len(_reported) > _REMEMBERED:
            _reported.popitem(last=False)
    return first == seen.framework


def _record(
    seen: Seen,
    arguments: dict[Any, Any] | None,
    error: ToolError | None,
    inner: RunningCall | None,
) -> CallRecord:
    duration = seen.duration_ms
    frame = None if seen.call is None else seen.call.frame
    if duration is None:
        duration = 0.0 if frame is None else (perf_counter() - frame.began) * 1e3
    scope = current_scope()  # the host may have named the turn
    record = CallRecord(
        str(seen.tool),
        str(seen.tool),
        success=error is None,
        started_at=time() - duration / 1e3,
        duration_ms=duration,
        call_id=seen.call_id,
        arguments=arguments,
        error=error,
        turn=seen.turn or (None if scope is None else scope.turn),
        reported=() if frame is None else frame.reported,
    )
    if error is not None and error.category is ErrorCategory.PARAMETER and error.issues:
        record.validation_mode = "comprehensive"
    if seen.idempotent is not None:
        record.idempotent = seen.idempotent
    if inner is not None:
        if inner.idempotent is not None:
            record.idempotent = inner.idempotent
        record.coercions = inner.coercions
        record.adapter_failed = inner.adapter_failed
        record.schema_hash = inner.schema_hash
        record.reported = (*record.reported, *inner.reported)
        record.phantom_arguments = inner.phantom_arguments
    if arguments and not record.phantom_arguments and seen.stage in _PASSED:
        # What came to a tool of ours is known there; the framework may have dropped the rest.
        arrived = inner.arguments if inner is not None and isinstance(inner.arguments, dict) else {}
        rest = {name: value for name, value in arguments.items() if name not in arrived}
        record.phantom_arguments = _phantoms(seen, rest)
    record.framework, record.side = seen.framework, seen.side
    record.counted_by = seen.counted_by
    return record


def schema_of(model: Any) -> dict[str, Any] | None:
    """Return the schema of a pydantic class; None without a class, and where pydantic makes none.

    A parameter that the framework fills in itself may be of a class that no schema describes: the
    call is reported with what else is known.
    """
    try:
        return None if model is None else dict(model.model_json_schema())
    except Exception:  # noqa: BLE001 - the class is the host's
        return None


def _phantoms(seen: Seen, arguments: dict[Any, Any]) -> tuple[str, ...]:
    """Return what the model sent and the tool does not have, of a call that nobody refused."""
    if seen.framework in _WITHOUT_NAMES:
        return ()
    if seen.schema is not None:
        return undeclared(seen.schema, arguments)
    return dropped(arguments, seen.model_class)


def _leave(record: CallRecord, conversation: Conversation | None) -> None:
    if conversation is None:
        notify(record)
    else:
        with conversation:
            notify(record)
