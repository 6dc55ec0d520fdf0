"""A copy of a SQLite database in ClickHouse (in this process), and all that readers ask of both."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    Connection,
)
from tests.clickhouse import copied_to_clickhouse
from tests.dashboard.generated import NOW

from toolfault_collector.admin.projects import find_project
from toolfault_collector.clickhouse.database import open_events
from toolfault_collector.clock import DAY_US
from toolfault_collector.storage.database.engine import open_engine, read_connection
from toolfault_dashboard import queries
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.reading import read_events_from, reading
from toolfault_dashboard.search import parse

__all__ = ["QUESTIONS", "Both"]

Question = Callable[[Connection, Scope], object]


def answer(conn: Connection, scope: Scope, name: str) -> object:
    """Return what the reading function behind the question *name* says of *scope*."""
    return plain(QUESTIONS[name](conn, scope))


def equal(one: object, other: object) -> bool:
    """Say whether two answers are equal, but for the last digits of fractions.

    What sampled calls stand for is kept in millionths by SQL's counters; ClickHouse has no counters
    and adds up the calls themselves.
    """
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-9)
    return type(one) is type(other) and one == other


def plain(value: object) -> object:
    """Return *value* as lists, texts and numbers."""
    if is_dataclass(value) and not isinstance(value, type):
        named = [[each.name, plain(getattr(value, each.name))] for each in fields(value)]
        return [type(value).__name__, *named]
    if isinstance(value, Mapping):
        return [[plain(key), plain(each)] for key, each in value.items()]
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, set | frozenset):
        return sorted(map(repr, map(plain, value)))
    if isinstance(value, Iterable):
        return [plain(each) for each in value]
    return repr(value)


def _first(conn: Connection, scope: Scope) -> tuple[list[str], list[str], list[str]]:
    """Return the newest failures, chains and conversations of *scope*, a few of each."""
    failures = queries.failure_list(conn, scope, limit=2).rows
    chains = queries.chain_list(conn, scope, limit=2).rows
    talks = [each.conversation for each in failures if each.conversation]
    return [each.event_id for each in failures], [each.chain_id for each in chains], talks


def _pages(ask: Callable[..., Any], conn: Connection, scope: Scope) -> list[object]:
    """Return the first three pages of a list, and the second again, from the third."""
    found = [ask(conn, scope, limit=7)]
    for _ in range(2):
        if (cursor := found[-1].next_cursor) is not None:
            found.append(ask(conn, scope, limit=7, cursor=cursor))
    if len(found) == 3 and (cursor := found[-1].previous_cursor) is not None:
        found.append(ask(conn, scope, limit=7, cursor=cursor))
    return [(page.rows, page.total) for page in found]


def _chains(conn: Connection, scope: Scope) -> list[object]:
    found: list[object] = []
    for name in _first(conn, scope)[1]:
        detail = queries.chain_detail(conn, scope, name)
        assert detail is not None
        found += [detail, queries.calls_beside(conn, scope, detail)]
    return found


def _changes(conn: Connection, scope: Scope) -> list[object]:
    found: list[object] = []
    for row in queries.all_changes(conn, scope)[:1]:
        found += [
            queries.change(conn, scope, row.event_id),
            queries.change_comparison(conn, scope, row),
            queries.change_control(conn, scope, row),
            queries.change_effect(conn, scope, row),
        ]
    return found


def _compared(conn: Connection, scope: Scope) -> list[object]:
    tools = list(queries.rates_by_tool(conn, scope))[:2]
    cohorts = [queries.cohort_scope(scope, f'tool:"{tool}"') for tool in tools if "*" not in tool]
    if len(cohorts) < 2:
        return []
    return [queries.comparison(conn, *cohorts), queries.effect(conn, *cohorts)]


def _trials(conn: Connection, scope: Scope) -> list[object]:
    found: list[object] = [queries.experiments(conn, scope)]
    prices = queries.prices_of(conn, scope.project_id)
    for name in list(queries.experiments(conn, scope))[:2]:
        found += [
            queries.experiment(conn, scope, name),
            queries.experiment_looks(conn, scope, name),
            queries.arm_costs(conn, scope, name, prices),
        ]
    return found


def _before_recovery(conn: Connection, scope: Scope) -> object:
    tools = sorted(queries.rates_by_tool(conn, scope))
    return sorted(queries.calls_before_recovery(conn, scope, tools).items())


def _costs(conn: Connection, scope: Scope, by: queries.CostGroup) -> object:
    return queries.costs(conn, scope, by, queries.prices_of(conn, scope.project_id))


def _streamed(ask: Callable[[Connection, Scope], queries.RowStream]) -> Question:
    def rows(conn: Connection, scope: Scope) -> object:
        stream = ask(conn, scope)
        return [stream.columns, *islice(map(_same_flags, stream.rows), 300)]

    return rows


def _same_flags(row: Sequence[object]) -> list[object]:
    """Return a row with flags as numbers and JSON as text: a stream says so of its columns."""
    return [
        int(each)
        if isinstance(each, bool)
        else json.dumps(each, sort_keys=True)
        if isinstance(each, list | dict)
        else _as_json(each)
        for each in row
    ]


def _as_json(value: object) -> object:
    if isinstance(value, str) and value[:1] in ("{", "["):
        with suppress(ValueError):
            return json.dumps(json.loads(value), sort_keys=True)
    return value


QUESTIONS: Final[dict[str, Question]] = {
    "summary": queries.summary,
    "overview": queries.overview,
    "period_before": queries.period_before,
    "rates_by_tool": queries.rates_by_tool,
    "rates_by_code": queries.rates_by_code,
    "round_trips": queries.round_trips,
    "chains_by_argument": queries.chains_by_argument,
    **{f"chains_by {by}": partial(queries.chains_by, by=by) for by in ("tool", "code", "model")},
    **{f"frequency {by}": partial(queries.frequency, by=by) for by in queries.FREQUENCIES},
    "new_signatures": lambda conn, scope: queries.new_signatures(
        conn, scope, scope.now - 14 * DAY_US, limit=20
    ),
    "matrix code": partial(queries.matrix, by="code"),
    "matrix field": partial(queries.matrix, by="field"),
    **{f"costs {by}": partial(_costs, by=by) for by in queries.COST_GROUPS[:2]},
    "facets": queries.facets,
    "values_of": lambda conn, scope: [
        queries.values_of(conn, scope, key, limit=5) for key in ("code", "tool", "field")
    ],
    "message_efficacy": queries.message_efficacy,
    "silent_successes": queries.silent_successes,
    "phantom_arguments": queries.phantom_arguments,
    "repeated_executions": queries.repeated_executions,
    "fix_next": queries.fix_next,
    **{f"kinds {by}": partial(queries.kinds, order=by) for by in queries.KIND_ORDERS},
    "conversation_rungs": queries.conversation_rungs,
    "count_failures": queries.count_failures,
    "failures_over_time": queries.failures_over_time,
    "weekly": queries.weekly,
    "failure_list": partial(_pages, queries.failure_list),
    "chain_list": partial(_pages, queries.chain_list),
    "failure_detail": lambda conn, scope: [
        queries.failure_detail(conn, scope, each) for each in _first(conn, scope)[0]
    ],
    "chain_detail, calls_beside": _chains,
    "conversation_detail": lambda conn, scope: [
        queries.conversation_detail(conn, scope, each) for each in _first(conn, scope)[2]
    ],
    "calls_before_recovery": _before_recovery,
    "all_changes": queries.all_changes,
    "changes": queries.changes,
    "detected_changes": queries.detected_changes,
    "change and its effects": _changes,
    "comparison, effect": _compared,
    "experiment, experiment_looks, arm_costs": _trials,
    "iter_failures": _streamed(queries.iter_failures),
    "iter_chains": _streamed(queries.iter_chains),
    "iter_issues": _streamed(queries.iter_issues),
    "projects": lambda conn, scope: queries.projects(conn),
    "sampling": lambda conn, scope: queries.sampling(conn, scope.project_id),
}
"""Every reading function of ``queries`` by name, as questions about a scope."""


class Both:
    """A SQLite database, and the same with its events in ClickHouse."""

    def __init__(self, path: Path) -> None:
        url = f"sqlite:///{path}"
        self.lite, self.other = open_engine(url), open_engine(url)
        self.columnar = open_events(copied_to_clickhouse(url))
        read_events_from(self.other, self.columnar)

    def differing(
        self, name: str, text: str, *, only: Collection[str] = tuple(QUESTIONS)
    ) -> list[str]:
        """Return the questions about *text* that have another answer with ClickHouse."""
        with read_connection(self.lite) as conn, reading(self.other) as other:
            number = find_project(conn, name)
            assert number is not None
            scope = Scope(number, parse(text), NOW)
            return [
                f"{each} of {text!r} in {name}"
                for each in only
                if not equal(answer(conn, scope, each), answer(other, scope, each))
            ]

    def close(self) -> None:
        """Close all."""
        for each in (self.lite, self.other, self.columnar):
            each.dispose()
