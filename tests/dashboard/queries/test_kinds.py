"""Failures by kind: one row per signature, counted and placed in time as a naive recount does."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from sqlalchemy import Connection
from tests.dashboard.conftest import on_engines
from tests.dashboard.generated import NOW
from tests.dashboard.naive import Tables
from tests.engines import HISTORY_ON_POSTGRESQL_IS_LONG

from toolfault_dashboard import queries
from toolfault_dashboard.queries import KIND_ORDERS, Scope
from toolfault_dashboard.queries.buckets import WIDTH, start_of
from toolfault_dashboard.search import parse


@on_engines(
    "text",
    [
        "",
        "since:14d",
        "since:36h",
        "tool:search -code:timeout",
        "field:port",
        "time:none",
        "first_seen:20d",
        "first_seen:2026-11-01 tool:search",
        "tool:x",
        "state:regressed",
        "state:new,open since:9d",
        "-state:open -owner:a*",
        'owner:"" has:owner',
        "-has:owner has:state",
    ],
    ['since:14d -code:timeout -state:new owner:a*,""'],
)
def test_kinds_are_what_a_recount_by_signature_gives(
    conn: Connection, project: int, stored: Tables, text: str
):
    """Failures, last seen and every bucket of every kind; together they are all failures."""
    scope = Scope(project, parse(text), NOW)
    found = queries.kinds(conn, scope)
    failures = stored.failures(scope.query, NOW)
    assert found.failures == len(failures)
    assert found.groups == len(found.rows)
    counted = Counter(row["fingerprint"] or "" for row in failures)
    assert {row.fingerprint: row.failures for row in found.rows} == counted
    for row in found.rows:
        own = [each for each in failures if (each["fingerprint"] or "") == row.fingerprint]
        timed = [each["occurred_at"] for each in own if each["time_source"] != "none"]
        assert row.last_at == max(timed, default=None)
        assert {(each["tool"], each["code"]) for each in own} == {(row.tool, row.code)}
        assert {(each["kind_state"] or "", each["kind_owner"] or "") for each in own} == {
            (row.state, row.owner)
        }
        opened = [stored.chains[c["event_id"]] for c in own if c["event_id"] in stored.chains]
        assert row.calls_spent == sum(chain["spent"] for chain in opened)
        named = {issue["field_pattern"] for issue in own[0]["issues"] if issue["field_pattern"]}
        assert set(filter(None, row.fields.split(", "))) == named
        placed = Counter(start_of(at, found.bucket) for at in timed)
        drawn = dict(zip(found.starts, row.counts, strict=True)) if found.starts else {}
        assert {start: number for start, number in drawn.items() if number} == placed
    gaps = {later - sooner for sooner, later in zip(found.starts, found.starts[1:], strict=False)}
    assert gaps <= {WIDTH[found.bucket]}


def test_a_kind_was_first_seen_when_its_first_failure_was(
    conn: Connection, project: int, stored: Tables
):
    """The first sight is that of the project, also where the window begins later."""
    recent = queries.kinds(conn, Scope(project, parse("since:5d -time:none"), NOW)).rows
    assert recent
    for row in recent:
        own = [c["occurred_at"] for c in stored.calls if c["fingerprint"] == row.fingerprint]
        assert row.first_at == min(own)


def test_what_has_no_time_has_no_first_sight(conn: Connection, project: int):
    """Kinds whose failures carry no times are neither placed nor dated."""
    found = queries.kinds(conn, Scope(project, parse("time:none"), NOW))
    assert found.rows
    assert found.starts == ()
    assert {(row.first_at, row.last_at, row.counts) for row in found.rows} == {(None, None, ())}


@pytest.mark.parametrize("order", KIND_ORDERS)
@HISTORY_ON_POSTGRESQL_IS_LONG
def test_the_order_is_the_one_that_was_asked_for(conn: Connection, scope: Scope, order: Any):
    """Most failures, newest first sight or newest last sight first; a limit cuts that order."""
    rows = queries.kinds(conn, scope, order=order).rows
    keys = [
        {
            "failures": row.failures,
            "calls": row.calls_spent,
            "first": row.first_at or 0,
            "last": row.last_at or 0,
        }[order]
        for row in rows
    ]
    assert keys == sorted(keys, reverse=True)
    assert len(set(keys)) > 1
    cut = queries.kinds(conn, scope, order=order, limit=3)
    assert [row.fingerprint for row in cut.rows] == [row.fingerprint for row in rows[:3]]
    assert cut.groups == len(rows)
    assert [row.counts for row in cut.rows] == [row.counts for row in rows[:3]]


@HISTORY_ON_POSTGRESQL_IS_LONG
def test_the_query_of_a_kind_selects_its_failures(conn: Connection, scope: Scope):
    """As many failures are behind a row as it says."""
    for row in queries.kinds(conn, scope, limit=5).rows:
        assert queries.count_failures(conn, scope.narrowed(row.query)) == row.failures
