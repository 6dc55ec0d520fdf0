"""Conversations whole: all tools in order, and what happened beside a chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Engine, event, select
from tests.engines import HISTORY_ON_POSTGRESQL_IS_LONG
from tests.factories import conversation_end, failure, success

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import parse_time
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import tool_call
from toolfault_dashboard import queries
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.figures.conversation_counts import count_conversations
from toolfault_dashboard.queries.rows import Beside, CalledFirst, ConversationCall
from toolfault_dashboard.search import parse

SECOND = 1_000_000
NOW = parse_time("2026-11-20T12:00:00Z")
THEN = NOW - 3_600 * SECOND


def _stored(engine: Engine, project: str, events: Sequence[Mapping[str, Any]]) -> Scope:
    with write_transaction(engine) as conn:
        number = ensure_project(conn, project)
        assert store_events(conn, number, events, received_at=NOW).accepted == len(events)
    return Scope(number, parse(""), NOW)


def _at(second: int) -> dict[str, Any]:
    return {"at": THEN + second * SECOND, "turn": f"t{second}", "duration_ms": 0}


def _names(calls: Sequence[ConversationCall]) -> list[str]:
    return [each.tool for each in calls]


def _beside(conn: Connection, scope: Scope, first: Mapping[str, Any]) -> Beside:
    detail = queries.chain_detail(conn, scope, first["event_id"])
    assert detail is not None
    return queries.calls_beside(conn, scope, detail)


def test_what_was_called_beside_a_chain(engine: Engine) -> None:
    """Calls of other tools stand between two of a chain; a switch names the tool it went to."""
    edit, bash = failure("Edit", **_at(0)), failure("Bash", **_at(2))
    write = failure("Write", **_at(5))
    parallel = success("Bash", **{**_at(6), "turn": "t5"})  # its model had not seen Write fail
    events = [
        *(edit, success("Read", **_at(1)), bash, success("Edit", **_at(3))),
        *(write, parallel, success("Grep", **_at(7)), success("Read", **_at(8))),
    ]
    scope = _stored(engine, "demo", events)
    _stored(engine, "other", [success("Alien", **_at(1))])
    with read_connection(engine) as conn:
        of_edit, of_bash, of_write = (_beside(conn, scope, each) for each in (edit, bash, write))
        found = queries.conversation_detail(conn, scope, "conv-1")
        assert queries.conversation_detail(conn, scope, "conv-2") is None

    assert [_names(each) for each in of_edit.between] == [[], ["Read", "Bash"]]
    assert [_names(each) for each in of_bash.between] == [[], ["Edit", "Write"]]
    assert of_edit.followed_by is of_bash.followed_by is None
    assert of_write.followed_by is not None
    assert of_write.followed_by.tool == "Grep"
    assert found is not None
    assert _names(found.rows) == [
        "Edit", "Read", "Bash", "Edit", "Write", "Bash", "Grep", "Read",
    ]  # fmt: skip
    assert (found.calls, found.failures, found.chains, found.only_counted) == (8, 3, 3, 0)


def test_a_switch_without_turns_goes_by_when_a_call_began(engine: Engine) -> None:
    """A call that ran beside the failure and ended after it is not what the model turned to."""

    def lasting(first: int, last: int) -> dict[str, Any]:
        return {"at": THEN + last * SECOND, "duration_ms": (last - first) * 1_000}

    search = failure("search", **lasting(0, 10))
    others = [success("list", **lasting(5, 12)), success("read", **lasting(15, 16))]
    scope = _stored(engine, "demo", [search, *others])
    with read_connection(engine) as conn:
        found = _beside(conn, scope, search)
    assert found.followed_by is not None
    assert found.followed_by.tool == "read"


def test_calls_that_were_only_counted_are_told(engine: Engine) -> None:
    """What the end of a conversation counts beyond the calls that are stored is a number of it."""
    end = conversation_end(at=THEN + 9 * SECOND, calls={"Edit": 2, "Read": 40})
    scope = _stored(engine, "demo", [failure("Edit", **_at(0)), success("Edit", **_at(1)), end])
    with read_connection(engine) as conn:
        found = queries.conversation_detail(conn, scope, "conv-1")
    assert found is not None
    assert (found.calls, found.only_counted, found.ended) == (2, 40, True)


def test_a_long_conversation_has_pages(empty_sqlite: Engine) -> None:
    """Pages follow each other without a gap; one beyond the last is empty."""
    count = queries.CALLS_PER_PAGE + 3
    events = [success(f"tool_{number}", **_at(number)) for number in range(count)]
    scope = _stored(empty_sqlite, "demo", events)
    with read_connection(empty_sqlite) as conn:
        pages = [queries.conversation_detail(conn, scope, "conv-1", page=n) for n in (1, 2, 3)]
    listed = [each.tool for page in pages if page is not None for each in page.rows]
    assert listed == [each["tool"] for each in events]
    assert [len(page.rows) for page in pages if page is not None] == [count - 3, 3, 0]
    assert pages[0] is not None
    assert pages[0].pages == 2


@HISTORY_ON_POSTGRESQL_IS_LONG
def test_every_chain_of_a_history_agrees_with_a_naive_reading(
    conn: Connection, scope: Scope
) -> None:
    """Before each call of a chain stands what the conversation's rows have there, in order."""
    rows = conn.execute(
        select(tool_call)
        .where(tool_call.c.project_id == scope.project_id)
        .order_by(tool_call.c.started_at, tool_call.c.seq, tool_call.c.event_id)
    ).all()
    seen = 0
    for chain in queries.chain_list(conn, scope, limit=100).rows:
        detail = queries.chain_detail(conn, scope, chain.chain_id)
        assert detail is not None
        whole = [row for row in rows if row.session_id == chain.conversation]
        expected: list[list[str]] = []
        waiting: list[str] = []
        for row in whole:
            if row.chain_id == chain.chain_id:
                expected.append(waiting if expected else [])
                waiting = []
            elif expected:
                waiting.append(row.event_id)
        beside = queries.calls_beside(conn, scope, detail)
        assert [[each.event_id for each in calls] for calls in beside.between] == expected
        assert (beside.followed_by is None) is (chain.outcome != "switched")
        seen += sum(map(len, expected))
    assert seen > 0


def _recovered(name: str, tool: str, between: Sequence[str]) -> list[Mapping[str, Any]]:
    """A failure of *tool*, successes of others, and its success."""
    called = [
        success(each, session_id=name, **_at(1 + place)) for place, each in enumerate(between)
    ]
    return [
        failure(tool, session_id=name, code="precondition_failed", **_at(0)),
        *called,
        success(tool, session_id=name, **_at(1 + len(between))),
    ]


def test_what_most_chains_called_before_they_recovered(engine: Engine) -> None:
    """A tool called in most of the recovered chains is named, with both numbers."""
    talks = {
        "Edit": [["Read"], ["Grep", "Read", "Read"], ["Read", "Grep"], ["Read"]],
        "Write": [["Read"], ["Read"], ["Read"]],  # too few to say that it is most of all
        "Bash": [["Edit"], ["Edit"], ["Edit"], ["Edit"], [], [], []],  # nor are these
    }
    events = [
        event
        for tool, chains in talks.items()
        for number, between in enumerate(chains)
        for event in _recovered(f"{tool}-{number}", tool, between)
    ]
    events += [
        failure("Edit", session_id="never", **_at(0)),
        success("Read", session_id="never", **_at(1)),
    ]
    scope = _stored(engine, "demo", events)
    with read_connection(engine) as conn:
        found = queries.calls_before_recovery(conn, scope, talks)
        assert queries.calls_before_recovery(conn, scope, {"Write"}) == {}
    assert found == {("Edit", "precondition_failed"): CalledFirst("Read", 4, 4)}


def test_calls_of_a_conversation_at_the_edge_are_found_by_its_name(empty_sqlite: Engine) -> None:
    """SQLite does not read all calls of a project for each conversation that goes on beyond."""
    sent: list[tuple[str, Any]] = []

    def note(_conn: object, _cursor: object, statement: str, given: Any, *_: object) -> None:
        sent.append((statement, given))

    with read_connection(empty_sqlite) as conn:
        event.listen(empty_sqlite, "before_cursor_execute", note)
        count_conversations(conn, Scope(1, parse("since:3d until:1d"), NOW))
        event.remove(empty_sqlite, "before_cursor_execute", note)
        statement, given = sent[-1]
        plan = [
            row.detail for row in conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", given)
        ]
    (calls,) = [step for step in plan if step.startswith("SEARCH tool_call")]
    assert calls.endswith("(project_id=? AND session_id=?)")
