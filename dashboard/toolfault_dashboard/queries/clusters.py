"""The conversations behind a rate: what its interval needs to know of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

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
from toolfault_dashboard.analysis.metrics import METRICS, Metric, MetricName
from toolfault_dashboard.queries.conditions import chains_of
from toolfault_dashboard.queries.once import once
from toolfault_dashboard.queries.parts import in_parts
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.sides import side_with_codes
from toolfault_dashboard.queries.weighing import chain_weight, sampling

if TYPE_CHECKING:
    from toolfault_dashboard.analysis.columns import CodeColumns
    from toolfault_dashboard.analysis.sides import SideData

__all__ = [
    "CallClusters",
    "ChainClusters",
    "by_code",
    "calls_of_conversations",
    "chains_by_key",
]

_METRIC: Final[dict[MetricName, Metric]] = {each.name: each for each in METRICS}


class CallClusters:
    """Moments of failures and of first-try failures among the calls of a scope."""

    def __init__(self, all_of: Sequence[Moments], by_tool: Sequence[dict[str, Moments]]) -> None:
        self._all, self._by_tool = all_of, by_tool

    def failures(self, tool: str | None = None) -> Moments:
        """Return the moments of failures, of all calls or of those of a tool."""
        return self._all[0] if tool is None else self._by_tool[0].get(tool, NO_MOMENTS)

    def first_try_failures(self, tool: str | None = None) -> Moments:
        """Return the moments of operations that failed at the first try."""
        return self._all[1] if tool is None else self._by_tool[1].get(tool, NO_MOMENTS)


@once
def calls_of_conversations(conn: Connection, scope: Scope) -> CallClusters:
    """Return the moments of the calls of *scope*, of all and of each tool."""
    side, _ = _side(conn, scope)
    metrics = (_METRIC["failure_rate"], _METRIC["first_try_success"])
    return CallClusters(
        [call_moments(metric, side).get("", NO_MOMENTS) for metric in metrics],
        [call_moments(metric, side, by_tool=True) for metric in metrics],
    )


@once
def by_code(conn: Connection, scope: Scope) -> dict[str, Moments]:
    """Return the moments of the failures of each code among all calls of *scope*."""
    side, codes = _side(conn, scope)
    return code_moments(codes, side)


@once
def _side(conn: Connection, scope: Scope) -> tuple[SideData, CodeColumns]:
    side, codes, _ = side_with_codes(conn, scope, "")
    return side, codes


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
