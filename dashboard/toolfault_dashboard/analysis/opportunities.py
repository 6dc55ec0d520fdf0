"""What a failure could have been spared by: the first half of Fix next (see `fixes`).

Deterministic rules over failures and chains, no model. A fix *covers* a failure when it alone would
have made the call succeed: every issue of the failure is one that the remedy accepts. What it saves
is what the chain cost from the first covered failure on: the calls after it.

What there is one of per failure is a named tuple: of two weeks there may be 200,000.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

__all__ = ["FixFailure", "FixIssue", "FixKey", "Opportunity", "opportunities"]


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
    round_trip: bool = True  # False: the model had not seen the chain's error when it issued it


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
        # A call beside the others was no round trip; it would have been made all the same.
        new = failure.round_trip and fields and not fields & named
        if new and _covered(failure) is None:
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
