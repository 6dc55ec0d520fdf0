"""Chains: what the calls of one tool in one conversation say about retrying.

The fold below is pure: ordered calls in, chains out. Ingest continues it from a stored chain
(`chain_store`), `doctor --recount` runs it over everything; both must give the same chains.

Rules ("strict, after seeing the error"):

* Calls are ordered by start, then ``seq``, then event id. A failure outside a chain opens one.
* A call is compared with the last `LOOK_BACK` failures of its chain and with nothing before them.
  So a call that arrives late changes no more than the calls up to the `LOOK_BACK`-th failure after
  it, unless it opens, ends or joins chains (`chain_store`).
* A call is *parallel* to a chain when the model could not have seen the chain's error as it issued
  the call: it has the same turn as such a failure, or, where one of the two turns is unknown, it
  started before that failure ended. A parallel failure adds to ``failures`` only; a parallel
  success is no part of the chain.
* Every other call is a round trip. A success ends the chain as recovered. Time never splits one.
* Calls without times (``time_source`` ``none``) are ordered and compared by ``seq`` and turn only.

What an unresolved chain comes to depends on the whole conversation (`conversations`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from toolfault_collector.clock import MINUTE_US

__all__ = [
    "IDENTICAL_REPEAT",
    "IDLE_US",
    "LOOK_BACK",
    "REPEAT_CONFUSION",
    "ROUND_TRIP",
    "SERIAL_DISCOVERY",
    "Call",
    "Chain",
    "Memory",
    "OrderKey",
    "Place",
    "Success",
    "Unresolved",
    "fold",
    "switches",
]

# When it began, its place among calls that began then, its tool and its turn.
Success = tuple[int, int, str, str | None]


class Unresolved(NamedTuple):
    """The end of a chain that has not succeeded.

    Attributes:
        tool: Whose chain it is.
        started_at: When its last call began.
        seq: The place of that call among those that began at the same moment.
        failed_until: When the last of its failures to end did.
        turn: The turn of its last failure.
    """

    tool: str
    started_at: int
    seq: int
    failed_until: int
    turn: str | None


def switches(success: Success, chain: Unresolved) -> bool:
    """Return whether *success* is one by which *chain* is switched.

    It is of another tool, after the chain's last call, and not beside its last failure: the model
    had seen that.
    """
    at, seq, tool, turn = success
    if tool == chain.tool or (at, seq) <= (chain.started_at, chain.seq):
        return False
    if turn is None or chain.turn is None:
        return at >= chain.failed_until
    return turn != chain.turn


# A conversation without a call for this long has ended.
IDLE_US: Final = 30 * MINUTE_US
# With so many failures of its chain a call is compared, and so far its position is counted: a chain
# of 50,000 calls costs no more per call than one of 50, also where a call arrives late. The longest
# chain of the transcripts that the rules were checked with has 11 calls.
LOOK_BACK: Final = 64

# What a call is to its chain, added up in ``tool_call.chain_marks``.
ROUND_TRIP: Final = 1
IDENTICAL_REPEAT: Final = 2  # a round trip with arguments that had failed
SERIAL_DISCOVERY: Final = 4  # a failed round trip names a field that no failure had named
REPEAT_CONFUSION: Final = 8  # a failed round trip names field and code of an earlier failure

OrderKey = tuple[int, int, str]


@dataclass(slots=True)
class Call:
    """One call as the fold sees it. Times are microseconds since the epoch.

    Attributes:
        fields: (field pattern, issue code) of each issue of a failure.
        time_source: Whose times these are; with ``none`` only ``seq`` and ``turn`` count.
        context: agent, model, environment, release, variant; kept from a chain's first failure.
    """

    event_id: str
    started_at: int
    occurred_at: int
    seq: int
    turn: str | None
    success: bool
    time_source: str = "client"
    code: str = ""
    category: str | None = None
    fields: tuple[tuple[str, str], ...] = ()
    message_id: int | None = None
    args_fingerprint: str | None = None
    tokens: int | None = None
    context: tuple[str | None, ...] = (None, None, None, None, None)

    @property
    def key(self) -> OrderKey:
        """Where the call stands among the calls of its tool in its conversation."""
        return (self.started_at, self.seq, self.event_id)


class Place(NamedTuple):
    """Where a call stands in its chain; field names are columns of ``tool_call``.

    Attributes:
        attempt: Position in the chain from 1; `LOOK_BACK` + 1 for every call after `LOOK_BACK`.
        chain_marks: What the call is to the chain, see `ROUND_TRIP`.
        lost_us: Time it adds to the time lost.
    """

    chain_id: str | None = None
    attempt: int | None = None
    chain_marks: int | None = None
    lost_us: int | None = None


@dataclass(slots=True)
class Memory:
    """What the last `LOOK_BACK` failures of a chain say to the next call.

    Every value has the number of the newest failure that it is of; the oldest come first. Of fields
    the newest `LOOK_BACK` are kept, since one failure may name many.

    Attributes:
        newest: Number of the newest failure.
        ends: The latest end of all, then the latest of those after it, and so on.
        unturned_ends: The same of failures whose turn is unknown.
    """

    newest: int = 0
    turns: dict[str, int] = field(default_factory=dict)
    fingerprints: dict[str, int] = field(default_factory=dict)
    fields: dict[tuple[str, str], int] = field(default_factory=dict)
    ends: list[list[int]] = field(default_factory=list)
    unturned_ends: list[list[int]] = field(default_factory=list)

    def add(self, call: Call) -> None:
        """Remember the failure *call*, and forget the oldest."""
        self.newest = number = self.newest + 1
        _add_end(self.ends, call.occurred_at, number)
        if call.turn is None:
            _add_end(self.unturned_ends, call.occurred_at, number)
        else:
            _put(self.turns, call.turn, number)
        if call.args_fingerprint is not None:
            _put(self.fingerprints, call.args_fingerprint, number)
        for pair in call.fields:
            _put(self.fields, pair, number)
        if len(self.fields) > LOOK_BACK:
            for pair in list(self.fields)[:-LOOK_BACK]:
                del self.fields[pair]
        if number > LOOK_BACK:
            self._forget(number - LOOK_BACK)

    def _forget(self, number: int) -> None:
        """Take away what no failure after *number* had."""
        for values in (self.turns, self.fingerprints, self.fields):
            _forget(values, number)
        for ends in (self.ends, self.unturned_ends):
            if ends and ends[0][1] <= number:
                del ends[0]

    def renumber(self, newest: int) -> None:
        """Let the newest failure have the number *newest*."""
        by, self.newest = newest - self.newest, newest
        self.turns = {value: number + by for value, number in self.turns.items()}
        self.fingerprints = {value: number + by for value, number in self.fingerprints.items()}
        self.fields = {value: number + by for value, number in self.fields.items()}
        self.ends = [[end, number + by] for end, number in self.ends]
        self.unturned_ends = [[end, number + by] for end, number in self.unturned_ends]


@dataclass(slots=True)
class Chain:
    """One chain, complete or still growing. Field names are mostly the columns of ``chain``.

    Attributes:
        outcome: ``recovered``, or what its conversation says that it comes to unresolved.
        settles_at: From when on it has that outcome; it is open before.
    """

    chain_id: str
    started_at: int
    first_seq: int
    first_failed_at: int
    first_code: str
    first_category: str | None
    first_field: str | None
    first_message_id: int | None
    context: tuple[str | None, ...]
    time_source: str
    last_started_at: int = 0
    last_seq: int = 0
    last_event_id: str = ""
    failed_until: int = 0
    last_failure_turn: str | None = None
    recovered_at: int | None = None
    calls: int = 0
    failures: int = 0
    round_trips: int = 0
    outcome: str = "abandoned"
    settles_at: int = 0
    identical_repeats: int = 0
    serial_discoveries: int = 0
    repeat_confusions: int = 0
    time_lost_us: int = 0
    tokens_lost: int = 0
    token_reports: int = 0
    # What the next call needs, beside the columns above; stored as `state` until recovered. After
    # the last member there may be parallel successes; `beside` is the order of the newest.
    memory: Memory = field(default_factory=Memory)
    beside: OrderKey | None = None
    attempt: int = 0
    members: list[tuple[Call, Place]] = field(default_factory=list)

    @classmethod
    def open(cls, call: Call) -> Chain:
        """Return the chain that the failed *call* opens."""
        chain = cls(
            chain_id=call.event_id,
            started_at=call.started_at,
            first_seq=call.seq,
            first_failed_at=call.occurred_at,
            first_code=call.code,
            first_category=call.category,
            first_field=call.fields[0][0] if call.fields else None,
            first_message_id=call.message_id,
            context=call.context,
            time_source=call.time_source,
        )
        chain._join(call, 0)
        chain._fail(call)
        return chain

    @property
    def last_key(self) -> OrderKey:
        """Order of the newest member."""
        return (self.last_started_at, self.last_seq, self.last_event_id)

    @property
    def last_at(self) -> int:
        """When the chain ended, as far as it is known."""
        return max(self.failed_until, self.recovered_at or self.failed_until)

    @property
    def recovered(self) -> bool:
        """Whether a success of the same tool ended the chain."""
        return self.recovered_at is not None

    @property
    def first_retry_fix(self) -> bool:
        """Whether the first call after the error was seen succeeded."""
        return self.recovered and self.round_trips == 1

    def add(self, call: Call) -> None:
        """Fold the next *call* of the same tool and conversation into this unrecovered chain."""
        seen = not self._is_parallel(call)
        if call.success and not seen:
            self.beside = max(self.beside or call.key, call.key)
            return
        self._join(call, self._marks(call) if seen else 0)
        if call.success:
            self.recovered_at = call.occurred_at
        else:
            self._fail(call)

    def _is_parallel(self, call: Call) -> bool:
        if call.turn is None:
            ends = self.memory.ends
        elif call.turn in self.memory.turns:
            return True
        else:
            ends = self.memory.unturned_ends
        return call.time_source != "none" and bool(ends) and call.started_at < ends[0][0]

    def _marks(self, call: Call) -> int:
        """Return what *call*, whose sender had seen the chain's error, is to the chain."""
        marks, known = ROUND_TRIP, self.memory.fields
        if call.args_fingerprint is not None and call.args_fingerprint in self.memory.fingerprints:
            marks |= IDENTICAL_REPEAT
        if call.fields and known and not call.success:
            named = {pattern for pattern, _ in known}
            if any(pattern not in named for pattern, _ in call.fields):
                marks |= SERIAL_DISCOVERY
            if any(pair in known for pair in call.fields):
                marks |= REPEAT_CONFUSION
        return marks

    def _join(self, call: Call, marks: int) -> None:
        lost = self._lost(call)
        self.calls += 1
        self.attempt = min(self.attempt, LOOK_BACK) + 1
        self.members.append((call, Place(self.chain_id, self.attempt, marks, lost)))
        self.last_started_at, self.last_seq, self.last_event_id = call.key
        if self.beside is not None and self.beside < call.key:
            self.beside = None
        self.time_lost_us += lost
        if marks:
            self.round_trips += 1
            self.identical_repeats += bool(marks & IDENTICAL_REPEAT)
            self.serial_discoveries += bool(marks & SERIAL_DISCOVERY)
            self.repeat_confusions += bool(marks & REPEAT_CONFUSION)

    def _lost(self, call: Call) -> int:
        """Return the time that *call* adds to the time lost.

        That is the time spent on failing calls and between attempts, each up to the idle limit:
        after that nobody was waiting. A call has that limit too, since an agent may ask a person
        for permission within it, and the answer may come in the morning. Overlapping calls are
        counted once.
        """
        if call.time_source == "none":
            return 0
        covered = self.memory.ends[0][0] if self.memory.ends else call.started_at
        lost = min(max(call.started_at - covered, 0), IDLE_US)
        if not call.success:
            lost += min(max(call.occurred_at - max(covered, call.started_at), 0), IDLE_US)
        return lost

    def _fail(self, call: Call) -> None:
        self.failures += 1
        self.memory.add(call)
        self.failed_until = self.memory.ends[0][0]
        self.last_failure_turn = call.turn
        if call.tokens is not None:
            self.tokens_lost += call.tokens
            self.token_reports += 1


def fold(calls: Iterable[Call], chain: Chain | None = None) -> list[Chain]:
    """Return the chains of *calls*: the ordered calls of one tool in one conversation.

    Args:
        calls: In order of `Call.key`.
        chain: The unrecovered chain that the calls continue, if there is one; it is changed, and
            is the first of the result.
    """
    chains = [] if chain is None else [chain]
    for call in calls:
        if chain is not None:
            chain.add(call)
            if chain.recovered_at is not None:
                chain = None
        elif not call.success:
            chain = Chain.open(call)
            chains.append(chain)
    return chains


def _put(values: dict[Any, int], value: Any, number: int) -> None:
    """Make *value* the newest of *values*."""
    values.pop(value, None)
    values[value] = number


def _forget(values: dict[Any, int], number: int) -> None:
    while values and values[oldest := next(iter(values))] <= number:
        del values[oldest]


def _add_end(ends: list[list[int]], end: int, number: int) -> None:
    while ends and ends[-1][0] <= end:
        del ends[-1]
    ends.append([end, number])
