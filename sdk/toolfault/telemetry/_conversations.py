"""What the SDK remembers of conversations: open chains, and calls per tool.

Bounded: conversations are kept in the order of their last call, and the one idle longest is ended
when there are too many. The outbox's lock guards all of it.
"""

from __future__ import annotations

from collections import OrderedDict

from toolfault.telemetry._record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from toolfault.telemetry._arguments import Leaves
    from toolfault.telemetry._fold import Row

__all__ = ["CallKey", "Chain", "Conversations", "Lane", "Placement", "State"]

# Tool, agent, model and variant of a call: what the rows of a folded call are keyed by.
CallKey = tuple[str, "str | None", "str | None", "str | None"]

_WHOLE_AFTER_FAILURE = 20
_OPEN_CHAINS = 50


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

    def saw(self, turn: str | None, started_at: float) -> bool:
        """Whether a call was issued by a model that had seen the chain's latest failure."""
        same_turn = turn is not None and turn == self.turn
        return not same_turn and started_at >= self.ended_at


class Placement(Record):
    """Where a call stands.

    Attributes:
        whole: Whether it is sent whole even if it succeeded.
        attempt: Its number in its chain; 1 outside any.
        chain: The chain it belongs to, or None.
    """

    whole: bool
    attempt: int
    chain: Chain | None


class Lane:
    """Calls of one kind in one conversation, and the row that counts its successes just now.

    Attributes:
        calls: How many there were, failed ones included.
        row: The counter's row, or None.
    """

    __slots__ = ("calls", "row")

    def __init__(self) -> None:
        self.calls = 0
        self.row: Row | None = None


class State:
    """One conversation.

    Attributes:
        home: Who follows it; None once it has ended.
        last_at: Time of its latest call by the client's clock.
        listed_at: What ``last_at`` was when it was put into the order of latest calls.
        calls: Calls by tool, agent, model and variant.
        failed: Whether any call failed.
        open: Unresolved chains by tool.
        whole_left: Successes still sent whole since the latest failure.
    """

    __slots__ = ("calls", "failed", "home", "last_at", "listed_at", "open", "whole_left")

    def __init__(self) -> None:
        self.home: object = None
        self.last_at = self.listed_at = 0.0
        self.calls: dict[CallKey, Lane] = {}
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
    ) -> Placement:
        """Place a failed call: it opens a chain or goes on with one."""
        self.failed = True
        self.whole_left = _WHOLE_AFTER_FAILURE
        chain = self.open.get(tool)
        if chain is None:
            chain = self.open[tool] = Chain(new_id())
            if len(self.open) > _OPEN_CHAINS:
                self.open.popitem(last=False)
            chain.attempt = 1
        elif chain.saw(turn, started_at):
            chain.attempt += 1
        chain.turn = turn
        chain.ended_at = ended_at
        return Placement(True, chain.attempt, chain)

    def succeed(self, tool: str, *, turn: str | None, started_at: float) -> Placement:
        """Place a success: it ends the chain of its tool, or is sent whole beside an open one.

        The success that ends a chain is always sent whole, also when the other successes since
        the latest failure have used up their share: without it a recovery would be unknown.
        """
        chain = self.open.get(tool)
        if chain is not None and chain.saw(turn, started_at):
            del self.open[tool]
            return Placement(True, chain.attempt + 1, chain)
        if self.open and self.whole_left > 0:
            self.whole_left -= 1
            return Placement(True, 1, None)
        return Placement(False, 1, None)


class Conversations:
    """All conversations with a call in the last half hour, at most ``limit``.

    Attributes:
        lanes: Kinds of calls in all of them, at most ``most_lanes``: a model can invent names of
            tools without end.
    """

    def __init__(self, limit: int, most_lanes: int, idle_seconds: float) -> None:
        self.lanes = 0
        self._limit = limit
        self._most_lanes = most_lanes
        self._idle_seconds = idle_seconds
        self._states: OrderedDict[str, State] = OrderedDict()
        self._left_open: OrderedDict[str, OrderedDict[str, Chain]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._states)

    @property
    def is_full(self) -> bool:
        """Whether no further kind of call can be followed."""
        return self.lanes >= self._most_lanes

    def touch(self, conversation_id: str, now: float) -> tuple[State, bool]:
        """Return the state of a conversation that has a call now, and whether it is new.

        One that ended with open chains and goes on gets them back: time never splits a chain.
        """
        state = self._states.get(conversation_id)
        is_new = state is None
        if state is None:
            state = self._states[conversation_id] = State()
            state.open = self._left_open.pop(conversation_id, state.open)
        else:
            self._states.move_to_end(conversation_id)
        state.last_at = state.listed_at = now
        return state, is_new

    def pop(self, conversation_id: str) -> State | None:
        """Forget a conversation and return what was known of it; its open chains are kept."""
        state = self._states.pop(conversation_id, None)
        if state is None:
            return None
        state.home = None
        self.lanes -= len(state.calls)
        if state.open:
            self._left_open[conversation_id] = state.open
            if len(self._left_open) > self._limit:
                self._left_open.popitem(last=False)
        return state

    def surplus(self, now: float, *, at_most: int, room: int) -> list[tuple[str, State]]:
        """Forget and return conversations that are idle or too many, ``at_most`` of them.

        ``room`` further kinds of calls can be followed afterwards.

        Calls that are folded at once do not move their conversation in the order; one found at
        the front is moved when its turn has come.
        """
        gone: list[tuple[str, State]] = []
        while self._states and len(gone) < at_most:
            conversation_id, state = next(iter(self._states.items()))
            if state.last_at > state.listed_at:
                state.listed_at = state.last_at
                self._states.move_to_end(conversation_id)
                continue
            idle = now - state.last_at >= self._idle_seconds
            too_many = len(self._states) > self._limit or self.lanes + room > self._most_lanes
            if not idle and not too_many:
                break
            self.pop(conversation_id)
            gone.append((conversation_id, state))
        return gone

    def drain(self) -> list[tuple[str, State]]:
        """Forget and return all conversations: the process ends."""
        gone = list(self._states.items())
        for conversation_id, _ in gone:
            self.pop(conversation_id)
        return gone
