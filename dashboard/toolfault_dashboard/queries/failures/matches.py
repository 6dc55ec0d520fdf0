"""How many failures a scope has and, where they are few, which: both from one look at its rows.

A narrow list would otherwise read its window twice: to count, and for the newest of the few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, String, case, cast, func, select

from toolfault_collector.storage.tables import tool_call
from toolfault_dashboard.queries.conditions import failures_of
from toolfault_dashboard.queries.counting import rollups
from toolfault_dashboard.queries.counting.memoise import memoised
from toolfault_dashboard.queries.counting.segments import in_segments
from toolfault_dashboard.queries.scope import Scope

__all__ = ["FEW", "Matches", "is_of_index", "matches"]

FEW: Final = 200
"""Failures of a scope up to which it is remembered which they are."""

_OF_INDEX: Final = frozenset(
    {"since", "until", "tool", "own_code", "category", "audience", "detection", "time"}
)
"""Keys that the index of failures answers: reading it twice costs less than reading rows."""


def is_of_index(scope: Scope) -> bool:
    """Say whether the index of failures tells which are in the scope, without a look at a row."""
    return {clause.key for clause in scope.query.clauses} <= _OF_INDEX


@dataclass(frozen=True, slots=True)
class Matches:
    """The failures of a scope: how many, and their row numbers in any order; None if not known."""

    number: int
    rows: tuple[int, ...] | None


@memoised
def matches(conn: Connection, scope: Scope) -> Matches:
    """Return how many failures are in the scope and, of at most `FEW`, which if that is known."""
    if rollups.usable(conn, scope, keys=rollups.PAIR_KEYS):
        pairs = rollups.failures_by_pair(conn, scope).values()
        return Matches(sum(failures for failures, _ in pairs), None)
    number, *rows = _all_together(in_segments(conn, scope, _matches, together=_all_together))
    return Matches(number, tuple(rows) if len(rows) == number else None)


def _matches(conn: Connection, scope: Scope) -> tuple[int, ...]:
    """Return the number of failures and, if they are few, their row numbers behind it."""
    if is_of_index(scope):
        counted = select(func.count()).select_from(tool_call).where(failures_of(scope))
        return (conn.execute(counted).scalar_one(),)
    rows = func.aggregate_strings(cast(tool_call.c.id, String), ",")
    few = case((func.count() <= FEW, rows))
    number, text = conn.execute(select(func.count(), few).where(failures_of(scope))).one()
    return (number, *map(int, text.split(","))) if text else (number,)


def _all_together(found: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    number = sum(each[0] for each in found)
    if number > FEW or any(len(each) <= each[0] for each in found):
        return (number,)
    return (number, *(row for each in found for row in each[1:]))
