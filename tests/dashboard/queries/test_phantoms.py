"""Phantom arguments: counted by tool and model as a recount of the rows has them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from sqlalchemy import Connection
from tests.dashboard.conftest import on_engines
from tests.dashboard.generated import NOW
from tests.dashboard.naive import Tables

from toolfault_collector.admin.projects import find_project
from toolfault_dashboard import queries
from toolfault_dashboard.analysis.rates import wilson
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.search import QueryError, parse

ASKED = ("", "since:14d -tool:search", "model:claude*", "tool:search code:timeout", "agent:nobody")


def _named(row: dict[str, Any]) -> Counter[str]:
    """How many calls had each phantom argument."""
    told = row["phantom_arguments"]
    told = json.loads(told) if isinstance(told, str) else told
    return Counter(told)


@on_engines("text", ASKED, ("", "since:14d -tool:search"))
def test_phantom_arguments_are_those_of_the_rows(
    conn: Connection, project: int, stored: Tables, text: str
) -> None:
    """Each row has the calls with the argument, and its share of all calls of tool and model."""
    scope = Scope(project, parse(text), NOW)
    calls: Counter[tuple[str, str]] = Counter()
    had: Counter[tuple[str, str, str]] = Counter()
    for row in stored.denominators(scope.query, NOW):
        pair = (row["tool"], row["model"] or "")
        calls[pair] += row["calls"]
        for name, number in _named(row).items():
            had[*pair, name] += number
    found = queries.phantom_arguments(conn, scope)
    assert {(each.tool, each.model, each.argument): each.calls for each in found} == dict(had)
    assert bool(found) == (text != "agent:nobody")
    for each in found:
        n = calls[each.tool, each.model]
        interval = wilson(each.calls, n)
        assert (each.rate.count, each.rate.n) == (each.calls, n)
        assert (each.rate.low, each.rate.high) == (interval.low, interval.high)
    assert [each.calls for each in found] == sorted((each.calls for each in found), reverse=True)


def test_a_sampled_call_counts_as_what_it_stands_for(conn: Connection) -> None:
    """Where calls were sent at a rate the numbers are those of what they stand for."""
    sampled = find_project(conn, "sampled")
    assert sampled is not None
    found = queries.phantom_arguments(conn, Scope(sampled, parse(""), NOW))
    assert found
    assert any(row.calls > row.rate.count for row in found)
    assert all(0.0 < (row.rate.value or 0.0) <= 1.0 for row in found)


def test_who_may_not_see_what_models_send_is_refused(conn: Connection, project: int) -> None:
    """Names of arguments are for those who may see what the model read."""
    for audience in ("llm", "system"):
        assert queries.phantom_arguments(conn, Scope(project, parse(""), NOW, audience))
    with pytest.raises(QueryError, match="may not see"):
        queries.phantom_arguments(conn, Scope(project, parse(""), NOW, "user"))
