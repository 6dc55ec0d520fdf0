"""Fix next: which repair of which tool would have saved the most calls.

What each failure could have been spared by (see `opportunities`) is added up by fix here. Savings
are counted in the past and stated per week; that the future is like the past is the assumption
behind every one.

The interval treats conversations as they come: a compound Poisson process, whose total S has
variance sum(s_i ** 2) over conversations (W. Feller, An Introduction to Probability Theory, vol. 1,
XII.2), normal approximation, cut at 0.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import NamedTuple

from toolfault_dashboard.analysis.fixes.opportunities import FixKey, Opportunity
from toolfault_dashboard.analysis.rates import critical_value

__all__ = [
    "Fix",
    "Outline",
    "Since",
    "Tallied",
    "Tally",
    "add_up",
    "fix_of",
    "outline",
    "saved_since",
    "tallied",
    "tallies",
]


@dataclass(frozen=True, slots=True)
class Fix:
    """One fix with its evidence added up; figures per week where the window has a length."""

    key: FixKey
    saved: float  # calls, in the window; of what is open, spent
    failures: int  # avoided in the window, or after which the text to reword was read
    chains: int
    per_week: float | None
    low: float | None
    high: float | None
    last_at: int | None  # newest failure it covers
    conversations: int = field(default=0)
    cost: float = 0.0  # calls spent that belong to its failures
    cost_per_week: float | None = None
    cost_low: float | None = None
    cost_high: float | None = None
    round_trips: int = 0  # round trips among them
    abandoned: int = 0  # chains that were abandoned after one of its failures
    kinds: frozenset[int] = frozenset()  # numbers of the signatures of its failures
    squares: float = 0.0  # of what each conversation would have saved, added up
    said: Mapping[int | None, int] = field(default_factory=dict)  # see `Tally`


@dataclass(frozen=True, slots=True)
class Since:
    """What a fix has saved since its tool was changed: how it turned out."""

    expected: float  # calls spent after the change, had it gone on as before per operation
    happened: float  # calls spent after the change
    saved: float  # expected - happened
    low: float
    high: float


@dataclass(slots=True)
class Tally:
    """The opportunities of one fix, added up.

    Attributes:
        saved: Calls by conversation.
        chains: Chains that have one.
        abandoned: Chains that were abandoned after one of the failures, the last of its chain.
        costs: Calls spent that belong to the failures, by conversation.
        round_trips: Round trips among them.
        kinds: Numbers of the signatures of the failures.
        said: What the failures said (`FixFailure.said`) and how many said it, where they are open.
    """

    failures: int = 0
    round_trips: int = 0
    saved: dict[str, float] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)
    chains: set[str] = field(default_factory=set)
    abandoned: int = 0
    kinds: set[int] = field(default_factory=set)
    said: Counter[int | None] = field(default_factory=Counter)
    last_at: int | None = None

    def count(self, each: Opportunity) -> None:
        """Take in one more opportunity."""
        self.failures += 1
        self.round_trips += each.round_trips
        self.abandoned += each.abandoned
        conversation = each.conversation
        self.saved[conversation] = self.saved.get(conversation, 0.0) + each.saved
        self.costs[conversation] = self.costs.get(conversation, 0.0) + each.cost
        if each.chain_id:
            self.chains.add(each.chain_id)
        if each.kind is not None:
            self.kinds.add(each.kind)
        if each.key.remedy == "open":
            self.said[each.said] += 1
        self.last_at = _later(self.last_at, each.occurred_at)


@dataclass(frozen=True, slots=True)
class Tallied:
    """A tally with its sums, which cost as much as it is large: taken once, then kept.

    Attributes:
        squares: Of what each conversation would have saved.
        factor: By what all of it is multiplied: what each of its failures would have saved, where
            they were counted.
        error: Standard error of ``factor``.
    """

    tally: Tally
    total: float
    squares: float
    factor: float = 1.0
    error: float = 0.0


def tallies(found: Iterable[Opportunity]) -> dict[FixKey, Tallied]:
    """Add opportunities up by fix."""
    by_key: defaultdict[FixKey, Tally] = defaultdict(Tally)
    for each in found:
        by_key[each.key].count(each)
    return {key: tallied(tally) for key, tally in by_key.items()}


def tallied(tally: Tally) -> Tallied:
    """Return *tally* with its sums."""
    saved = tally.saved.values()
    return Tallied(tally, sum(saved), sum(part * part for part in saved))


def add_up(
    found: Iterable[Opportunity], *, weeks: float | None, confidence: float = 0.95
) -> list[Fix]:
    """Add opportunities up into fixes, most calls saved first.

    Args:
        found: What `opportunities` returned.
        weeks: Length of the window; None where nothing has a time.
        confidence: Two-sided coverage of the interval per week.
    """
    fixes = [
        fix_of(key, [each], weeks=weeks, confidence=confidence)
        for key, each in tallies(found).items()
    ]
    return sorted(fixes, key=lambda fix: (-fix.saved, -fix.abandoned, -fix.failures, fix.key))


class Outline(NamedTuple):
    """What a fix is ranked by: it costs less to know than the fix."""

    saved: float
    abandoned: int
    failures: int
    last_at: int | None
    cost: float = 0.0
    message: int | None = None  # number of the one that all its failures have, if known

    def and_(self, other: Outline) -> Outline:
        """Return both together, of other chains each, which said the same."""
        return Outline(
            self.saved + other.saved,
            self.abandoned + other.abandoned,
            self.failures + other.failures,
            _later(self.last_at, other.last_at),
            self.cost + other.cost,
            self.message,
        )


def outline(group: Sequence[Tallied]) -> Outline:
    """Return what `fix_of` will say of *group*, as far as a ranking needs it."""
    last_at: int | None = None
    for each in group:
        last_at = _later(last_at, each.tally.last_at)
    return Outline(
        saved=sum(each.total * each.factor for each in group),
        abandoned=sum(each.tally.abandoned for each in group),
        failures=sum(each.tally.failures for each in group),
        last_at=last_at,
        cost=sum(sum(each.tally.costs.values()) for each in group),
    )


def saved_since(
    found: Iterable[Opportunity],
    moment: int,
    operations: tuple[int, int],
    *,
    confidence: float = 0.95,
) -> Since | None:
    """Compare what one fix would have saved before *moment* with what it still would since.

    The past is carried forward per operation of the tool (a call that is no retry), so that a
    busier week is no lost saving. The interval is that of the difference of two compound Poisson
    sums (see the module).

    Args:
        found: The opportunities of one fix; those without a time are left out.
        moment: When its tool was changed, microseconds.
        operations: Operations of the tool before and after, as far as the window goes.
        confidence: Two-sided coverage.

    Returns:
        The saving, or None where there is no operation before *moment*, or none since.
    """
    before, after = operations
    if before < 1 or after < 1:
        return None
    spent: tuple[defaultdict[str, float], defaultdict[str, float]] = (
        defaultdict(float), defaultdict(float),
    )  # fmt: skip
    for each in found:
        if each.occurred_at is not None:
            spent[each.occurred_at >= moment][each.conversation] += each.saved
    scale = after / before
    expected, happened = scale * sum(spent[0].values()), sum(spent[1].values())
    variance = scale**2 * sum(part * part for part in spent[0].values())
    variance += sum(part * part for part in spent[1].values())
    reach = critical_value(confidence) * sqrt(variance)
    saved = expected - happened
    return Since(expected, happened, saved, saved - reach, saved + reach)


def fix_of(
    key: FixKey, group: Sequence[Tallied], *, weeks: float | None, confidence: float = 0.95
) -> Fix:
    """Add the tallies of one fix up, of which every part of a window has one; see `add_up`.

    A conversation may have opportunities in several parts. The largest part is left as it is, so
    that this costs what the others hold.
    """
    base, *others = sorted(group, key=lambda each: len(each.tally.saved), reverse=True)
    saved, chains = base.tally.saved, base.tally.chains
    more: defaultdict[str, float] = defaultdict(float)
    further: set[str] = set()
    for other in others:
        for conversation, part in other.tally.saved.items():
            more[conversation] += part * other.factor
        further |= other.tally.chains
    squares = base.squares * base.factor**2
    for conversation, part in more.items():
        before = saved.get(conversation, 0.0) * base.factor
        squares += (before + part) ** 2 - before**2
    total, abandoned, failures, last_at, cost, _ = outline(group)
    # Of a product of two independent estimates: how many, and what each would have saved.
    squares += sum(each.total * each.error for each in group) ** 2
    per_week, low, high = _per_week(total, squares, weeks, confidence)
    costs: defaultdict[str, float] = defaultdict(float)
    for each in group:
        for conversation, part in each.tally.costs.items():
            costs[conversation] += part
    of_cost = _per_week(cost, sum(part * part for part in costs.values()), weeks, confidence)
    return Fix(
        key=key,
        saved=total,
        failures=failures,
        chains=len(chains) + sum(chain not in chains for chain in further),
        per_week=per_week,
        low=low,
        high=high,
        last_at=last_at,
        conversations=len(saved) + sum(name not in saved for name in more),
        cost=cost,
        cost_per_week=of_cost[0],
        cost_low=of_cost[1],
        cost_high=of_cost[2],
        round_trips=sum(each.tally.round_trips for each in group),
        abandoned=abandoned,
        kinds=frozenset().union(*(each.tally.kinds for each in group)),
        squares=squares,
        said=_said_by(group),
    )


def _per_week(
    total: float, squares: float, weeks: float | None, confidence: float
) -> tuple[float, float, float] | tuple[None, None, None]:
    """Return calls a week and the ends of their interval (see the module)."""
    if weeks is None:
        return None, None, None
    reach = critical_value(confidence) * sqrt(squares)
    return total / weeks, max(0.0, total - reach) / weeks, (total + reach) / weeks


def _said_by(group: Iterable[Tallied]) -> Mapping[int | None, int]:
    """Return what the failures of *group* said, where they are open; see `Tally`."""
    said: Counter[int | None] = Counter()
    for each in group:
        said.update(each.tally.said)
    return said


def _later(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else max(one, other)
