"""Bounded query time."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DatabaseError

from toolfault_collector.storage.database.engine import is_sqlite, read_connection
from toolfault_dashboard import queries
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.counting.deadline import TooSlow, deadline

ENDLESS = {
    True: "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    False: "SELECT pg_sleep(60)",
}


def test_an_endless_statement_is_stopped(history: Engine) -> None:
    """A statement is stopped when its time is over, and the connection can be used again."""
    with read_connection(history) as conn:
        with pytest.raises(TooSlow, match="ask for less"), deadline(conn, 0.2):
            conn.execute(text(ENDLESS[is_sqlite(conn)]))
        conn.rollback()
    with read_connection(history) as conn:
        assert conn.execute(text("SELECT 1")).scalar_one() == 1


def test_in_time_nothing_happens(conn: Connection, scope: Scope) -> None:
    """A query within its time answers as ever."""
    with deadline(conn, 60.0):
        inside = queries.summary(conn, scope)
    assert inside == queries.summary(conn, scope)


def test_other_errors_stay_what_they_are(conn: Connection) -> None:
    """A statement that is wrong is not called slow."""
    with pytest.raises(DatabaseError, match="nowhere"), deadline(conn, 60.0):
        conn.execute(text("SELECT nothing FROM nowhere"))
