"""A query finds the same rows in SQL, on both engines, as a naive reading of every row."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from sqlalchemy import Connection, func, select
from tests.dashboard.conftest import on_engines
from tests.dashboard.generated import NOW
from tests.dashboard.naive import Tables
from tests.dashboard.queries_text import queries

from toolfault_collector.storage.tables import call_counts, chain, tool_call
from toolfault_dashboard.search import KEYS, Query, parse
from toolfault_dashboard.search.where import (
    calls_where,
    chains_where,
    counts_where,
    failures_where,
)

TEXTS = [
    "tool:http_request", "-tool:http_request", "tool:*_*", 'tool:"a*b"', "tool:a*b", "tool:t*",
    'model:""', "-model:claude*", "has:model", "no:model", "field:port", "field:items",
    "field:items.0.name", 'field:""', '-field:""', "has:field", "-has:field", 'field:"50%_off"',
    "field:port issue:wrong_type", "issue:missing_field issue:wrong_type",
    "field_pattern:it* issue:missing_field near_miss:any",
    "field:50*", "near_miss:any", "-near_miss:any", "near_miss:bool*", "chain:none",
    "chain:recovered,none", "-chain:abandoned", "tag.team:blue", "-tag.team:blue", "tag.x.y:1",
    "100%", "_all_", '"[a-z]*"', '"\\\\"', "ÄÖÜ", "äöü", '"no"', "duration:>500", "attempt:>1",
    "duration:12.5", "since:7d until:2d",
    "variant:a=1", "variant:b=*", "-variant:b=2", "variant:*2", 'variant:""',
    "until:2026-11-01", "time:none", "-time:none",
    "conversation:conv-7", "-conversation:conv-7,conv-8 -tool:search",
    "detection:soft*", "exception:TimeoutError", "user:u-7",
    "message:*light*", 'message:""', "category:parameter,internal", "-audience:user,llm",
    "side:server", "-side:agent", "has:side -side:server,agent", "-has:side framework:mcp",
    "issue:wrong_type -code:wrong_type", "phase:validation reason:paused",
    "-field:port -issue:missing_field -near_miss:any", "-has:field -field_pattern:it*",
    "-has:issue,near_miss -field:port", "-has:model,issue -issue:timeout",
    '-field:"",port -issue:wrong_type -no', "field:port -issue:timeout chain:abandoned no",
    "chain:recovered,switched", "-chain:open,recovered", "signature:nothing",
    "-message:nothing", "-signature:nothing message:*light*",
    'signature:nothing,""', "chain:recovered -chain:none", "-chain:recovered has:chain",
    "model:claude-x,gpt-5 code:wrong_type,missing_field chain:switched since:20d",
]  # fmt: skip
# What is written differently for PostgreSQL: patterns, texts, tags, lists of names, numbers.
POSTGRESQL = [
    "tool:a*b", '-tool:"a*b"', "field:items", '-field:""', 'field:"50%_off"', "near_miss:bool*",
    "chain:recovered,none", "-chain:abandoned", "tag.team:blue", "-tag.x.y:1", "100%", '"\\\\"',
    "ÄÖÜ", "duration:>500", "since:7d until:2d", "variant:b=*", "time:none", "message:*light*",
    "-has:issue,near_miss -field:port", 'signature:nothing,""',
]  # fmt: skip


def _check(conn: Connection, project: int, tables: Tables, query: Query) -> None:
    failures = conn.execute(
        select(tool_call.c.event_id).where(failures_where(project, query, NOW))
    ).scalars()
    assert sorted(failures) == sorted(c["event_id"] for c in tables.failures(query, NOW))
    chains = conn.execute(
        select(chain.c.chain_id).where(chains_where(project, query, NOW))
    ).scalars()
    assert sorted(chains) == sorted(c["chain_id"] for c in tables.opened(query, NOW))
    calls = conn.execute(
        select(func.count()).select_from(tool_call).where(calls_where(project, query, NOW))
    ).scalar_one()
    folded = conn.execute(
        select(func.coalesce(func.sum(call_counts.c.calls), 0)).where(
            counts_where(project, query, NOW), call_counts.c.tool.is_not(None)
        )
    ).scalar_one()
    assert calls + int(folded) == sum(c["calls"] for c in tables.denominators(query, NOW))


@given(query=queries)
@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_sql_and_naive_reading_agree(
    query: Query, conn: Connection, project: int, stored: Tables
) -> None:
    """Failures, chains and denominators of any query are those of a naive filter."""
    _check(conn, project, stored, query)


@on_engines(
    "number",
    [pytest.param(2_500, marks=pytest.mark.long)],
    [15, pytest.param(2_500, marks=pytest.mark.long)],
)
def test_any_query_runs(number: int, conn: Connection, project: int) -> None:
    """No query that can be written is an SQL error, and each is read back from its own text."""

    @given(query=queries)
    @settings(max_examples=number, deadline=None, database=None, phases=[Phase.generate])
    def run(query: Query) -> None:
        assert parse(str(query)) == query
        assert str(parse(str(query))) == str(query)
        for column, where in (
            (tool_call.c.id, failures_where), (chain.c.id, chains_where),
            (tool_call.c.id, calls_where), (call_counts.c.id, counts_where),
        ):  # fmt: skip
            condition = where(project, query, NOW)
            conn.execute(select(column).where(condition).limit(1)).first()

    run()


@on_engines("text", TEXTS, POSTGRESQL)
def test_each_key_on_real_values(text: str, conn: Connection, project: int, stored: Tables) -> None:
    """The queries that people write agree with the naive filter."""
    _check(conn, project, stored, parse(text))


def test_conditions_about_issues_are_about_the_same_one(
    conn: Connection, project: int, stored: Tables
) -> None:
    """Of a failure with two issues the field of one and the code of the other are no match."""

    def found(text: str) -> set[str]:
        where = failures_where(project, parse(text), NOW)
        return set(conn.execute(select(tool_call.c.event_id).where(where)).scalars())

    pairs = {
        (one["field_pattern"], other["code"])
        for call in stored.calls
        for one in call["issues"]
        for other in call["issues"]
        if one["code"] != other["code"] and one["field_pattern"].isalpha()
    }
    apart = 0
    for field, code in sorted(pairs):
        both = found(f"field_pattern:{field} issue:{code}")
        either = found(f"field_pattern:{field}") & found(f"issue:{code}")
        assert both <= either
        apart += both < either
    assert apart > 0


def test_what_a_page_shows_of_a_key_has_a_title() -> None:
    """A facet, and a column that can be added to the list, is not shown without a heading."""
    shown = [key for key in KEYS.values() if key.facet or key.is_column]
    assert [key.name for key in shown if not key.title] == []
    ranks = sorted(key.facet for key in shown if key.facet)
    assert ranks == list(range(1, len(ranks) + 1))


def test_every_key_selects_something_and_not_everything(
    conn: Connection, project: int, stored: Tables
) -> None:
    """The generated history can tell every key from one that does nothing."""
    everything = len(stored.failures(parse(""), NOW))
    for name in KEYS:
        values = {
            "since": "7d", "until": "7d", "first_seen": "20d", "has": "model",
                "attempt": ">1", "duration": ">100",
            "event": stored.failures(parse(""), NOW)[0]["event_id"], "conversation": "conv-*",
            "time": "none", "category": "parameter", "audience": "user", "chain": "recovered",
            "message": "*light*", "user": "u-7", "side": "server", "conversation_rung": "trace",
            "tool": "search", "near_miss": "any",
            "signature": "a*,b*", "state": "regressed", "code": "timeout", "own_code": "timeout",
                "detection": "soft*", "issue": "wrong_type",
        }  # fmt: skip
        query = parse(f"{name}:{values.get(name, '*')}")
        found = conn.execute(
            select(func.count()).select_from(tool_call).where(failures_where(project, query, NOW))
        ).scalar_one()
        assert 0 < found < everything, name
