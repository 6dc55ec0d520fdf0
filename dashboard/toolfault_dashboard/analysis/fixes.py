"""Fix next: which repair of which tool would have saved the most round trips.

Deterministic rules over failures and chains, no model. A fix *covers* a failure when it alone would
have made the call succeed: every issue of the failure is one that the remedy accepts. What it saves
is what the chain cost from the first covered failure on: the calls after it. Savings are counted in
the past and stated per week; that the future is like the past is the assumption behind every one.

The interval treats conversations as they come: a compound Poisson process, whose total S has
variance sum(s_i ** 2) over conversations (W. Feller, An Introduction to Probability Theory, vol. 1,
XII.2), normal approximation, cut at 0.

What there is one of per failure is a named tuple: of two weeks there may be 200,000.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Final, NamedTuple

from toolfault_dashboard.analysis.rates import critical_value

__all__ = [
    "Fix",
    "FixKey",
    "Opportunity",
    "Since",
    "Tallied",
    "Tally",
    "add_tallies",
    "add_up",
    "opportunities",
    "saved_since",
    "tallied",
    "tallies",
]


class FixIssue(NamedTuple):
    """One issue, as far as a remedy needs it."""

    field: str  # field pattern
    name: str  # the field itself; of an unknown one the pattern is only *
    code: str
    near_miss: tuple[str, ...]


class FixFailure(NamedTuple):
    """One failure, as far as a remedy needs it."""

    tool: str
    code: str
    reason: str | None
    conversation: str
    chain_id: str | None
    attempt: int
    calls_after: int  # round trips of its chain after this failure
    switched: bool  # its chain ended with a success of another tool
    occurred_at: int | None
    issues: tuple[FixIssue, ...]


class FixKey(NamedTuple):
    """What would be changed: ``field`` is "" where it is the tool itself."""

    tool: str
    field: str
    remedy: str
    detail: str = ""  # what the model writes instead, or the message


class Opportunity(NamedTuple):
    """One failure that a fix covers, and what that would have saved."""

    key: FixKey
    conversation: str
    chain_id: str | None
    round_trips: float
    occurred_at: int | None


@dataclass(frozen=True, slots=True)
class Fix:
    """One fix with its evidence added up; figures per week where the window has a length."""

    key: FixKey
    round_trips: float  # saved in the window
    failures: int  # avoided in the window, or after which the text to reword was read
    chains: int
    per_week: float | None
    low: float | None
    high: float | None
    last_at: int | None  # newest failure it covers
    conversations: int = field(default=0)


@dataclass(frozen=True, slots=True)
class Since:
    """What a fix has saved since its tool was changed: how it turned out."""

    expected: float  # round trips after the change, had it gone on as before per operation
    happened: float  # round trips after the change
    round_trips: float  # expected - happened
    low: float
    high: float


SIMILAR: Final = 75
"""rapidfuzz ratio from which an unknown name is taken for a missing one."""


def opportunities(failures: Iterable[FixFailure]) -> list[Opportunity]:
    """Find what every failure could have been spared by: each is covered by at most one fix."""
    chains: defaultdict[str, list[FixFailure]] = defaultdict(list)
    alone: list[FixFailure] = []
    for failure in failures:
        if failure.chain_id is None:
            alone.append(failure)
        else:
            chains[failure.chain_id].append(failure)
    found = [each for failure in alone if (each := _covered(failure)) is not None]
    for members in chains.values():
        found += _of_chain(sorted(members, key=lambda failure: failure.attempt))
    return found


def _of_chain(members: Sequence[FixFailure]) -> list[Opportunity]:
    found: list[Opportunity] = []
    counted: set[FixKey] = set()
    for failure in members:
        each = _covered(failure)
        if each is None:
            continue
        # The first covered failure already saves all that came after it.
        saved = 0.0 if each.key in counted else each.round_trips
        counted.add(each.key)
        found.append(
            Opportunity(each.key, each.conversation, each.chain_id, saved, each.occurred_at)
        )
    return found + _one_at_a_time(members)


def _covered(failure: FixFailure) -> Opportunity | None:
    key = _named_tool(failure) or _values(failure) or _renamed(failure) or _left_out(failure)
    if key is None:
        return None
    # A tool that does not exist costs the exchange with the tool that is found instead, too.
    extra = 1 if key.remedy == "expose" and failure.switched else 0
    return Opportunity(
        key,
        failure.conversation,
        failure.chain_id,
        failure.calls_after + extra,
        failure.occurred_at,
    )


def _named_tool(failure: FixFailure) -> FixKey | None:
    if failure.code != "not_available" or failure.reason not in {None, "not_registered"}:
        return None
    return FixKey(failure.tool, "", "expose")


def _values(failure: FixFailure) -> FixKey | None:
    """A value of one argument that a known remedy accepts; a second bad argument would remain."""
    fields = {each.field for each in failure.issues}
    if len(fields) != 1:
        return None
    for remedy in failure.issues[0].near_miss:
        # Of a union of types one branch is enough: the value is accepted by it.
        if remedy != "alias":
            return FixKey(failure.tool, fields.pop(), remedy)
    return next(
        (
            FixKey(failure.tool, each.field, remedy)
            for each in failure.issues
            for remedy in each.near_miss
            if remedy != "alias"
        ),
        None,
    )


def _renamed(failure: FixFailure) -> FixKey | None:
    """An unknown field that looks like the one missing field: the model's name for it."""
    missing = [each.field for each in failure.issues if each.code == "missing_field"]
    unknown = [each.name for each in failure.issues if each.code == "unknown_field"]
    if len(missing) != 1 or len(unknown) != 1 or len(failure.issues) != 2:
        return None
    return (
        FixKey(failure.tool, missing[0], "alias", unknown[0])
        if _alike(missing[0], unknown[0])
        else None
    )


def _alike(wanted: str, written: str) -> bool:
    from rapidfuzz import fuzz

    a, b = (name.replace("-", "_").lower() for name in (wanted, written))
    return bool(
        fuzz.ratio(a, b) >= SIMILAR or set(a.split("_")) <= set(b.split("_"))
        or set(b.split("_")) <= set(a.split("_"))
    )  # fmt: skip


def _left_out(failure: FixFailure) -> FixKey | None:
    if len(failure.issues) == 1 and failure.issues[0].code == "missing_field":
        return FixKey(failure.tool, failure.issues[0].field, "default")
    return None


def _one_at_a_time(members: Sequence[FixFailure]) -> list[Opportunity]:
    """Failures that name only fields new to their chain: told at once, none had been needed."""
    if len(members) < 2 or not members[0].issues:
        return []
    named = {each.field for each in members[0].issues}
    found = []
    for failure in members[1:]:
        fields = {each.field for each in failure.issues}
        if fields and not fields & named and _covered(failure) is None:
            found.append(
                Opportunity(
                    FixKey(failure.tool, "", "all_at_once"),
                    failure.conversation,
                    failure.chain_id,
                    1.0,
                    failure.occurred_at,
                )
            )
        named |= fields
    return found


@dataclass(slots=True)
class Tally:
    """The opportunities of one fix, added up.

    Attributes:
        saved: Round trips by conversation.
        chains: Chains that have one.
    """

    failures: int = 0
    saved: dict[str, float] = field(default_factory=dict)
    chains: set[str] = field(default_factory=set)
    last_at: int | None = None

    def count(
        self, conversation: str, chain_id: str | None, at: int | None, round_trips: float
    ) -> None:
        """Take in one more opportunity."""
        self.failures += 1
        self.saved[conversation] = self.saved.get(conversation, 0.0) + round_trips
        if chain_id:
            self.chains.add(chain_id)
        self.last_at = _later(self.last_at, at)


@dataclass(frozen=True, slots=True)
class Tallied:
    """A tally with its sums, which cost as much as it is large: taken once, then kept.

    Attributes:
        squares: Of what each conversation would have saved.
        round_trips: By what all of it is multiplied: what each of its failures would have saved,
            where they were counted.
    """

    tally: Tally
    total: float
    squares: float
    round_trips: float = 1.0


def tallies(found: Iterable[Opportunity]) -> dict[FixKey, Tallied]:
    """Add opportunities up by fix."""
    by_key: defaultdict[FixKey, Tally] = defaultdict(Tally)
    for each in found:
        by_key[each.key].count(each.conversation, each.chain_id, each.occurred_at, each.round_trips)
    return {key: tallied(tally) for key, tally in by_key.items()}


def tallied(tally: Tally) -> Tallied:
    """Return *tally* with its sums."""
    saved = tally.saved.values()
    return Tallied(tally, sum(saved), sum(part * part for part in saved))


def add_up(
    found: Iterable[Opportunity], *, weeks: float | None, confidence: float = 0.95
) -> list[Fix]:
    """Add opportunities up into fixes, most round trips saved first.

    Args:
        found: What `opportunities` returned.
        weeks: Length of the window; None where nothing has a time.
        confidence: Two-sided coverage of the interval per week.
    """
    groups = {key: [each] for key, each in tallies(found).items()}
    return add_tallies(groups, weeks=weeks, confidence=confidence)


def add_tallies(
    groups: Mapping[FixKey, Sequence[Tallied]], *, weeks: float | None, confidence: float = 0.95
) -> list[Fix]:
    """Add the tallies of each fix up, of which every part of a window has one; see `add_up`.

    A conversation may have opportunities in several parts. The largest part is left as it is, so
    that this costs what the others hold.
    """
    fixes = [_fix(key, group, weeks, confidence) for key, group in groups.items()]
    return sorted(fixes, key=lambda fix: (-fix.round_trips, -fix.failures, fix.key))


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
        The saving, or None where a side has no operation.
    """
    before, after = operations
    if before < 1 or after < 1:
        return None
    sides: tuple[defaultdict[str, float], defaultdict[str, float]] = (
        defaultdict(float), defaultdict(float),
    )  # fmt: skip
    for each in found:
        if each.occurred_at is not None:
            sides[each.occurred_at >= moment][each.conversation] += each.round_trips
    scale = after / before
    expected, happened = scale * sum(sides[0].values()), sum(sides[1].values())
    variance = scale**2 * sum(part * part for part in sides[0].values())
    variance += sum(part * part for part in sides[1].values())
    reach = critical_value(confidence) * sqrt(variance)
    saved = expected - happened
    return Since(expected, happened, saved, saved - reach, saved + reach)


def _fix(key: FixKey, group: Sequence[Tallied], weeks: float | None, confidence: float) -> Fix:
    base, *others = sorted(group, key=lambda each: len(each.tally.saved), reverse=True)
    saved, chains = base.tally.saved, base.tally.chains
    more: defaultdict[str, float] = defaultdict(float)
    further: set[str] = set()
    last_at = base.tally.last_at
    for other in others:
        for conversation, part in other.tally.saved.items():
            more[conversation] += part * other.round_trips
        further |= other.tally.chains
        last_at = _later(last_at, other.tally.last_at)
    squares = base.squares * base.round_trips**2
    for conversation, part in more.items():
        before = saved.get(conversation, 0.0) * base.round_trips
        squares += (before + part) ** 2 - before**2
    total = sum(each.total * each.round_trips for each in group)
    spread = critical_value(confidence) * sqrt(squares)
    return Fix(
        key=key,
        round_trips=total,
        failures=sum(each.tally.failures for each in group),
        chains=len(chains) + sum(chain not in chains for chain in further),
        per_week=None if weeks is None else total / weeks,
        low=None if weeks is None else max(0.0, total - spread) / weeks,
        high=None if weeks is None else (total + spread) / weeks,
        last_at=last_at,
        conversations=len(saved) + sum(name not in saved for name in more),
    )


def _later(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else max(one, other)
