"""Phantom arguments: what models sent, a tool does not have, and nobody refused.

The calls went through, so no failure tells of them. Counted where they were reported: a call of its
own has a list of names, successes that a sender only counted have a number of calls by name. Both
are few rows, found by indexes of their own, and grouped before a text is read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Text, cast, func, select, union_all

from toolfault_collector.storage.tables import call_counts, tool_call
from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.analysis.weights import Amount
from toolfault_dashboard.queries.conditions import calls_of, counts_of
from toolfault_dashboard.queries.counting.sampling_weights import amount, counted, sampling
from toolfault_dashboard.queries.figures.breakdown import Told, rated_pairs, together
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.visibility import sees
from toolfault_dashboard.search import QueryError

__all__ = ["PhantomRow", "phantom_arguments"]


@dataclass(frozen=True, slots=True)
class PhantomRow:
    """One phantom argument of the calls that one model made of one tool."""

    tool: str
    model: str  # "" where calls name none
    argument: str  # a path with * for list indexes
    calls: int  # that had it
    rate: Rate  # of all calls that the model made of the tool


def phantom_arguments(conn: Connection, scope: Scope) -> tuple[PhantomRow, ...]:
    """Count the phantom arguments of the scope by tool and model, most calls first.

    Raises:
        QueryError: The reader may not see what models send.
    """
    if not sees(scope, "phantom_arguments"):
        raise QueryError("Your role may not see what models send.")
    rows = [PhantomRow(*row) for row in rated_pairs(conn, scope, _counted)]
    return tuple(sorted(rows, key=lambda row: (-row.calls, row.tool, row.model, row.argument)))


def _counted(conn: Connection, scope: Scope) -> Told[str]:
    own, folded = tool_call.c.phantom_arguments, call_counts.c.phantom_arguments
    by_call = _key(tool_call.c.tool, tool_call.c.model, own)
    by_minute = _key(call_counts.c.tool, call_counts.c.model, folded)
    numbers = counted(sampled=sampling(conn, scope.project_id).calls)
    of_calls = select(*by_call, *numbers).where(calls_of(scope), own.is_not(None))
    of_minutes = select(*by_minute, *(func.count() for _ in numbers)).where(
        counts_of(scope), call_counts.c.tool.is_not(None), folded.is_not(None)
    )
    rows: Any = conn.execute(
        union_all(of_calls.group_by(*by_call), of_minutes.group_by(*by_minute))
    )
    found: list[tuple[str, str, str, Amount]] = []
    for tool, model, text, *told in rows:
        names, times = json.loads(text), amount(told)
        if isinstance(names, list):
            found += [(tool, model, name, times) for name in set(names)]
            continue
        for name, calls in names.items():
            had = calls * times.rows
            found.append((tool, model, name, Amount(had, had, had)))
    return together([found])


def _key(tool: Column[Any], model: Column[Any], names: Column[Any]) -> list[ColumnElement[Any]]:
    # As text: PostgreSQL knows no equality of JSON.
    return [tool, func.coalesce(model, "").label("model"), cast(names, Text).label("names")]
