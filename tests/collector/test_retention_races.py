"""Retention removes what a collector is adding to at that moment (PostgreSQL)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event, select
from tests.collector.recount import assert_counts_hold
from tests.factories import failure, success

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, SECOND_US, now_us
from toolfault_collector.doctor.recount import recount
from toolfault_collector.retention.policy import prune
from toolfault_collector.storage.database.engine import (
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import message, signature, tool_call

NOW = now_us()
THEN = NOW - 20 * DAY_US

pytestmark = [
    pytest.mark.parametrize(
        "database_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
    )
]


def _store(engine: Engine, *events: dict[str, Any], received_at: int = NOW) -> int:
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        return store_events(conn, project_id, events, received_at=received_at).accepted


@contextmanager
def _after(engine: Engine, statement: str, act: Callable[[], object]) -> Iterator[None]:
    """Do *act* once, after *engine* has sent a statement that contains *statement*."""
    waiting = [act]

    def look(_conn: object, _cursor: object, sent: str, *_: object) -> None:
        if waiting and statement in sent:
            waiting.pop()()

    event.listen(engine, "after_cursor_execute", look)
    yield
    event.remove(engine, "after_cursor_execute", look)
    assert not waiting, f"nothing was sent like {statement}"


def test_conversation_that_goes_before_it_is_locked(database_url: str) -> None:
    """Two collectors add to a conversation that was there a moment ago: neither misses the other.

    Retention removes it after the first has seen that it is there, and before that one locks it.
    """
    ours, theirs = open_engine(database_url), open_engine(database_url)
    _store(ours, failure(session_id="c", at=THEN), received_at=THEN)
    opening = failure(session_id="c", at=NOW - 2 * SECOND_US)
    recovery = success(session_id="c", at=NOW - SECOND_US)

    def remove() -> None:
        assert prune(theirs, days=10, force=True, clock=lambda: NOW).calls == 1

    with (
        _after(ours, 'INSERT INTO "conversation"', remove),
        _after(ours, "FOR UPDATE", lambda: _store(theirs, opening)),
    ):
        assert _store(ours, recovery) == 1

    assert recount(ours).right
    assert_counts_hold(ours)
    ours.dispose()
    theirs.dispose()


def test_call_that_goes_while_it_is_sent_again(database_url: str) -> None:
    """A call that retention removes as it comes again is stored with the key of its event."""
    ours, theirs = open_engine(database_url), open_engine(database_url)
    again, beside = failure(session_id=None, at=THEN), success(session_id=None, at=NOW)
    _store(ours, again, received_at=THEN)

    def remove() -> None:
        assert prune(theirs, days=10, force=True, clock=lambda: NOW).calls == 1

    with _after(ours, 'INSERT INTO "event_key"', remove):
        assert _store(ours, again, beside) == 2

    assert recount(ours).right
    assert _store(ours, again, beside) == 0
    ours.dispose()
    theirs.dispose()


def test_signature_that_goes_after_it_was_looked_up(database_url: str) -> None:
    """Retention leaves the signature and message that a failure is about to be stored with."""
    ours, theirs = open_engine(database_url), open_engine(database_url)
    _store(ours, failure(session_id="old", at=THEN), received_at=THEN)

    def remove() -> None:
        assert prune(theirs, days=10, force=True, clock=lambda: NOW).calls == 1

    with _after(ours, "FROM message", remove):
        assert _store(ours, failure(session_id="new", at=NOW)) == 1

    query = select(signature.c.id, message.c.id)
    query = query.join_from(tool_call, signature, signature.c.id == tool_call.c.signature_id)
    query = query.join(message, message.c.id == tool_call.c.message_id)
    with read_connection(ours) as conn:
        assert len(conn.execute(query).all()) == 1
    ours.dispose()
    theirs.dispose()
