"""The conversations behind a rate: what its interval needs to know of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Label,
    Select,
    case,
    func,
    literal,
    select,
    union_all,
)

from toolfault_collector.storage.tables import chain
from toolfault_dashboard.analysis.clusters import (
    NO_MOMENTS,
    Moments,
    call_moments,
    code_moments,
)
from toolfault_dashboard.analysis.metrics import METRICS
from toolfault_dashboard.queries.conditions import chains_of
from toolfault_dashboard.queries.once import once
from toolfault_dashboard.queries.parts import in_parts
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.sides import side_with_codes
from toolfault_dashboard.queries.weighing import chain_weight, sampling

__all__ = [
    "CallClusters",
    "ChainClusters",
    "calls_of_conversations",
    "chains_by_key",
]

_NAMES: Final = ("failure_rate", "first_try_success")
_OF_CALLS: Final = tuple(each for name in _NAMES for each in METRICS if each.name == name)


MANY: Final = 10_000
"""Calls and minutes of a window from which its days are counted one by one, and kept: reading each
conversation costs some ten times as much as counting calls does."""


@dataclass(frozen=True, slots=True)
class CallClusters:
    """Moments of the calls of a scope; the sum of two is that of both their parts.

    Attributes:
        failures: Of failures among all calls.
        first_try_failures: Of operations that failed at the first try.
        failures_of: Of failures among the calls of a tool, by tool.
        first_try_failures_of: The same of operations.
        by_code: Of the failures of each code among all calls, but for ``whole_squared``.
    """

    failures: Moments
    first_try_failures: Moments
    failures_of: Mapping[str, Moments]
    first_try_failures_of: Mapping[str, Moments]
    by_code: Mapping[str, Moments]

    def __len__(self) -> int:
        return 2 + len(self.failures_of) + len(self.first_try_failures_of) + len(self.by_code)

    def __add__(self, other: CallClusters) -> CallClusters:
        return CallClusters(
            self.failures + other.failures,
            self.first_try_failures + other.first_try_failures,
            _added(self.failures_of, other.failures_of),
            _added(self.first_try_failures_of, other.first_try_failures_of),
            _added(self.by_code, other.by_code),
        )

    def of_tool(self, tool: str) -> tuple[Moments, Moments]:
        """Return the moments of failures and first-try failures of a tool."""
        return (
            self.failures_of.get(tool, NO_MOMENTS),
            self.first_try_failures_of.get(tool, NO_MOMENTS),
        )

    def of_code(self, code: str) -> Moments:
        """Return the moments of the failures of a code among all calls."""
        own, whole = self.by_code.get(code, NO_MOMENTS), self.failures
        return own._replace(clusters=whole.clusters, whole_squared=whole.whole_squared)


def _added(one: Mapping[str, Moments], other: Mapping[str, Moments]) -> dict[str, Moments]:
    names = one.keys() | other.keys()
    return {name: one.get(name, NO_MOMENTS) + other.get(name, NO_MOMENTS) for name in names}


@once
def calls_of_conversations(conn: Connection, scope: Scope) -> CallClusters:
    """Return the moments of the calls of *scope*, of all, of each tool and of each code.

    Of a large window a conversation that goes on over midnight counts as two: days are counted
    apart.
    """
    parts = in_parts(conn, scope, _calls, together=_together, many=MANY)
    return _together(parts)


def _together(parts: Sequence[CallClusters]) -> CallClusters:
    return reduce(add, parts)


def _calls(conn: Connection, scope: Scope) -> CallClusters:
    side, codes, _ = side_with_codes(conn, scope, "")
    failures, first_try = _OF_CALLS
    return CallClusters(
        call_moments(failures, side).get("", NO_MOMENTS),
        call_moments(first_try, side).get("", NO_MOMENTS),
        call_moments(failures, side, by_tool=True),
        call_moments(first_try, side, by_tool=True),
        code_moments(codes, side),
    )


class ChainClusters(dict[tuple[str, ...], tuple[Moments, Moments]]):
    """Moments of recovered among closed chains, and of first retries that fixed, by names."""

    def __missing__(self, names: tuple[str, ...]) -> tuple[Moments, Moments]:
        return NO_MOMENTS, NO_MOMENTS

    def add(self, names: tuple[str, ...], moments: tuple[Moments, Moments]) -> None:
        """Add the moments of other conversations."""
        known = self[names]
        self[names] = known[0] + moments[0], known[1] + moments[1]


@once
def chains_by_key(conn: Connection, scope: Scope, *columns: str) -> ChainClusters:
    """Return the moments of the chains of *scope* by columns of theirs, and of all under ().

    A conversation that goes on over midnight may count as two: days are counted apart.
    """
    found = ChainClusters()
    for part in in_parts(conn, scope, _chains, columns, outcomes=True):
        for names, moments in part.items():
            found.add(names, moments)
    return found


def _chains(
    conn: Connection, scope: Scope, columns: tuple[str, ...]
) -> dict[tuple[str, ...], tuple[Moments, Moments]]:
    names = [func.coalesce(chain.c[column], "").label(column) for column in columns]
    each = [
        _sums(conn, scope, names, whole=whole) for whole in ([False, True] if names else [True])
    ]
    width = len(columns)
    found: dict[tuple[str, ...], tuple[Moments, Moments]] = {}
    for whole, *row in conn.execute(union_all(*each)):
        own = () if whole else tuple(row[:width])
        found[own] = _moments(row[width : width + 4]), _moments(row[width + 4 :])
    return found


def _sums(
    conn: Connection, scope: Scope, names: Sequence[Label[str]], *, whole: bool
) -> Select[Any]:
    """Return the select of the moments by *names*; of the *whole*, with nothing for each name."""
    weight: Any = chain_weight() if sampling(conn, scope.project_id).failures else 1
    kinds = {
        "recovered": chain.c.recovered_at.is_not(None),
        "closed": chain.c.settles_at <= scope.now,
        "fixed": chain.c.first_retry_fix,
        "retried": chain.c.round_trips > 0,
    }
    keys = [] if whole else list(names)
    each = (
        select(
            *keys,
            *(func.sum(case((kind, weight), else_=0)).label(of) for of, kind in kinds.items()),
        )
        .where(chains_of(scope))
        .group_by(*keys, chain.c.session_id)
        .subquery()
        .c
    )
    sums: list[ColumnElement[Any]] = [
        column
        for part, of in ((each.recovered, each.closed), (each.fixed, each.retried))
        for column in (
            func.count(case((of > 0, 1))),
            func.sum(part * part),
            func.sum(part * of),
            func.sum(of * of),
        )
    ]
    own: list[ColumnElement[Any]] = [literal("") if whole else each[name.name] for name in names]
    columns: list[ColumnElement[Any]] = [literal(int(whole)), *own, *sums]
    statement = select(*columns)
    return statement if whole else statement.group_by(*own)


def _moments(row: Sequence[Any]) -> Moments:
    return Moments(int(row[0] or 0), *(float(each or 0) for each in row[1:]))
