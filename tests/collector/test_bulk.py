"""Many rows in few statements: what is written is what was given, in any number."""

from __future__ import annotations

import sqlite3
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, select

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.storage.database.bulk import (
    ROWS_AT_ONCE,
    columns,
    insert_rows,
    upsert_rows,
)
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_collector.storage.tables import failure_counts

KEY = columns("project_id by period tool name")
NAMES = (*KEY, *columns("failures calls"))
# Around every size at which another prepared statement takes over.
COUNTS = sorted({*range(20), *(n * ROWS_AT_ONCE + m for n in (1, 2, 3) for m in (-1, 0, 1))})

# Each driver's own: the rows pass SQLAlchemy by.
REFUSALS = (sqlite3.IntegrityError, psycopg.errors.UniqueViolation)


@pytest.fixture(autouse=True)
def _project(engine: Engine) -> None:
    with write_transaction(engine) as conn:
        assert ensure_project(conn, "demo") == 1


def _rows(count: int, *, calls: int = 1) -> list[tuple[Any, ...]]:
    return [(1, "code", 0, "", f"{name:06}", name, calls) for name in range(count)]


def _stored(engine: Engine) -> list[tuple[Any, ...]]:
    table = failure_counts.c
    with engine.connect() as conn:
        query = select(*(table[name] for name in NAMES)).order_by(table.name)
        return [tuple(row) for row in conn.execute(query)]


def _empty(engine: Engine) -> None:
    with write_transaction(engine) as conn:
        conn.execute(failure_counts.delete())


def test_any_number_of_rows_is_inserted_and_added_to(engine: Engine) -> None:
    """Each of any number of rows is stored once, and added to once."""
    for count in COUNTS:
        with write_transaction(engine) as conn:
            insert_rows(conn, failure_counts, NAMES, _rows(count))
        assert _stored(engine) == _rows(count), count
        with write_transaction(engine) as conn:
            upsert_rows(conn, failure_counts, NAMES, key=KEY, rows=_rows(count, calls=2), add=True)
        assert _stored(engine) == [(*row[:5], 2 * row[5], 3) for row in _rows(count)], count
        _empty(engine)


def test_a_row_that_cannot_be_stored_leaves_nothing_behind(engine: Engine) -> None:
    """A statement may fail among its rows; with its transaction all of them are gone."""
    for bad in (0, ROWS_AT_ONCE // 2, ROWS_AT_ONCE - 1):
        rows = _rows(ROWS_AT_ONCE)
        rows[bad] = rows[bad - 1]  # its name is there already
        with pytest.raises(REFUSALS), write_transaction(engine) as conn:
            insert_rows(conn, failure_counts, NAMES, rows)
        assert _stored(engine) == [], bad
