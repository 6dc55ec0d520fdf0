"""Lists, details and cursors."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from sqlalchemy import Connection, Engine
from tests.dashboard.conftest import on_engines
from tests.dashboard.generated import NOW
from tests.dashboard.naive import Tables
from tests.engines import HISTORY_ON_POSTGRESQL_IS_LONG

from toolfault_collector.storage.database.engine import read_connection
from toolfault_dashboard import queries
from toolfault_dashboard.queries import CursorError, Scope
from toolfault_dashboard.search import QueryError, parse


def test_pages_go_back_the_way_they_came(conn: Connection, scope: Scope) -> None:
    """Previous of the next page is the page before; the first page has no previous one."""
    first = queries.failure_list(conn, scope, limit=20)
    second = queries.failure_list(conn, scope, limit=20, cursor=first.next_cursor)
    third = queries.failure_list(conn, scope, limit=20, cursor=second.next_cursor)
    back = queries.failure_list(conn, scope, limit=20, cursor=third.previous_cursor)
    assert back.rows == second.rows
    again = queries.failure_list(conn, scope, limit=20, cursor=back.previous_cursor)
    assert again.rows == first.rows
    assert first.previous_cursor is None
    assert again.previous_cursor is None


@on_engines(
    "text,many",
    [
        ("model:claude* has:issue", False), ("signature:nothing", False),
        ("field:port chain:abandoned", False), ("-field:port -issue:wrong_type", True),
        ('"no" -near_miss:any', False), ("time:none has:field", False),
        ("message:*light* since:14d", False), ("user:u-7 until:5d", False), ("-time:none", True),
    ],
    [("-field:port -issue:wrong_type", True), ('"no" -near_miss:any', False)],
)  # fmt: skip
def test_every_page_is_what_a_naive_reading_gives(
    conn: Connection, scope: Scope, stored: Tables, text: str, many: bool
) -> None:
    """Page by page a list has every failure of the scope once, whether many are found or few."""
    narrowed = scope.narrowed(text)
    wanted = [each["event_id"] for each in stored.failures(narrowed.query, NOW)]
    assert (len(wanted) > 200) is many
    listed: list[str] = []
    cursor: str | None = None
    while True:
        page = queries.failure_list(conn, narrowed, cursor=cursor, limit=101)
        listed += [row.event_id for row in page.rows]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert listed == wanted
    assert page.total == len(listed)


def test_chain_pages(conn: Connection, scope: Scope) -> None:
    """Chains page like failures and every one is listed once."""
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = queries.chain_list(conn, scope, cursor=cursor, limit=50)
        seen += [row.chain_id for row in page.rows]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == page.total


@pytest.mark.parametrize("limit", [-5, 0, 10**9])
def test_limits_are_cut(conn: Connection, scope: Scope, limit: int) -> None:
    """No limit asks for less than one row or more than 500."""
    assert 1 <= len(queries.failure_list(conn, scope, limit=limit).rows) <= 500


def test_a_cursor_belongs_to_its_list(conn: Connection, scope: Scope) -> None:
    """A cursor that was changed, or made for another query, list or project, is refused."""
    cursor = queries.failure_list(conn, scope, limit=5).next_cursor
    assert cursor is not None
    flipped = cursor[:-3] + ("A" if cursor[-3] != "A" else "B") + cursor[-2:]
    for text in (flipped, "x", "", "é", "A" * 5_000, cursor + "A"):
        if text:
            with pytest.raises(CursorError):
                queries.failure_list(conn, scope, cursor=text)
    with pytest.raises(CursorError):
        queries.failure_list(conn, scope.narrowed("tool:search"), cursor=cursor)
    with pytest.raises(CursorError):
        queries.chain_list(conn, scope, cursor=cursor)
    other = dataclasses.replace(scope, project_id=scope.project_id + 1)
    with pytest.raises(CursorError):
        queries.failure_list(conn, other, cursor=cursor)


@HISTORY_ON_POSTGRESQL_IS_LONG
def test_detail_of_every_failure(conn: Connection, scope: Scope) -> None:
    """Every failure has its detail; its chain holds it and agrees with the chain's own counts."""
    page = queries.failure_list(conn, scope, limit=20)
    assert len(page.rows) == 20
    for row in page.rows:
        detail = queries.failure_detail(conn, scope, row.event_id)
        assert detail is not None
        assert detail.row == row
        assert len(detail.issues) == row.issues_total
        assert detail.signature is not None
        if detail.chain is None:
            assert row.conversation is None
            continue
        chain, attempts = detail.chain.chain, detail.chain.attempts
        assert chain.outcome == row.chain_outcome
        assert row.event_id in [attempt.event_id for attempt in attempts]
        assert chain.calls == len(attempts)
        assert chain.failures == sum(1 for each in attempts if not each.success)
        assert chain.round_trips == sum(1 for each in attempts[1:] if not each.parallel)
        assert chain.identical_repeats == sum(1 for each in attempts if each.identical)
        assert [each.attempt for each in attempts] == list(range(1, len(attempts) + 1))


@HISTORY_ON_POSTGRESQL_IS_LONG
def test_neighbours_walk_the_filtered_list(conn: Connection, scope: Scope) -> None:
    """Older and newer lead through exactly the rows of the list."""
    narrowed = scope.narrowed("tool:search")
    rows = queries.failure_list(conn, narrowed, limit=10).rows
    assert len(rows) == 10
    for newer, older in itertools.pairwise(rows):
        detail = queries.failure_detail(conn, narrowed, newer.event_id)
        assert detail is not None
        assert detail.older == older.event_id
        below = queries.failure_detail(conn, narrowed, older.event_id)
        assert below is not None
        assert below.newer == newer.event_id


def test_a_stream_can_be_restricted_by_a_tag(
    conn: Connection, scope: Scope, stored: Tables
) -> None:
    """An export of the failures with a tag has these failures, newest first."""
    narrowed = scope.narrowed("tag.team:blue")
    stream = queries.iter_failures(conn, narrowed)
    place = stream.columns.index("event_id")
    wanted = [each["event_id"] for each in stored.failures(narrowed.query, NOW)]
    assert wanted
    assert [row[place] for row in stream.rows] == wanted


def test_untimed_rows_show_no_time(conn: Connection, scope: Scope) -> None:
    """No row of a source without times carries one, in lists, chains, exports and frequencies."""
    untimed = scope.narrowed("time:none")
    assert all(row.occurred_at is None for row in queries.failure_list(conn, untimed).rows)
    chains = queries.chain_list(conn, untimed).rows
    assert chains
    assert all(row.started_at is row.last_at is row.recovered_at is None for row in chains)
    stream = queries.iter_failures(conn, untimed)
    place = stream.columns.index("occurred_at")
    assert {row[place] for row in stream.rows} == {None}
    table = queries.frequency(conn, untimed, "tool")
    assert {row.first_at for row in table.rows} == {None}


def test_nothing_of_another_project_is_found(conn: Connection, scope: Scope) -> None:
    """Ids of one project find nothing in another."""
    other = queries.project_by_name(conn, "other")
    assert other is not None
    elsewhere = Scope(other.id, parse(""), NOW)
    row = queries.failure_list(conn, scope, limit=1).rows[0]
    assert queries.failure_detail(conn, elsewhere, row.event_id) is None
    assert row.chain_id is None or queries.chain_detail(conn, elsewhere, row.chain_id) is None
    change = queries.changes(conn, scope)[0]
    assert queries.change(conn, elsewhere, change.event_id) is None
    assert queries.change(conn, scope, change.event_id) == change


def test_a_viewer_sees_no_text_of_model_or_system(conn: Connection, scope: Scope) -> None:
    """What an audience may not see is in no row, and cannot be found out by filtering."""
    viewer = dataclasses.replace(scope, audience="user")
    developer = dataclasses.replace(scope, audience="llm")
    for row in queries.failure_list(conn, viewer, limit=100).rows:
        assert row.text == "It did not work."
    raised = scope.narrowed("has:issue has:exception")
    row = queries.failure_list(conn, raised, limit=1).rows[0]
    for reader in (viewer, developer):
        detail = queries.failure_detail(conn, reader, row.event_id)
        assert detail is not None
        assert detail.text_system is detail.exception_type is detail.user is None
        assert detail.signature is not None
        assert detail.signature.exception_type is None
    hidden = queries.failure_detail(conn, viewer, row.event_id)
    assert hidden is not None
    assert hidden.text_llm is hidden.message is None
    assert all(issue.received is None and not issue.near_miss for issue in hidden.issues)
    for text in ("error", "message:*x*", "exception:TimeoutError", "tag.team:blue", "user:u-7"):
        with pytest.raises(QueryError):
            queries.failure_list(conn, viewer.narrowed(text))
        with pytest.raises(QueryError):
            queries.summary(conn, viewer.narrowed(text))
    with pytest.raises(QueryError):
        queries.frequency(conn, viewer, "message")
    stream = queries.iter_failures(conn, viewer)
    rows = [dict(zip(stream.columns, row, strict=True)) for row in stream.rows]
    assert {row["text_system"] for row in rows} == {row["expected"] for row in rows} == {None}


def test_an_id_that_no_text_can_hold_is_not_there(engine: Engine):
    """PostgreSQL refuses NUL in a parameter: there is no such row, and no fault of the server."""
    with read_connection(engine) as conn:
        scope = Scope(1, parse(""), NOW, "llm")
        assert queries.chain_detail(conn, scope, "a\0b") is None
        assert queries.failure_detail(conn, scope, "a\0b") is None
        assert queries.change(conn, scope, "a\0b") is None
