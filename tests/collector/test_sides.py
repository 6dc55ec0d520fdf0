"""Client and server of a protocol tell of one call: it is one row, that of the agent's side."""

from __future__ import annotations

import hashlib
import threading
from itertools import permutations
from typing import Any

import pytest
from sqlalchemy import Engine, select
from tests.collector.recount import assert_counts_hold
from tests.engines import POSTGRESQL_IS_LONG
from tests.factories import conversation_end, counts, failure, success

from toolfault_collector.admin.keys import create_key, list_keys, revoke_key
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import MINUTE_US, now_us
from toolfault_collector.doctor.recount import recount
from toolfault_collector.protocol.receipt import Receipt
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import call_counts, chain, conversation, tool_call
from toolfault_collector.storage.tables import conversation_end as conversation_end_row

POSTGRESQL = pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)
CALL: dict[str, Any] = {"framework": "mcp", "call_id": "call-1", "turn": "turn-1"}
ONCE = {("call-1", "mcp", "agent", "wrong_type"), ("call-0", "mcp", "server", "wrong_type")}


def _reports() -> list[dict[str, Any]]:
    """A failed call as its client and as its server tell of it, and one of a client unknown."""
    of_client = failure("book", session_id="c", side="agent", **CALL)
    of_server = failure("book", session_id="c", side="server", code="not_found", **CALL)
    other = failure("book", session_id="c", side="server", **{**CALL, "call_id": "call-0"})
    return [of_client, of_server, other]


def _project(engine: Engine, name: str = "demo") -> int:
    with write_transaction(engine) as conn:
        return ensure_project(conn, name)


def _store(engine: Engine, project_id: int, *events: dict[str, Any]) -> Receipt:
    with write_transaction(engine) as conn:
        return store_events(conn, project_id, events, received_at=now_us())


def _calls(engine: Engine, project_id: int) -> list[tuple[Any, ...]]:
    call = tool_call.c
    with read_connection(engine) as conn:
        found = select(call.call_id, call.framework, call.side, call.code)
        return [tuple(row) for row in conn.execute(found.where(call.project_id == project_id))]


def _sink(engine: Engine, project_id: int, *, revoked_at: int | None = None) -> str:
    """Return what a client with a new key of a project says, as protocol.md has it."""
    with write_transaction(engine) as conn:
        key = create_key(conn, project_id, "ingest")
        newest = list_keys(conn, project_id)[-1]
        if revoked_at is not None:
            revoke_key(conn, newest.id, at=revoked_at)
    digest = hashlib.sha256(key.encode()).hexdigest()
    return hashlib.sha256(f"sink {digest}".encode()).hexdigest()[:16]


def _stored(engine: Engine, project_id: int) -> list[str]:
    with read_connection(engine) as conn:
        return [
            event_id
            for table in (tool_call, call_counts, conversation_end_row)
            for event_id in conn.execute(
                select(table.c.event_id).where(table.c.project_id == project_id)
            ).scalars()
        ]


def _somebody_waits(engine: Engine) -> bool:
    """Return whether anybody waits for a lock; a transaction is told the same all through."""
    sql = "SELECT wait_event_type FROM pg_stat_activity WHERE datname = current_database()"
    with read_connection(engine) as conn:
        return "Lock" in conn.exec_driver_sql(sql).scalars().all()


@POSTGRESQL_IS_LONG
def test_both_sides_of_a_call_are_never_added_up(engine: Engine) -> None:
    """In any order, resent or in one batch: the agent's report stays, as does a lone server's."""
    for order in permutations(range(3)):
        reports, project_id = _reports(), _project(engine, f"order-{order}")
        for place in order:
            _store(engine, project_id, reports[place])
            _store(engine, project_id, reports[place])
        found = _calls(engine, project_id)
        assert (set(found), len(found)) == (ONCE, 2), order
    together = _project(engine)
    receipt = _store(engine, together, *_reports())

    assert (receipt.accepted, receipt.duplicate) == (2, 1)
    assert set(_calls(engine, together)) == ONCE
    with read_connection(engine) as conn:
        assert {row.calls for row in conn.execute(select(chain))} == {2}
    assert_counts_hold(engine)
    assert recount(engine).right


@POSTGRESQL_IS_LONG
def test_what_a_client_of_the_same_project_counts_is_left_out(engine: Engine) -> None:
    """Calls, counts and ends of a server, as long as the client's key was valid; else they stay."""
    project_id, other = _project(engine), _project(engine, "other")
    then = now_us() - 3 * MINUTE_US
    own, revoked = _sink(engine, project_id), _sink(engine, project_id, revoked_at=then)
    told = (own, revoked, _sink(engine, other), "0123456789abcdef", None)
    for sink in told:
        for at in (then - 2 * MINUTE_US, then + 2 * MINUTE_US):
            events = [
                failure(session_id=None, at=at, side="server", counted_by=sink),
                success(at=at, side="server", counted_by=sink),
                counts(at=at, counted_by=sink),
                conversation_end(at=at, counted_by=sink),
            ]
            is_left_out = sink == own or (sink == revoked and at < then)
            before = _stored(engine, project_id)
            for _ in range(2):
                receipt = _store(engine, project_id, *events)
            new = set(_stored(engine, project_id)) - set(before)

            assert receipt.duplicate == 4
            assert new == (set() if is_left_out else {each["event_id"] for each in events})
    assert recount(engine).right


@POSTGRESQL
def test_both_sides_at_the_same_moment(engine: Engine) -> None:
    """A writer that stores the other side waits for the first one's commit, and sees its call."""
    project_id = _project(engine)
    of_client, of_server, other = _reports()
    _store(engine, project_id, other)
    second = threading.Thread(target=_store, args=(engine, project_id, of_server))
    with write_transaction(engine) as conn:
        store_events(conn, project_id, [of_client], received_at=now_us())
        second.start()
        while second.is_alive() and not _somebody_waits(engine):
            second.join(0.01)
    second.join(20)

    assert set(_calls(engine, project_id)) == ONCE
    assert len(_calls(engine, project_id)) == 2
    assert recount(engine).right


@POSTGRESQL_IS_LONG
def test_the_best_name_of_a_conversation_is_kept(engine: Engine) -> None:
    """Whatever named it best to any of its calls, in any order; an end alone names nothing."""
    project_id, expected, parts = (
        _project(engine),
        set(),
        [list[dict[str, Any]]() for _ in range(4)],
    )
    for order in permutations(range(3)):
        mixed = f"mixed-{order}"
        calls = [
            failure(session_id=mixed, conversation_rung="trace"),
            failure(session_id=mixed, conversation_rung="meta"),
            success(session_id=mixed, conversation_rung="a later rung"),
        ]
        for part, place in enumerate(order):
            parts[part].append(calls[place])
        parts[3].append(conversation_end(mixed))
        expected.add((mixed, "meta"))
    of_run = success(run_id="run", conversation_rung="none")
    parts[0].append({**of_run, "session_id": None})
    parts[3] += [conversation_end("ended"), failure(session_id="own"), failure(session_id=None)]
    for batch in parts:
        _store(engine, project_id, *batch)

    row = conversation.c
    with read_connection(engine) as conn:
        found = select(row.session_id, row.rung).where(row.project_id == project_id)
        assert {tuple(each) for each in conn.execute(found)} == {
            *expected,
            ("run", "framework"),
            ("ended", "none"),
            ("own", "explicit"),
        }
    assert recount(engine).right
