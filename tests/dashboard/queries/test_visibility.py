"""What an audience may not see is in no answer, no table and no count."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from sqlalchemy import Connection, Engine
from tests.dashboard.generated import NOW
from tests.dashboard.mcp.asking import text_of
from tests.dashboard.pages.test_roles import CANARIES, RANK, _events

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_dashboard import queries
from toolfault_dashboard.api.shapes import answer
from toolfault_dashboard.exports import TABLE_NAMES, named_table, write
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.rows import FailureRow
from toolfault_dashboard.search import KEYS, QueryError, parse


@pytest.fixture
def guarded(sqlite_engine: Engine) -> Iterator[tuple[Connection, int]]:
    """A project whose every field holds a canary, beside another that holds them all, too."""
    with write_transaction(sqlite_engine) as conn:
        other = ensure_project(conn, "other")
        store_events(conn, other, _events(), received_at=NOW, time_policy="import")
        project = ensure_project(conn, "guarded")
        receipt = store_events(conn, project, _events(), received_at=NOW, time_policy="import")
        assert receipt.accepted == 4, receipt.rejected
    with read_connection(sqlite_engine) as conn:
        yield conn, project


def _answers(conn: Connection, scope: Scope) -> dict[str, str]:
    """Every answer that a reader of *scope* can get, as text."""
    asked: dict[str, Any] = {
        "summary": queries.summary,
        "overview": queries.overview,
        "facets": queries.facets,
        "over time": queries.failures_over_time,
        "round trips": queries.round_trips,
        "list": queries.failure_list,
        "chains": queries.chain_list,
        "changes": queries.changes,
        "detected": queries.detected_changes,
        "experiments": queries.experiments,
        "rungs": queries.conversation_rungs,
        "silent": queries.silent_successes,
        "phantoms": queries.phantom_arguments,
        "repeats": queries.repeated_executions,
        "messages": queries.message_efficacy,
        "fixes": queries.fix_next,
        "matrix": lambda c, s: queries.matrix(c, s, "field"),
        "comparison": lambda c, s: queries.comparison(c, s, s),
    }
    for by in queries.FREQUENCIES:
        asked[f"frequency {by}"] = lambda c, s, by=by: queries.frequency(c, s, by)
    for table in TABLE_NAMES:
        asked[f"table {table}"] = lambda c, s, table=table: b"".join(
            write(named_table(c, s, table), "ndjson")
        ).decode()
    for row in queries.failure_list(conn, scope).rows:
        asked[f"failure {row.event_id}"] = lambda c, s, row=row: queries.failure_detail(
            c, s, row.event_id
        )
        asked[f"chain {row.event_id}"] = lambda c, s, row=row: queries.chain_detail(
            c, s, row.chain_id or ""
        )
    tools = ("overview", "fix_next", "kinds", "search", "changes")
    for tool in tools:
        asked[f"mcp {tool}"] = lambda c, s, tool=tool: text_of(c, s.project_id, tool, s.audience)
    found: dict[str, str] = {}
    for name, ask in asked.items():
        try:
            found[name] = json.dumps(answer(ask(conn, scope)), default=str)
        except QueryError as error:
            found[name] = f"refused: {error}"
    return found


@pytest.mark.parametrize("audience", RANK)
def test_no_answer_holds_more_than_its_audience(
    guarded: tuple[Connection, int], audience: queries.Audience
) -> None:
    """Each answer is free of the canaries above its audience, and of rows of another project."""
    conn, project = guarded
    answers = _answers(conn, Scope(project, parse(""), NOW, audience))
    for row in _rows_of_another(conn, project):
        assert not any(row.event_id in text for text in answers.values())
    for rank, owner in enumerate(RANK):
        for field, canary in CANARIES[owner].items():
            where = [name for name, text in answers.items() if canary in text]
            if rank > RANK.index(audience):
                assert not where, f"{field} of {owner} is shown to {audience} in {where}"
            elif field not in {"retry_context", "exception_module", "traceback"}:
                assert where, f"{field} of {owner} is not shown to {audience}"


@pytest.mark.parametrize("audience", RANK)
def test_what_is_hidden_cannot_be_counted(
    guarded: tuple[Connection, int], audience: queries.Audience
) -> None:
    """No way of writing a condition on a hidden field is taken: each would be an oracle."""
    conn, project = guarded
    hidden = [key.name for key in KEYS.values() if RANK.index(key.audience) > RANK.index(audience)]
    texts = {
        name: [f"{name}:*", f"-{name}:x", f"has:{name}", f"no:{name}", f"-has:tool,{name}"]
        for name in hidden
    }
    if audience != "system":
        texts["a tag"] = ["tag.team:*", "-tag.team:x", "has:port,user"]
    if audience == "user":
        texts["a word"] = ["word", '-"some words"']
    for name, ways in texts.items():
        asked = 0
        for text in ways:
            try:
                query = parse(text)
            except QueryError:
                continue  # not even a query, for anybody
            asked += 1
            scope = Scope(project, query, NOW, audience)
            for ask in (
                queries.count_failures,
                queries.summary,
                queries.facets,
                queries.chain_list,
            ):
                with pytest.raises(QueryError, match="may not filter"):
                    ask(conn, scope)
        assert asked, name
    assert hidden or audience == "system"


def _rows_of_another(conn: Connection, project: int) -> Sequence[FailureRow]:
    other = next(row.id for row in queries.projects(conn) if row.id != project)
    rows = queries.failure_list(conn, Scope(other, parse(""), NOW)).rows
    assert rows
    return rows


def test_another_project_is_another_world(guarded: tuple[Connection, int]) -> None:
    """Every id of another project leads nowhere; none is in an answer, as is shown above."""
    conn, project = guarded
    for row in _rows_of_another(conn, project):
        assert queries.failure_detail(conn, Scope(project, parse(""), NOW), row.event_id) is None
