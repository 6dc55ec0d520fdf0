"""Where a call stands in its conversation, and what the end of a conversation tells.

Bounded: conversations are kept in the order of their last call, and the one idle longest is ended
when there are too many. The queue's lock guards all of it.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from toolfault.telemetry._aggregator import Counter, CounterKey
from toolfault.telemetry._config import Config, Limits
from toolfault.telemetry._context import Scope, current_scope
from toolfault.telemetry._names import tool_name
from toolfault.telemetry._queue import EVENT_BYTES, Item, Queue

if TYPE_CHECKING:
    from toolfault.telemetry._arguments import Leaves
    from toolfault.tools import CallRecord

__all__ = ["Chain", "ChainPosition", "ConversationState", "Tracker"]

# Tool, agent, model and variant of a call: what the counter of a folded call is keyed by.
CallKey = tuple[str, "str | None", "str | None", "str | None"]

_WHOLE_AFTER_FAILURE = 20
_OPEN_CHAINS = 50
_TOOLS_PER_EVENT = 200
_ENDED_AT_ONCE = 20
_COUNTERS = 1_000  # kinds of calls outside any conversation that are folded at once


class Chain:
    """An unresolved chain of one tool.

    Attributes:
        chain_id: Made by the SDK; the collector computes its own chains.
        attempt: Number of the latest call, from 1.
        ended_at: End of the latest failure by the host's clock, seconds.
        turn: Model turn of the latest failure, or None.
        leaves: Arguments of the latest call, without values; None when unknown.
    """

    __slots__ = ("attempt", "chain_id", "ended_at", "leaves", "turn")

    def __init__(self, chain_id: str) -> None:
        self.chain_id = chain_id
        self.attempt = 0
        self.ended_at = 0.0
        self.turn: str | None = None
        self.leaves: Leaves | None = None

    def had_seen(self, turn: str | None, started_at: float) -> bool:
        """Whether a call was issued by a model that had seen the chain's latest failure."""
        same_turn = turn is not None and turn == self.turn
        return not same_turn and started_at >= self.ended_at


class ChainPosition(NamedTuple):
    """Where a call stands.

    Attributes:
        whole: Whether it is sent whole even if it succeeded.
        attempt: Its number in its chain; 1 outside any.
        chain: The chain it belongs to, or None.
    """

    whole: bool
    attempt: int
    chain: Chain | None


class ToolCounter:
    """Calls of one kind in one conversation, and the counter of its successes just now.

    Attributes:
        calls: How many there were, failed ones included.
        current: The counter, or None.
    """

    __slots__ = ("calls", "current")

    def __init__(self) -> None:
        self.calls = 0
        self.current: Counter | None = None


class ConversationState:
    """One conversation.

    Attributes:
        owner: Who follows it; None once it has ended.
        last_at: Time of its latest call by the client's clock.
        listed_at: What ``last_at`` was when it was put into the order of latest calls.
        calls: Calls by tool, agent, model and variant.
        failed: Whether any call failed.
        open: Unresolved chains by tool.
        whole_left: Successes still sent whole since the latest failure.
    """

    __slots__ = ("calls", "failed", "last_at", "listed_at", "open", "owner", "whole_left")

    def __init__(self) -> None:
        self.owner: object = None
        self.last_at = self.listed_at = 0.0
        self.calls: dict[CallKey, ToolCounter] = {}
        self.failed = False
        self.open: OrderedDict[str, Chain] = OrderedDict()
        self.whole_left = 0

    def fail(
        self,
        tool: str,
        *,
        turn: str | None,
        started_at: float,
        ended_at: float,
        new_id: Callable[[], str],
    ) -> ChainPosition:
        """Place a failed call: it opens a chain or goes on with one."""
        self.failed = True
        self.whole_left = _WHOLE_AFTER_FAILURE
        chain = self.open.get(tool)
        if chain is None:
            chain = self.open[tool] = Chain(new_id())
            if len(self.open) > _OPEN_CHAINS:
                self.open.popitem(last=False)
            chain.attempt = 1
        elif chain.had_seen(turn, started_at):
            chain.attempt += 1
        chain.turn = turn
        chain.ended_at = ended_at
        return ChainPosition(True, chain.attempt, chain)

    def succeed(self, tool: str, *, turn: str | None, started_at: float) -> ChainPosition:
        """Place a success: it ends the chain of its tool, or is sent whole beside an open one.

        The success that ends a chain is always sent whole, also when the other successes since
        the latest failure have used up their share: without it a recovery would be unknown.
        """
        chain = self.open.get(tool)
        if chain is not None and chain.had_seen(turn, started_at):
            del self.open[tool]
            return ChainPosition(True, chain.attempt + 1, chain)
        if self.open and self.whole_left > 0:
            self.whole_left -= 1
            return ChainPosition(True, 1, None)
        return ChainPosition(False, 1, None)


class Conversations:
    """All conversations with a call in the last half hour, at most ``limit``.

    Attributes:
        kinds: Kinds of calls in all of them, at most ``most_kinds``: a model can invent names of
            tools without end.
    """

    def __init__(self, limit: int, most_kinds: int, idle_seconds: float) -> None:
        self.kinds = 0
        self._limit = limit
        self._most_kinds = most_kinds
        self._idle_seconds = idle_seconds
        self._states: OrderedDict[str, ConversationState] = OrderedDict()
        self._left_open: OrderedDict[str, OrderedDict[str, Chain]] = OrderedDict()

    @property
    def is_full(self) -> bool:
        """Whether no further kind of call can be followed."""
        return self.kinds >= self._most_kinds

    def touch(self, conversation_id: str, now: float) -> tuple[ConversationState, bool]:
        """Return the state of a conversation that has a call now, and whether it is new.

        One that ended with open chains and goes on gets them back: time never splits a chain.
        """
        state = self._states.get(conversation_id)
        is_new = state is None
        if state is None:
            state = self._states[conversation_id] = ConversationState()
            state.open = self._left_open.pop(conversation_id, state.open)
        else:
            self._states.move_to_end(conversation_id)
        state.last_at = state.listed_at = now
        return state, is_new

    def pop(self, conversation_id: str) -> ConversationState | None:
        """Forget a conversation and return what was known of it; its open chains are kept."""
        state = self._states.pop(conversation_id, None)
        if state is None:
            return None
        state.owner = None
        self.kinds -= len(state.calls)
        if state.open:
            self._left_open[conversation_id] = state.open
            if len(self._left_open) > self._limit:
                self._left_open.popitem(last=False)
        return state

    def evict(self, now: float, *, at_most: int, room: int) -> list[tuple[str, ConversationState]]:
        """Forget and return conversations that are idle or too many, ``at_most`` of them.

        ``room`` further kinds of calls can be followed afterwards.

        Calls that are folded at once do not move their conversation in the order; one found at
        the front is moved when its turn has come.
        """
        gone: list[tuple[str, ConversationState]] = []
        while self._states and len(gone) < at_most:
            conversation_id, state = next(iter(self._states.items()))
            if state.last_at > state.listed_at:
                state.listed_at = state.last_at
                self._states.move_to_end(conversation_id)
                continue
            idle = now - state.last_at >= self._idle_seconds
            too_many = len(self._states) > self._limit or self.kinds + room > self._most_kinds
            if not idle and not too_many:
                break
            self.pop(conversation_id)
            gone.append((conversation_id, state))
        return gone

    def drain(self) -> list[tuple[str, ConversationState]]:
        """Forget and return all conversations: the process ends."""
        gone = list(self._states.items())
        for conversation_id, _ in gone:
            self.pop(conversation_id)
        return gone


_ALONE = ChainPosition(True, 1, None)
_ORDINARY = ChainPosition(False, 1, None)


class Tracker:
    """Follows conversations; the queue's lock guards it.

    Args:
        config: Settings.
        limits: Bounds.
        queue: Where counters and ends go.
        clock: Present time, seconds since the epoch.
        new_id: Makes ids from a time.
    """

    def __init__(
        self,
        config: Config,
        limits: Limits,
        queue: Queue,
        *,
        clock: Callable[[], float],
        new_id: Callable[[float], str],
    ) -> None:
        self._config = config
        self._folding = config.successes == "folded"
        self._queue = queue
        self._clock = clock
        self._new_id = new_id
        self._conversations = Conversations(
            limits.conversations, limits.conversation_lanes, limits.idle_seconds
        )
        self._counters: dict[CallKey, ToolCounter] = {}
        self._latest = self._noticed = 0.0
        self._noticed_at = time.monotonic()

    def place_call(
        self, record: CallRecord, scope: Scope | None, now: float
    ) -> ChainPosition | None:
        """Follow the conversation of a finished call; None when the call was folded.

        Args:
            record: The call.
            scope: Its conversation and turn.
            now: Its end by the client's clock.
        """
        failed = record.error is not None
        tool = tool_name(record.tool)
        with self._queue.lock:
            if scope is None:
                position = _ALONE if failed else _ORDINARY
                key: CallKey = (tool, self._config.agent, None, None)
                counter = (
                    self._counters.setdefault(key, ToolCounter())
                    if self._folding
                    else ToolCounter()
                )
            else:
                key, counter, state = self._count(tool, scope, now)
                position = _ORDINARY
                if failed or state.open:
                    position = self._place(state, tool, record, scope, now)
            if position.whole or not self._folding:
                return position
            repaired = [repair.field[:256] for repair in record.coercions]
            counter.current = self._queue.fold(
                self._counter_key(key, now),
                record.duration_ms,
                repaired,
                record.phantom_arguments,
            )
            if len(self._counters) > _COUNTERS:
                self._counters.clear()
            return None

    def fold_at_once(self, record: CallRecord, now: float) -> bool:
        """Count a success where its counter is at hand, in a microsecond; False where it is not.

        This is what almost every call of a healthy agent goes through: ``place_call`` has counted
        a call of this kind in this conversation and minute before, and no chain is open.

        Args:
            record: A call that succeeded without repairs.
            now: End of the call by the client's clock.
        """
        scope = current_scope()
        queue = self._queue
        with queue.lock:
            if scope is None:
                state = None
                counter = self._counters.get((record.tool, self._config.agent, None, None))
            else:
                conversation = scope.conversation
                state = conversation.state
                if state is None or state.owner is not self or state.open:
                    return False
                agent = conversation.agent or self._config.agent
                key = (record.tool, agent, conversation.model, conversation.variant)
                counter = state.calls.get(key)
            current = None if counter is None else counter.current
            if counter is None or current is None or not 0.0 <= now - current.starts_at < 60.0:
                return False
            current.add_call(record.duration_ms, ())
            counter.calls += 1
            queue.captured += 1
            if state is not None:
                state.last_at = self._latest = now
            return True

    def place_error(self, tool: str, scope: Scope | None, now: float) -> ChainPosition:
        """Follow the conversation of an error captured outside a call: it is a failed call."""
        if scope is None:
            return _ALONE
        tool = tool_name(tool)
        with self._queue.lock:
            _, _, state = self._count(tool, scope, now)
            return state.fail(
                tool,
                turn=scope.turn,
                started_at=now,
                ended_at=now,
                new_id=lambda: self._new_id(now),
            )

    def _count(
        self, tool: str, scope: Scope, now: float
    ) -> tuple[CallKey, ToolCounter, ConversationState]:
        conversation = scope.conversation
        key = (
            tool,
            conversation.agent or self._config.agent,
            conversation.model,
            conversation.variant,
        )
        self._latest = now
        if self._conversations.is_full:
            self._evict(now, room=1)
        state, is_new = self._conversations.touch(conversation.id, now)
        state.owner = self
        conversation.state = state
        counter = state.calls.get(key)
        if counter is None:
            counter = state.calls[key] = ToolCounter()
            self._conversations.kinds += 1
        counter.calls += 1
        if is_new:
            self._evict(now)
        return key, counter, state

    def _place(
        self, state: ConversationState, tool: str, record: CallRecord, scope: Scope, now: float
    ) -> ChainPosition:
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

    def _counter_key(self, key: CallKey | tuple[None, Any, Any, Any], now: float) -> CounterKey:
        tool, agent, model, variant = key
        config = self._config
        minute = int(now // 60.0)
        return (minute, tool, agent, model, variant, config.environment, config.release)

    # -- ends ----------------------------------------------------------------------------------

    def end(self, conversation_id: str) -> None:
        """Tell what is known about a conversation that ended."""
        with self._queue.lock:
            state = self._conversations.pop(conversation_id)
            if state is not None:
                self._tell(conversation_id, state, self._clock())

    def end_idle(self) -> bool:
        """End some conversations that had no call for too long; for the sender thread.

        Captures wait meanwhile, hence some: True says that there may be more.

        The client's clock is the host's and is not read from another thread: time goes on from
        its latest reading.
        """
        with self._queue.lock:
            if self._latest != self._noticed:
                self._noticed, self._noticed_at = self._latest, time.monotonic()
            return self._evict(self._latest + time.monotonic() - self._noticed_at)

    def end_all(self) -> None:
        """End every conversation: the process does."""
        now = self._clock()
        with self._queue.lock:
            for conversation_id, state in self._conversations.drain():
                self._tell(conversation_id, state, now)

    def _evict(self, now: float, *, room: int = 0) -> bool:
        """End conversations that are idle or too many; True when it was as many as at a time."""
        ended = self._conversations.evict(now, at_most=_ENDED_AT_ONCE, room=room)
        for conversation_id, state in ended:
            self._tell(conversation_id, state, now)
        return len(ended) == _ENDED_AT_ONCE

    def _tell(self, conversation_id: str, state: ConversationState, now: float) -> None:
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
                self._queue.put(Item(event, size=EVENT_BYTES + 200 * len(calls)))

    def _fold_conversation(self, state: ConversationState, now: float) -> None:
        """Add the conversation to the counters, per tool and over all tools.

        The sum of squared calls makes the cluster-robust variance of a rate exact without a row
        per conversation (design.md 3).
        """
        over_all: dict[tuple[None, Any, Any, Any], int] = {}
        for key, counter in state.calls.items():
            self._queue.fold_conversation(self._counter_key(key, now), counter.calls)
            every_tool = (None, *key[1:])
            over_all[every_tool] = over_all.get(every_tool, 0) + counter.calls
        for every_tool, calls in over_all.items():
            self._queue.fold_conversation(self._counter_key(every_tool, now), calls)


def _per_tool(state: ConversationState) -> list[dict[str, int]]:
    """Return the calls of a conversation by tool, in parts that one event can carry."""
    calls: dict[str, int] = {}
    for key, counter in state.calls.items():
        calls[key[0]] = calls.get(key[0], 0) + counter.calls
    pairs = list(calls.items())
    return [
        dict(pairs[at : at + _TOOLS_PER_EVENT]) for at in range(0, len(pairs), _TOOLS_PER_EVENT)
    ]
