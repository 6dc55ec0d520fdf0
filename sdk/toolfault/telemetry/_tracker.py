"""Where a call stands in its conversation, and what the end of a conversation tells."""

from __future__ import annotations

import time
from collections.abc import Callable

from toolfault.telemetry._config import Config
from toolfault.telemetry._context import Scope, current_scope
from toolfault.telemetry._conversations import CallKey, Conversations, Lane, Placement, State
from toolfault.telemetry._fold import RowKey
from toolfault.telemetry._labels import tool_name
from toolfault.telemetry._limits import Limits
from toolfault.telemetry._outbox import EVENT_BYTES, Item, Outbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolfault.tools import CallRecord

__all__ = ["Tracker"]

_TOOLS_PER_EVENT = 200
_ENDED_AT_ONCE = 20
_LANES = 1_000  # kinds of calls outside any conversation that are folded at once
_ALONE = Placement(True, 1, None)
_ORDINARY = Placement(False, 1, None)


class Tracker:
    """Follows conversations; the outbox's lock guards it.

    Args:
        config: Settings.
        limits: Bounds.
        outbox: Where counters and ends go.
        clock: Present time, seconds since the epoch.
        new_id: Makes ids from a time.
    """

    def __init__(
        self,
        config: Config,
        limits: Limits,
        outbox: Outbox,
        *,
        clock: Callable[[], float],
        new_id: Callable[[float], str],
    ) -> None:
        self._config = config
        self._folding = config.successes == "folded"
        self._outbox = outbox
        self._clock = clock
        self._new_id = new_id
        self._conversations = Conversations(
            limits.conversations, limits.conversation_lanes, limits.idle_seconds
        )
        self._lanes: dict[CallKey, Lane] = {}
        self._latest = self._noticed = 0.0
        self._noticed_at = time.monotonic()

    def place_call(self, record: CallRecord, scope: Scope | None, now: float) -> Placement | None:
        """Follow the conversation of a finished call; None when the call was folded.

        Args:
            record: The call.
            scope: Its conversation and turn.
            now: Its end by the client's clock.
        """
        failed = record.error is not None
        tool = tool_name(record.tool)
        with self._outbox.lock:
            if scope is None:
                placement = _ALONE if failed else _ORDINARY
                key: CallKey = (tool, self._config.agent, None, None)
                lane = self._lanes.setdefault(key, Lane()) if self._folding else Lane()
            else:
                key, lane, state = self._count(tool, scope, now)
                placement = _ORDINARY
                if failed or state.open:
                    placement = self._place(state, tool, record, scope, now)
            if placement.whole or not self._folding:
                return placement
            repaired = [repair.field[:256] for repair in record.coercions]
            lane.row = self._outbox.fold(self._row(key, now), record.duration_ms, repaired)
            if len(self._lanes) > _LANES:
                self._lanes.clear()
            return None

    def fold_at_once(self, record: CallRecord, now: float) -> bool:
        """Count a success where its row is at hand, in a microsecond; False where it is not.

        This is what almost every call of a healthy agent goes through: ``place_call`` has counted
        a call of this kind in this conversation and minute before, and no chain is open.

        Args:
            record: A call that succeeded without repairs.
            now: End of the call by the client's clock.
        """
        scope = current_scope()
        outbox = self._outbox
        with outbox.lock:
            if scope is None:
                state = None
                lane = self._lanes.get((record.tool, self._config.agent, None, None))
            else:
                conversation = scope.conversation
                state = conversation.state
                if state is None or state.home is not self or state.open:
                    return False
                agent = conversation.agent or self._config.agent
                key = (record.tool, agent, conversation.model, conversation.variant)
                lane = state.calls.get(key)
            row = None if lane is None else lane.row
            if lane is None or row is None or not 0.0 <= now - row.starts_at < 60.0:
                return False
            row.add_call(record.duration_ms, ())
            lane.calls += 1
            outbox.book.captured += 1
            if state is not None:
                state.last_at = self._latest = now
            return True

    def place_error(self, tool: str, scope: Scope | None, now: float) -> Placement:
        """Follow the conversation of an error captured outside a call: it is a failed call."""
        if scope is None:
            return _ALONE
        tool = tool_name(tool)
        with self._outbox.lock:
            _, _, state = self._count(tool, scope, now)
            return state.fail(
                tool,
                turn=scope.turn,
                started_at=now,
                ended_at=now,
                new_id=lambda: self._new_id(now),
            )

    def _count(self, tool: str, scope: Scope, now: float) -> tuple[CallKey, Lane, State]:
        conversation = scope.conversation
        key = (
            tool,
            conversation.agent or self._config.agent,
            conversation.model,
            conversation.variant,
        )
        self._latest = now
        if self._conversations.is_full:
            self._end_surplus(now, room=1)
        state, is_new = self._conversations.touch(conversation.id, now)
        state.home = self
        conversation.state = state
        lane = state.calls.get(key)
        if lane is None:
            lane = state.calls[key] = Lane()
            self._conversations.lanes += 1
        lane.calls += 1
        if is_new:
            self._end_surplus(now)
        return key, lane, state

    def _place(
        self, state: State, tool: str, record: CallRecord, scope: Scope, now: float
    ) -> Placement:
        turn = record.turn or scope.turn
        started_at = now - record.duration_ms / 1000.0
        if record.error is None:
            return state.succeed(tool, turn=turn, started_at=started_at)
        return state.fail(
            tool,
            turn=turn,
            started_at=started_at,
            ended_at=now,
            new_id=lambda: self._new_id(now),
        )

    def _row(self, key: CallKey | tuple[None, Any, Any, Any], now: float) -> RowKey:
        tool, agent, model, variant = key
        config = self._config
        minute = int(now // 60.0)
        return (minute, tool, agent, model, variant, config.environment, config.release)

    # -- ends ----------------------------------------------------------------------------------

    def end(self, conversation_id: str) -> None:
        """Tell what is known about a conversation that ended."""
        with self._outbox.lock:
            state = self._conversations.pop(conversation_id)
            if state is not None:
                self._tell(conversation_id, state, self._clock())

    def end_idle(self) -> bool:
        """End some conversations that had no call for too long; for the sender thread.

        Captures wait meanwhile, hence some: True says that there may be more.

        The client's clock is the host's and is not read from another thread: time goes on from
        its latest reading.
        """
        with self._outbox.lock:
            if self._latest != self._noticed:
                self._noticed, self._noticed_at = self._latest, time.monotonic()
            return self._end_surplus(self._latest + time.monotonic() - self._noticed_at)

    def end_all(self) -> None:
        """End every conversation: the process does."""
        now = self._clock()
        with self._outbox.lock:
            for conversation_id, state in self._conversations.drain():
                self._tell(conversation_id, state, now)

    def _end_surplus(self, now: float, *, room: int = 0) -> bool:
        """End conversations that are idle or too many; True when it was as many as at a time."""
        ended = self._conversations.surplus(now, at_most=_ENDED_AT_ONCE, room=room)
        for conversation_id, state in ended:
            self._tell(conversation_id, state, now)
        return len(ended) == _ENDED_AT_ONCE

    def _tell(self, conversation_id: str, state: State, now: float) -> None:
        if self._folding:
            self._fold_conversation(state, now)
        if state.failed:
            for calls in _per_tool(state):
                event = {
                    "type": "conversation_end",
                    "event_id": self._new_id(now),
                    "occurred_at": now,
                    "session_id": conversation_id,
                    "calls": calls,
                }
                self._outbox.put(Item(event, size=EVENT_BYTES + 200 * len(calls)))

    def _fold_conversation(self, state: State, now: float) -> None:
        """Add the conversation to the counters, per tool and over all tools.

        The sum of squared calls makes the cluster-robust variance of a rate exact without a row
        per conversation (design.md 3).
        """
        over_all: dict[tuple[None, Any, Any, Any], int] = {}
        for key, lane in state.calls.items():
            self._outbox.fold_conversation(self._row(key, now), lane.calls)
            every_tool = (None, *key[1:])
            over_all[every_tool] = over_all.get(every_tool, 0) + lane.calls
        for every_tool, calls in over_all.items():
            self._outbox.fold_conversation(self._row(every_tool, now), calls)


def _per_tool(state: State) -> list[dict[str, int]]:
    """Return the calls of a conversation by tool, in parts that one event can carry."""
    calls: dict[str, int] = {}
    for key, lane in state.calls.items():
        calls[key[0]] = calls.get(key[0], 0) + lane.calls
    pairs = list(calls.items())
    return [
        dict(pairs[at : at + _TOOLS_PER_EVENT]) for at in range(0, len(pairs), _TOOLS_PER_EVENT)
    ]
