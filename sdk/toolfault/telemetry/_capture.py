"""From a finished call or a captured error to an event in the queue.

A failure comes long after the last one, when nothing of this is in the processor's caches any more;
each function that is entered then costs some microseconds. What most events do not need is hence
asked for before it is called, not in it.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolfault.telemetry._aggregator import LONGEST
from toolfault.telemetry._config import Config
from toolfault.telemetry._context import Scope, active_span, current_scope, span_ids
from toolfault.telemetry._conversations import ChainPosition, Tracker
from toolfault.telemetry._guard import FAILED, guard
from toolfault.telemetry._names import labels, name_of, tool_name
from toolfault.telemetry._queue import EVENT_BYTES, Item, Queue
from toolfault.telemetry._trials import sample

if TYPE_CHECKING:
    from toolfault.errors import ToolError
    from toolfault.telemetry._snapshot import Details
    from toolfault.tools import CallRecord, Repair

__all__ = ["Capture"]


class Capture:
    """Makes events; everything runs in the thread of the caller.

    Args:
        config: Settings.
        queue: Where events go.
        tracker: Says where a call stands in its conversation.
        clock: Present time, seconds since the epoch.
        new_id: Makes ids from a time.
        secret: Makes the key of argument fingerprints, with the first one.
    """

    def __init__(
        self,
        config: Config,
        queue: Queue,
        tracker: Tracker,
        *,
        clock: Callable[[], float],
        new_id: Callable[[float], str],
        secret: Callable[[], bytes],
    ) -> None:
        self.tags: dict[str, str] = {}
        self._config = config
        self._queue = queue
        self._tracker = tracker
        self._clock = clock
        self._new_id = new_id
        self._make_secret = secret
        self._details: Details | None = None
        self._sequence = itertools.count()
        self._samples = min(config.sample_rate, config.failure_sample_rate) < 1.0

    # -- calls ---------------------------------------------------------------------------------

    def call(self, record: CallRecord, now: float | None = None) -> None:
        """Capture a finished call, folded or whole.

        Args:
            record: The call.
            now: Its end by the client's clock, where that was read already.
        """
        error = record.error
        if error is not None and self._config.ignore and self._is_ignored(error):
            self._queue.discard("ignored")
            return
        now = self._clock() if now is None else now
        scope = current_scope()
        position = self._tracker.place_call(record, scope, now)
        if position is None:
            return
        event = self._base("tool_call", now, scope)
        event["turn"] = record.turn or event.get("turn")
        event["call_id"] = name_of(record.call_id)
        event["tool"] = tool_name(record.tool)
        same = record.tool_requested == record.tool
        event["tool_requested"] = event["tool"] if same else tool_name(record.tool_requested)
        event["success"] = record.success
        if record.framework is not None:
            event["framework"] = record.framework
            event["side"] = record.side
        event["duration_ms"] = _duration(record.duration_ms)
        if record.coercions:
            event["coercions"] = _coercion_members(record.coercions)
        if record.phantom_arguments:
            event["phantom_arguments"] = list(record.phantom_arguments)
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
        details = self._details or self._load_details()
        return details.add_arguments(event, position.chain, arguments)

    def _load_details(self) -> Details:
        from toolfault.telemetry._snapshot import Details

        self._details = Details(self._make_secret(), capture_values=self._config.capture_values)
        return self._details

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
        if self._is_ignored(error):
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
        """Capture a marker."""
        now = self._clock()
        event = {"type": "change", "event_id": self._new_id(now), "occurred_at": now}
        event.update(_change_members(label, tool=tool, kind=kind))
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

    def _is_ignored(self, error: ToolError) -> bool:
        for rule in self._config.ignore:
            if isinstance(rule, str):
                if rule in (str(error.code), error.tool, type(error.cause).__name__):
                    return True
            elif isinstance(error, rule) or isinstance(error.cause, rule):
                return True
        return False

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
        details = self._details or self._load_details()
        size += EVENT_BYTES
        if error is not None:
            size += details.add_error(event, error, arguments, adapter_failed=adapter_failed)
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
        from toolfault.telemetry._event import finish

        before_send = self._config.before_send
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


def _change_members(label: str, *, tool: str | None, kind: str) -> dict[str, Any]:
    """Return what a marker says; an unknown kind is a manual one."""
    return {
        "label": name_of(label, 200) or "change",
        "tool": name_of(tool),
        "kind": kind if kind in ("manual", "release", "schema", "variant") else "manual",
    }


def _coercion_members(coercions: Sequence[Repair]) -> list[dict[str, str]]:
    """Return at most 50 repairs: field and types, never a value."""
    return [
        {"field": c.field[:256], "from_type": str(c.from_type), "to_type": str(c.to_type)}
        for c in coercions[:50]
    ]
