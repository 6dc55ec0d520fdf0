"""Columns that count rows by what they stand for, where a project has sampled calls.

Where it has none they count rows and nothing else, so that no statement costs more than it did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Label,
    Select,
    and_,
    case,
    func,
    select,
)

from toolfault_collector.storage.rollups import LEAST_RATE
from toolfault_collector.storage.tables import chain, tool_call
from toolfault_dashboard.analysis.weights import Amount
from toolfault_dashboard.queries.projects import sampled_code

__all__ = [
    "Sampling",
    "added",
    "amount",
    "chain_weight",
    "counted",
    "counted_once",
    "sampling",
    "weight",
    "weighted_chains",
]


@dataclass(frozen=True, slots=True)
class Sampling:
    """What of a project was sampled."""

    calls: bool  # any call, failed or not
    failures: bool


NOTHING: Final = Sampling(calls=False, failures=False)


def sampling(conn: Connection, project_id: int) -> Sampling:
    """Say whether any call of the project, and whether any failure, stands for others."""
    found = sampled_code(conn, project_id)
    return NOTHING if found is None else Sampling(calls=True, failures=found != "")


def weight() -> ColumnElement[float]:
    """Return what a row of ``tool_call`` stands for, as the collector counts it."""
    rate = tool_call.c.sample_rate
    return case((rate < LEAST_RATE, 1.0 / LEAST_RATE), else_=1.0 / rate)


_OPENED: Final = tool_call.alias("opened")


def chain_weight() -> ColumnElement[float]:
    """Return what a row of `weighted_chains` stands for: as much as the failure behind it."""
    rate = _OPENED.c.sample_rate
    return case((rate.is_(None), 1.0), (rate < LEAST_RATE, 1.0 / LEAST_RATE), else_=1.0 / rate)


def weighted_chains(*, sampled: bool) -> FromClause:
    """Return ``chain``; where failures may be *sampled* with what `chain_weight` needs."""
    if not sampled:
        return chain
    opened = and_(
        _OPENED.c.project_id == chain.c.project_id, _OPENED.c.event_id == chain.c.chain_id
    )
    return chain.outerjoin(_OPENED, opened)


def counted(*, sampled: bool, only: ColumnElement[bool] | None = None) -> list[ColumnElement[Any]]:
    """Return columns that count rows, for `amount`.

    Args:
        sampled: Whether rows may be sampled; else one column is enough.
        only: Which of the rows to count, if not all.
    """
    count = func.count() if only is None else func.count(case((only, 1)))
    if not sampled:
        return [count.label("n")]
    each, squared = weight(), weight() * weight()
    if only is not None:
        each, squared = case((only, each)), case((only, squared))
    return [
        count.label("n"),
        func.sum(each).label("weight"),
        func.sum(squared).label("squares"),
    ]


def counted_once(
    key: Sequence[Label[Any] | Column[Any]],
    source: FromClause,
    where: ColumnElement[bool],
    *,
    sampled: bool,
    times: Sequence[Label[Any]] = (),
) -> Select[Any]:
    """Return the select of *key* and the columns of `counted`, no call twice under the same key.

    Args:
        key: What to group by.
        source: Calls joined with rows of which a call may have several.
        where: Which of them.
        sampled: Whether calls may be sampled.
        times: ``first_at`` and ``last_at``, if wanted.
    """
    if not sampled:
        count = func.count(func.distinct(tool_call.c.id)).label("n")
        return select(*key, count, *times).select_from(source).where(where).group_by(*key)
    # A sum knows no DISTINCT over calls, so each is taken once first.
    calls = (
        select(*key, weight().label("weight"), tool_call.c.id, *times)
        .select_from(source)
        .where(where)
        .group_by(*key, tool_call.c.id, tool_call.c.sample_rate)
        .subquery()
    )
    each, names = calls.c.weight, [column.name for column in key]
    return select(
        *(calls.c[name] for name in names),
        func.count().label("n"),
        func.sum(each).label("weight"),
        func.sum(each * each).label("squares"),
        *(
            (func.min if name == "first_at" else func.max)(calls.c[name]).label(name)
            for name in (time.name for time in times)
        ),
    ).group_by(*(calls.c[name] for name in names))


def added(column: ColumnElement[Any], *, sampled: bool) -> list[ColumnElement[Any]]:
    """Return columns that add up calls that senders counted, for `amount`: none is sampled."""
    names = ("n", "weight", "squares") if sampled else ("n",)
    return [func.sum(column).label(name) for name in names]


def amount(numbers: Sequence[Any]) -> Amount:
    """Return what the columns of `counted` or `added` say."""
    rows = int(numbers[0] or 0)
    if len(numbers) == 1:
        return Amount(rows, rows, rows)
    return Amount(rows, float(numbers[1] or 0), float(numbers[2] or 0))
