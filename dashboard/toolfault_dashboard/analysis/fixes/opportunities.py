"""What a failure could have been spared by: the first half of Fix next (see `fixes`).

Deterministic rules over failures and chains, no model. A fix *covers* a failure when it alone would
have made the call succeed: every issue of the failure is one that the remedy accepts. What it saves
is what the chain cost from the first covered failure on: the round trips after it and, where it is
the failure that opened the chain, the calls of other tools. A failure that no fix covers stands
under its tool and code, with the remedy ``open``: it costs all the same.

Every call spent belongs to one failure: a round trip to the latest one before it that is looked at,
calls of other tools to the one that opened the chain. So the costs add up to the calls spent of the
chains as far as all their failures are looked at. A chain that was abandoned counts once, too:
under the last of its failures that is looked at, after which the model gave up.

What there is one of per failure is a named tuple: of a day there may be 100,000.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

__all__ = ["FixFailure", "FixIssue", "FixKey", "Opportunity", "opportunities", "renamed"]


class FixIssue(NamedTuple):
    """One issue, as far as a remedy needs it."""

    field: str  # field pattern
    name: str  # the field itself; of an unknown one the pattern is only *
    code: str
    near_miss: tuple[str, ...]
    expected: str = ""  # what the tool wanted, in words


class FixFailure(NamedTuple):
    """One failure, as far as a remedy needs it."""

    tool: str
    code: str
    reason: str | None
    conversation: str
    chain_id: str | None
    attempt: int
    calls_after: int  # round trips of its chain after this failure
    other_calls: int  # calls of other tools that its chain cost, where this failure opened it
    abandoned: bool  # its chain was abandoned
    occurred_at: int | None
    issues: tuple[FixIssue, ...]
    round_trip: bool = True  # False: the model had not seen the chain's error when it issued it
    kind: int | None = None  # number of its signature
    said: int | None = None  # number of its text for the model, where that is about the cause
    answer: int = 0  # see `Opportunity`


class FixKey(NamedTuple):
    """What would be changed: ``field`` is "" where it is the tool itself."""

    tool: str
    field: str
    remedy: str
    detail: str = ""  # what the model writes instead, the message, or the code of what is open
    others: tuple[str, ...] = ()  # further tools that fail with the same code and message


class Opportunity(NamedTuple):
    """One failure under what would be changed.

    Attributes:
        key: The fix; with the remedy ``open`` what to look at.
        saved: Calls that the fix would have saved; of what is open, what the failure cost.
        occurred_at: End of the call, microseconds; None where its source has no times.
        cost: Calls spent that belong to the failure.
        round_trips: Round trips among them.
        abandoned: Whether its chain was abandoned after it, the last of its failures.
        kind: Number of the failure's signature.
        said: What it said, see `FixFailure`.
        code: The failure's.
        answer: 0 unless the model had seen its error and called the tool again; 2 where that call
            succeeded, else 1.
    """

    key: FixKey
    conversation: str
    chain_id: str | None
    saved: float
    occurred_at: int | None
    cost: float = 0.0
    round_trips: int = 0
    abandoned: bool = False
    kind: int | None = None
    said: int | None = None
    code: str = ""
    answer: int = 0


_HAS_DEFAULTS: Final = re.compile(r"\b(int|integer|float|number|bool|boolean)\b", re.IGNORECASE)

SIMILAR: Final = 75
"""rapidfuzz ratio from which an unknown name is taken for a missing one."""


_Share = tuple[FixKey, float, float, int, bool]
"""Of an opportunity what other chains of the same failures share: its key, ``saved``, ``cost``,
``round_trips`` and ``abandoned``."""


def opportunities(failures: Iterable[FixFailure]) -> list[Opportunity]:
    """Find what every failure could have been spared by; what nothing is known for is open."""
    chains: defaultdict[str | int, list[FixFailure]] = defaultdict(list)
    for place, failure in enumerate(failures):
        # One in no chain is by itself.
        chains[place if failure.chain_id is None else failure.chain_id].append(failure)
    # Most chains are like many others: what is found of one is found of all that are alike.
    known: dict[object, list[_Share]] = {}
    found: list[Opportunity] = []
    for members in chains.values():
        if len(members) > 1:
            members.sort(key=attrgetter("attempt"))
        alike = tuple([(each[:3], each[6:9], each[10:12]) for each in members])
        shares = known.get(alike)
        if shares is None:
            shares = known[alike] = _of_chain(members)
        for each, (key, saved, cost, trips, abandoned) in zip(members, shares, strict=True):
            found.append(
                Opportunity(
                    *(key, each.conversation, each.chain_id, saved, each.occurred_at, cost, trips),
                    *(abandoned, each.kind, each.said, each.code, each.answer),
                )
            )
    return found


def _of_chain(members: Sequence[FixFailure]) -> list[_Share]:
    found: list[_Share] = []
    counted: set[FixKey] = set()
    one_at_a_time = _one_at_a_time(members)
    for place, failure in enumerate(members):
        is_last = place + 1 == len(members)
        trips = failure.calls_after - (0 if is_last else members[place + 1].calls_after)
        cost = float(trips + failure.other_calls)
        key = _covering(failure)
        if key is None and place in one_at_a_time:
            key, saved = FixKey(failure.tool, "", "all_at_once"), 1.0
        elif key is None:
            key, saved = _open(failure), cost
        else:
            # The first covered failure already saves all that came after it.
            after = float(failure.calls_after + failure.other_calls)
            saved = 0.0 if key in counted else after
            counted.add(key)
        found.append((key, saved, cost, trips, failure.abandoned and is_last))
    return found


def _covering(failure: FixFailure) -> FixKey | None:
    """Return the fix that alone would have made the call succeed, if one is known."""
    return _named_tool(failure) or _values(failure) or _renamed(failure) or _left_out(failure)


def _open(failure: FixFailure) -> FixKey:
    """Return what to look at where no fix is known."""
    fields = {each.field for each in failure.issues}
    return FixKey(failure.tool, fields.pop() if len(fields) == 1 else "", "open", failure.code)


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


def renamed(issues: Sequence[FixIssue]) -> tuple[str, str] | None:
    """Return the argument that was meant, as a pattern, and the name that the model wrote for it.

    That is an unknown name beside and like the one argument that is missing. None where there are
    more of either: another name for one of them would not have made the call succeed, or more than
    one may be meant.
    """
    missing = [each for each in issues if each.code == "missing_field"]
    unknown = [each for each in issues if each.code == "unknown_field"]
    if len(missing) != 1 or len(unknown) != 1 or len(issues) != 2:
        return None
    (around, _, wanted), (there, _, written) = (
        each.name.rpartition(".") for each in (missing[0], unknown[0])
    )
    return (missing[0].field, written) if around == there and _alike(wanted, written) else None


def _renamed(failure: FixFailure) -> FixKey | None:
    found = renamed(failure.issues)
    return None if found is None else FixKey(failure.tool, found[0], "alias", found[1])


def _alike(wanted: str, written: str) -> bool:
    from rapidfuzz import fuzz

    a, b = (name.replace("-", "_").lower() for name in (wanted, written))
    return bool(
        fuzz.ratio(a, b) >= SIMILAR or set(a.split("_")) <= set(b.split("_"))
        or set(b.split("_")) <= set(a.split("_"))
    )  # fmt: skip


def _left_out(failure: FixFailure) -> FixKey | None:
    if len(failure.issues) != 1 or failure.issues[0].code != "missing_field":
        return None
    missing = failure.issues[0]
    # A number or a switch may have a usual value; a path or a text has none.
    remedy = "default" if _HAS_DEFAULTS.search(missing.expected) else "describe"
    return FixKey(failure.tool, missing.field, remedy)


def _one_at_a_time(members: Sequence[FixFailure]) -> set[int]:
    """Return which failures name only fields new to their chain: told at once, none was needed."""
    if len(members) < 2 or not members[0].issues:
        return set()
    named = {each.field for each in members[0].issues}
    found: set[int] = set()
    for place, failure in enumerate(members[1:], 1):
        fields = {each.field for each in failure.issues}
        # A call beside the others was no round trip; it would have been made all the same.
        if failure.round_trip and fields and not fields & named:
            found.add(place)
        named |= fields
    return found
