"""From a finished call or a captured error to an event in the queue.

A failure comes long after the last one, when nothing of this is in the processor's caches any more;
each function that is entered then costs some microseconds. What most events do not need is hence
asked for before it is called, not in it.

Cleaning and composing the texts of a failure takes many times longer than the rest of a capture,
so it happens on the sender thread. What waits meanwhile is a copy of the ``ToolError`` without
its exception: no frame, no local variable and no argument of the host is kept alive or sent.
Nothing leaves the process or reaches the disk before it was redacted.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping
from sys import getsizeof
from typing import Any, NamedTuple

from toolfault.errors import (
    Issue,
    ToolError,
    clean_name,
    exception_text,
    hide,
    secret_values,
    to_jsonable,
    withhold,
    without,
)
from toolfault.errors._classify import kind_of
from toolfault.errors._cleaning import clean_received, clean_text
from toolfault.errors._error import bounded_context, shown_snippet
from toolfault.telemetry._aggregator import LONGEST
from toolfault.telemetry._config import Config
from toolfault.telemetry._conversations import (
    ATTEMPT,
    ChainPosition,
    Scope,
    Tracker,
    active_span,
    attempt,
    current_scope,
    labels,
    name_of,
    span_ids,
    tool_name,
)
from toolfault.telemetry._guard import FAILED, guard
from toolfault.telemetry._queue import EVENT_BYTES, Item, Queue
from toolfault.telemetry._traceback import (
    Frame,
    Raised,
    head_and_tail,
    raised_chain,
    traceback_text,
    walk,
)
from toolfault.telemetry._trials import sample
from toolfault.tools import CallRecord

# A failure put aside by the caller in microseconds, and made into its wire form by the sender.


_ISSUES = 50
_MESSAGE = 8_000
_RECEIVED = 2_000


class Snapshot(NamedTuple):
    """A failure waiting for the sender.

    Attributes:
        error: A copy without cause, context and traceback.
        raised: The exceptions behind it, oldest first; empty for an authored failure.
        adapter_failed: Whether the tool's own ``adapt_error`` raised.
        size: Bytes it is charged for while it waits.
        arguments: What no text of the failure may quote: a copy of the call's arguments.
        capture_values: Whether values of arguments may be kept, secrets excepted.
        is_clean: Whether secrets and values were taken out already.
    """

    error: ToolError
    raised: tuple[Raised, ...]
    adapter_failed: bool
    size: int
    arguments: object
    capture_values: bool
    is_clean: bool = False


def take_snapshot(
    error: ToolError,
    arguments: object,
    *,
    adapter_failed: bool,
    capture_values: bool,
    copy: object = None,
) -> Snapshot:
    """Put ``error`` aside: everything that could change or be freed later is copied now.

    Args:
        error: The failure; not changed.
        arguments: What the tool was called with; no text may quote the secrets among them, and
            without *capture_values* no text that nobody wrote for a reader may quote any.
        adapter_failed: Whether the tool's own ``adapt_error`` raised.
        capture_values: Whether values of arguments may be kept.
        copy: The arguments once more, complete and nobody else's; None where there is no such
            copy. With one, the sender takes the values out; without, it is done here.
    """
    twin = ToolError.__new__(ToolError)
    state = twin.__dict__
    state.update(error.__dict__)
    state.pop("__notes__", None)
    if error.retry_context is not None:
        state["retry_context"] = to_jsonable(error.retry_context, redact=True)
    if "_issues" in state:
        state["_issues"] = tuple(map(Issue.copy, state["_issues"]))
    cause = error.__cause__
    raised: tuple[Raised, ...] = ()
    if cause is not None:
        state["_exception_type"] = kind_of(cause).full_name
        raised = _raised(cause, quoting=capture_values, is_call=error.phase != "validation")
    size = _size(twin, raised)
    if arguments is None or copy is not None:
        for each in raised:
            if len(each.message) > _MESSAGE:
                break
        else:
            return Snapshot(twin, raised, adapter_failed, size, copy, capture_values)
    return _cleaned(Snapshot(twin, raised, adapter_failed, size, arguments, capture_values))


def _cleaned(snapshot: Snapshot) -> Snapshot:
    """Return the failure without the secrets, and without the values, of its arguments."""
    twin, arguments = snapshot.error, snapshot.arguments
    secrets = secret_values(arguments)
    if secrets:
        hide(twin, secrets)
    withheld = None if snapshot.capture_values else withhold(twin, arguments)
    raised = []
    for each in snapshot.raised:
        text = str(without(each.message, secrets) or "")
        if withheld is not None:
            text = withheld.cut_out(text)
        raised.append(each._replace(message=head_and_tail(text, _MESSAGE)))
    if raised and raised[-1].quotes_values and twin.quotes_exception:
        # Its own text quotes the values it is about; the first line counts and names them.
        twin.__dict__["_message"] = raised[-1].message or raised[-1].name
    return snapshot._replace(raised=tuple(raised), arguments=None, is_clean=True)


def _raised(cause: BaseException, *, quoting: bool, is_call: bool) -> tuple[Raised, ...]:
    """Return the exceptions behind a failure, their texts as they are.

    What a library of validation raised before the tool ran (no *is_call*) has no frame of the host:
    all lie between the boundary and the library.
    """
    chain = []
    for error, link in raised_chain(cause):
        kind = kind_of(error)
        frames: tuple[Frame, ...] = ()
        omitted = 0
        if is_call or error is not cause or not kind.quotes_values:
            frames, omitted = walk(error.__traceback__)
        if kind.quotes_values:
            text = _first_line_of(error, quoting=quoting)
        else:
            text = exception_text(error)
        chain.append(
            Raised(kind.name, kind.module, text, frames, omitted, link, kind.quotes_values)
        )
    return tuple(chain)


def _first_line_of(error: Any, *, quoting: bool) -> str:
    """Return how many errors there are in what; pydantic can say it without writing them all.

    The first line of other libraries may quote the value.
    """
    try:
        count = error.error_count()
        return f"{count} validation error{'' if count == 1 else 's'} for {error.title}"[:_MESSAGE]
    except Exception:  # noqa: BLE001 - another library, or a class made to look like pydantic's
        return exception_text(error).partition("\n")[0][:_MESSAGE] if quoting else ""


def _size(error: ToolError, raised: tuple[Raised, ...]) -> int:
    """Return an estimate of the memory a snapshot failure takes, bytes: 10 to 40 % above the truth.

    The constants are what tracemalloc sees for failures with and without issues and frames.
    """
    state = error.__dict__
    size = _SNAPSHOT_BYTES + getsizeof(error.snippet) + getsizeof(error.received)
    if "_message" in state:
        size += getsizeof(state["_message"])
    for issue in state.get("_issues", ()):
        size += getsizeof(issue.message) + getsizeof(issue.received) + getsizeof(issue.sent)
        size += _ISSUE_BYTES
    for exception in raised:
        size += _RAISED_BYTES + _FRAME_BYTES * len(exception.frames) + getsizeof(exception.message)
    return size


_SNAPSHOT_BYTES = 700
_ISSUE_BYTES = 250
_RAISED_BYTES = 200
_FRAME_BYTES = 140


def error_member(snapshot: Snapshot) -> dict[str, Any]:
    """Return the ``error`` member of an event, every string cleaned and within its limit."""
    if not snapshot.is_clean:
        snapshot = _cleaned(snapshot)
    error = snapshot.error
    member: dict[str, Any] = {
        "code": str(error.code),
        "category": str(error.category),
        "audience": str(error.audience),
        "reason": str(error.reason) if error.reason is not None else None,
        "kind": str(error.kind) if error.kind is not None else None,
        "phase": error.phase,
        "field": _clean(error.field, 256) or None,
        "expected": _clean(error.expected, 500),
        "retryable": error.retryable,
        "retry_hint": _clean(error.retry_hint, 1_000),
        "retry_context": bounded_context(error),
        "issues": [_issue(issue) for issue in error.issues[:_ISSUES]],
        "issues_total": error.issues_total or None,
        "renderings": error.renderings(),
        "exception": _exception(snapshot.raised),
        "fingerprint": error.fingerprint,
        "adapter_failed": snapshot.adapter_failed or None,
        "received": clean_received(
            error.received,
            field=error.field,
            received_type=error.received_type,
            limit=_RECEIVED,
        ),
        "received_type": error.received_type,
        "snippet": shown_snippet(error),
    }
    return {name: value for name, value in member.items() if value is not None and value != []}


def _issue(issue: Issue) -> dict[str, Any]:
    """Return an issue, whose parts were cleaned when it was made."""
    member = {
        "field": issue.field,
        "field_pattern": issue.field_pattern,
        "code": str(issue.code),
        "type": issue.type[:64] if issue.type else None,
        "message": issue.message[:500],
        "expected": issue.expected,
        "received": issue.received,
        "received_type": issue.received_type,
        "near_miss": list(issue.near_miss)[:20] or None,
    }
    return {name: value for name, value in member.items() if value is not None}


def _exception(raised: tuple[Raised, ...]) -> dict[str, str] | None:
    if not raised:
        return None
    clean = tuple(
        r._replace(
            name=clean_name(r.name, 128),
            module=clean_name(r.module),
            message=_clean(r.message, 2_000) or "",
        )
        for r in raised
    )
    last = clean[-1]
    told = {"type": last.name, "module": last.module, "message": last.message}
    if len(clean) > 1 or last.frames:
        told["traceback"] = traceback_text(clean)
    return told


def _clean(text: str | None, limit: int) -> str | None:
    return None if text is None else clean_text(text, limit)


# The capture of calls, errors and changes.


class Capture:
    """Makes events; everything runs in the thread of the caller.

    Args:
        config: Settings.
        queue: Where events go.
        tracker: Says where a call stands in its conversation.
        clock: Present time, seconds since the epoch.
        new_id: Makes ids from a time.
        secret: Key of argument fingerprints.
        finish: Makes the wire form of an event.
    """

    def __init__(
        self,
        config: Config,
        queue: Queue,
        tracker: Tracker,
        *,
        clock: Callable[[], float],
        new_id: Callable[[float], str],
        secret: bytes,
        finish: Callable[[Mapping[str, Any]], dict[str, Any]],
    ) -> None:
        self.tags: dict[str, str] = {}
        self._config = config
        self._queue = queue
        self._tracker = tracker
        self._clock = clock
        self._new_id = new_id
        self._secret = secret
        self._finish = finish
        self._sequence = itertools.count()
        self._samples = min(config.sample_rate, config.failure_sample_rate) < 1.0

    # -- calls ---------------------------------------------------------------------------------

    def call(
        self, record: CallRecord, now: float, scope: Scope | None, position: ChainPosition
    ) -> None:
        """Capture a finished call whole.

        Args:
            record: The call.
            now: Its end by the client's clock.
            scope: Its conversation and turn.
            position: Where it stands there.
        """
        error = record.error
        event = self._base("tool_call", now, scope)
        event["turn"] = record.turn or event.get("turn")
        if record.call_id is not None:
            event["call_id"] = name_of(record.call_id)
        event["tool"] = tool_name(record.tool)
        same = record.tool_requested == record.tool
        event["tool_requested"] = event["tool"] if same else tool_name(record.tool_requested)
        event["success"] = record.success
        if record.framework is not None:
            event["framework"] = record.framework
            event["side"] = record.side
            event["counted_by"] = record.counted_by
        event["duration_ms"] = _duration(record.duration_ms)
        if record.coercions:
            event["coercions"] = [repair.to_dict() for repair in record.coercions[:50]]
        if record.phantom_arguments:
            event["phantom_arguments"] = list(record.phantom_arguments)
        if record.idempotent is not None:
            event["idempotent"] = record.idempotent
        if position.repeated:
            event["repeated"] = True
        event["validation"] = {"mode": record.validation_mode}
        event["schema_hash"] = record.schema_hash
        size = self._compare(event, position, record.arguments)
        if self._samples and not self._sampled(
            event, scope, failed=error is not None, position=position
        ):
            self._queue.discard("sampled")
            return
        self._send(event, error, record.arguments, size=size, adapter_failed=record.adapter_failed)
        for reported in record.reported if record.success else ():
            self.error(reported, arguments=None, call_id=record.call_id, quoted=record.arguments)

    def _compare(self, event: dict[str, Any], position: ChainPosition, arguments: object) -> int:
        """Add the attempt and its arguments; return the bytes these take in memory."""
        event["attempt"] = position.attempt
        if position.chain is not None:
            event["chain_id"] = position.chain.chain_id
        event["args_recorded"] = arguments is not None
        if arguments is None:
            return 0
        event[ATTEMPT], size = attempt(arguments, position.chain, self._secret)
        return size

    # -- errors and changes --------------------------------------------------------------------

    def error(
        self,
        error: ToolError,
        *,
        arguments: Mapping[str, Any] | str | None,
        call_id: str | None,
        quoted: Mapping[str, Any] | None = None,
    ) -> str | None:
        """Capture an error outside a call; the collector counts it as one failed call.

        Args:
            error: The error.
            arguments: What the tool was called with; None when that is not known.
            call_id: The provider's id of the call.
            quoted: Arguments of the call around it, which its texts may quote.
        """
        if self._config.ignores(error):
            self._queue.discard("ignored")
            return None
        now = self._clock()
        scope = current_scope()
        position = self._tracker.place_error(error.tool, scope, now)
        event = self._base("tool_error", now, scope)
        event["call_id"] = name_of(call_id)
        event["tool"] = tool_name(error.tool)
        event["tool_requested"] = tool_name(error.called)
        size = self._compare(event, position, arguments)
        if self._samples and not self._sampled(event, scope, failed=True, position=position):
            self._queue.discard("sampled")
            return None
        told = quoted if arguments is None else arguments
        return self._send(event, error, told, size=size, adapter_failed=False)

    def change(self, label: str, *, tool: str | None, kind: str) -> str | None:
        """Capture a marker; an unknown kind is a manual one."""
        now = self._clock()
        event = {
            "type": "change",
            "event_id": self._new_id(now),
            "occurred_at": now,
            "label": name_of(label, 200) or "change",
            "tool": name_of(tool),
            "kind": kind if type(kind) is str and kind in _KINDS_OF_CHANGE else "manual",
        }
        return self._send(event, None, None, size=0, adapter_failed=False)

    # -- shared --------------------------------------------------------------------------------

    def _base(self, kind: str, now: float, scope: Scope | None) -> dict[str, Any]:
        """Return the members that every event carries."""
        config = self._config
        event: dict[str, Any] = {
            "type": kind,
            "event_id": self._new_id(now),
            "occurred_at": now,
            "seq": next(self._sequence),
            "agent": config.agent,
            "environment": config.environment,
            "release": config.release,
        }
        tags = self.tags
        if scope is not None:
            conversation = scope.conversation
            event["session_id"] = conversation.id
            if conversation.rung != "explicit":
                event["conversation_rung"] = conversation.rung
            event["turn"] = scope.turn
            event["agent"] = conversation.agent or config.agent
            event["model"] = conversation.model
            event["user"] = conversation.user
            event["variant"] = conversation.variant
            tags = {**tags, **conversation.tags} if tags else conversation.tags
        if tags:
            event["tags"] = labels(tags)
        return event

    def _sampled(
        self, event: dict[str, Any], scope: Scope | None, *, failed: bool, position: ChainPosition
    ) -> bool:
        """Whether chance lets the event through; its rate is noted on it.

        A success that belongs to a chain goes where the failures of the chain go.
        """
        config = self._config
        if failed or position.whole:
            rate, salt = config.failure_sample_rate, "failures"
        else:
            rate, salt = config.sample_rate, "successes"
        if rate >= 1.0:
            return True
        unit = scope.conversation.id if scope is not None else event["event_id"]
        event["sample_rate"] = rate
        return sample(unit, salt) < rate

    def _send(
        self,
        event: dict[str, Any],
        error: ToolError | None,
        arguments: object,
        *,
        size: int,
        adapter_failed: bool,
    ) -> str | None:
        """Put an event into the queue and return its id."""
        size += EVENT_BYTES
        if error is not None:
            compared = event.get(ATTEMPT)
            snapshot = event["error"] = take_snapshot(
                error,
                arguments,
                adapter_failed=adapter_failed,
                capture_values=self._config.capture_values,
                copy=compared.arguments if compared is not None and compared.is_whole else None,
            )
            size += snapshot.size
            # The result the host got names its event, so that people can find it.
            error.event_id = event["event_id"]
        if "opentelemetry.trace" in sys.modules:
            # A span of the host may be of any make.
            guard("no trace ids", _add_trace, event, error)
        item = Item(event, size=size)
        if self._config.before_send is not None and not self._let_through(item, error):
            return None
        self._queue.put(item)
        return str(event["event_id"])

    def _let_through(self, item: Item, error: ToolError | None) -> bool:
        """Show an event to the host's ``before_send``; an event it chokes on is not sent."""
        before_send, finish = self._config.before_send, self._finish
        assert before_send is not None
        cause = error.cause if error is not None else None
        hint = {"error": error, "exception": cause, "tool": item.event.get("tool")}
        answer = guard("before_send failed", lambda: before_send(finish(item.event), hint))
        if answer is FAILED:
            self._queue.discard("before_send_failed")
            return False
        if answer is None:
            self._queue.discard("before_send")
            return False
        item.event = answer
        return True


def _duration(milliseconds: float) -> float:
    """Return a duration rounded down to microseconds; 0 for what cannot be one.

    Rounded up, a call could seem to have begun before the one it follows had ended.
    """
    return int(milliseconds * 1000.0) / 1000.0 if 0.0 <= milliseconds < LONGEST else 0.0


def _add_trace(event: dict[str, Any], error: ToolError | None) -> None:
    """Add the ids of the active span, and tell the span the code of the error."""
    span = active_span()
    if span is None:
        return
    ids = span_ids(span)
    if ids is not None:
        event["trace_id"], event["span_id"] = ids
    if error is not None:
        span.set_attribute("error.type", str(error.code))


_KINDS_OF_CHANGE = frozenset({"manual", "release", "schema", "variant"})
