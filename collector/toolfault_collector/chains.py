"""Chains: what the calls of one tool in one conversation say about retrying.

The fold below is pure: ordered calls in, chains out. Ingest continues it from a stored chain
(`chain_store`), `doctor --recount` runs it over everything; both must give the same chains.

Rules (design.md 4.3, "strict, after seeing the error"):

* Calls are ordered by start, then ``seq``, then event id. A failure outside a chain opens one.
* A call is *parallel* to a chain when the model could not have seen the chain's error as it issued
  the call: it has the same turn as a failure of the chain, or, where one of the two turns is
  unknown, it started before that failure ended. A parallel failure adds to ``failures`` only; a
  parallel success is no part of the chain.
* Every other call is a round trip. A success ends the chain as recovered. Time never splits one.
* Calls without times (``time_source`` ``none``) are ordered and compared by ``seq`` and turn only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, case, literal, or_

from toolfault_collector.clock import MINUTE_US
from toolfault_collector.tables import chain as chain_table
from toolfault_collector.tables import conversation

__all__ = ["IDLE_US", "Call", "Chain", "OrderKey", "fold", "outcome_at"]

# A conversation without a call for this long has ended (design.md section 1).
IDLE_US: Final = 30 * MINUTE_US
# What a chain remembers of itself is bounded, so that a chain of 50,000 calls costs no more per
# call than one of 50: the newest distinct turns, argument fingerprints and field codes.
REMEMBERED: Final = 64

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


@dataclass(slots=True)
class Chain:
    """One chain, complete or still growing. Field names are the columns of the table ``chain``."""

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
    last_at: int = 0
    last_started_at: int = 0
    last_seq: int = 0
    last_event_id: str = ""
    failed_until: int = 0
    last_failure_turn: str | None = None
    calls: int = 0
    failures: int = 0
    round_trips: int = 0
    recovered_at: int | None = None
    identical_repeats: int = 0
    serial_discovery: bool = False
    repeat_confusion: bool = False
    time_lost_us: int = 0
    tokens_lost: int | None = None
    # What the next call needs, beside the columns above; stored as `state` until recovered.
    turns: list[str] = field(default_factory=list)
    unturned_until: int | None = None
    covered_until: int = 0
    fingerprints: list[str] = field(default_factory=list)
    seen_fields: list[tuple[str, str]] = field(default_factory=list)
    members: list[tuple[Call, int]] = field(default_factory=list)

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
            covered_until=call.started_at,
        )
        chain._join(call)
        chain._fail(call, seen=False)
        return chain

    @property
    def last_key(self) -> OrderKey:
        """Order of the newest member."""
        return (self.last_started_at, self.last_seq, self.last_event_id)

    @property
    def forgets(self) -> bool:
        """Whether a turn that is new to the chain takes the place of one it remembers."""
        return len(self.turns) >= REMEMBERED

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
            return
        self._join(call)
        if seen:
            self.round_trips += 1
            if call.args_fingerprint is not None and call.args_fingerprint in self.fingerprints:
                self.identical_repeats += 1
        if call.success:
            self.recovered_at = call.occurred_at
        else:
            self._fail(call, seen=seen)

    def _is_parallel(self, call: Call) -> bool:
        if call.turn is not None:
            if call.turn in self.turns:
                return True
            until = self.unturned_until
        else:
            until = self.failed_until
        return self.time_source != "none" and until is not None and call.started_at < until

    def _join(self, call: Call) -> None:
        self.calls += 1
        self.members.append((call, self.calls))
        self.last_at = max(self.last_at, call.occurred_at)
        self.last_started_at, self.last_seq, self.last_event_id = call.key
        if self.time_source == "none":
            return
        # Lost is the time spent on failing calls and between attempts, where a pause counts up to
        # the idle limit: after that nobody was waiting. Overlapping calls are counted once.
        self.time_lost_us += min(max(call.started_at - self.covered_until, 0), IDLE_US)
        self.covered_until = max(self.covered_until, call.started_at)
        if not call.success:
            self.time_lost_us += max(call.occurred_at - self.covered_until, 0)
            self.covered_until = max(self.covered_until, call.occurred_at)

    def _fail(self, call: Call, *, seen: bool) -> None:
        self.failures += 1
        self.failed_until = max(self.failed_until, call.occurred_at)
        self.last_failure_turn = call.turn
        if call.tokens is not None:
            self.tokens_lost = (self.tokens_lost or 0) + call.tokens
        if call.turn is None:
            self.unturned_until = max(self.unturned_until or 0, call.occurred_at)
        else:
            _remember(self.turns, call.turn)
        if call.args_fingerprint is not None:
            _remember(self.fingerprints, call.args_fingerprint)
        if seen and call.fields and self.seen_fields:
            named = {pattern for pattern, _ in self.seen_fields}
            self.serial_discovery |= any(pattern not in named for pattern, _ in call.fields)
            self.repeat_confusion |= any(pair in self.seen_fields for pair in call.fields)
        for pair in call.fields:
            _remember(self.seen_fields, pair)


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
            if chain.recovered:
                chain = None
        elif not call.success:
            chain = Chain.open(call)
            chains.append(chain)
    return chains


def outcome_at(now_us: int) -> ColumnElement[str]:
    """Return the outcome, as of *now_us*, of the rows of ``chain`` joined with ``conversation``.

    A conversation is over when its end was reported after its last call, when it has been idle for
    30 minutes, or when its source has no times (a finished transcript).
    """
    over = or_(
        conversation.c.ended_at >= conversation.c.last_at,
        conversation.c.last_at <= now_us - IDLE_US,
        conversation.c.time_source == "none",
    )
    return case(
        (chain_table.c.recovered_at.is_not(None), literal("recovered")),
        (and_(over, _switched()), literal("switched")),
        (over, literal("abandoned")),
        else_=literal("open"),
    )


def _switched() -> ColumnElement[bool]:
    """Whether a different tool succeeded after the chain's last failure, not beside it."""
    conv, chain = conversation.c, chain_table.c
    own_is_newest = conv.success_tool == chain.tool

    def newest_other(column: str) -> ColumnElement[Any]:
        return case(
            (own_is_newest, conv[f"other_success_{column}"]), else_=conv[f"success_{column}"]
        )

    at, seq, turn = newest_other("at"), newest_other("seq"), newest_other("turn")
    later = or_(at > chain.last_started_at, and_(at == chain.last_started_at, seq > chain.last_seq))
    turns_known = and_(turn.is_not(None), chain.last_failure_turn.is_not(None))
    return and_(
        newest_other("tool").is_not(None),
        later,
        case((turns_known, turn != chain.last_failure_turn), else_=at >= chain.failed_until),
    )


def _remember(memory: list[Any], item: Any) -> None:
    """Put *item* last in *memory*, which keeps the newest distinct `REMEMBERED` items."""
    if item in memory:
        memory.remove(item)
    elif len(memory) >= REMEMBERED:
        del memory[0]
    memory.append(item)
