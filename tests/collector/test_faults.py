"""What an error of the database means: wait, or this event is bad, or the program is wrong."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from toolfault_collector.storage.database.errors import classify


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        ("SELECT ?", (object(),)),
        ("SELEC 1", ()),
        ("SELECT json_extract('{', '$')", ()),
        ("SELECT nothing_of_this_name(1)", ()),
    ],
    ids=["type", "syntax", "json", "function"],
)
def test_a_wrong_statement_is_a_fault_of_the_program(
    statement: str, values: tuple[object, ...]
) -> None:
    """What would fail again however long a sender waits is not called "try again later"."""
    with sqlite3.connect(":memory:") as conn, pytest.raises(sqlite3.Error) as raised:
        conn.execute(statement, values)

    assert classify(raised.value) == "bug"


@pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)
def test_so_it_is_on_postgresql(engine: Engine) -> None:
    """What the driver or the database calls wrong is; a table that is missing may come again."""
    statements: list[tuple[str, tuple[object, ...]]] = [
        ("SELECT %s", (object(),)),
        ("SELEC 1", ()),
        ("SELECT nothing_of_this_name(1)", ()),
        ("SELECT * FROM letters", ()),
    ]
    kinds = []
    for statement, values in statements:
        with engine.connect() as conn, pytest.raises(DBAPIError) as raised:
            conn.exec_driver_sql(statement, values)
        kinds.append(classify(raised.value))

    assert kinds == ["bug", "bug", "bug", "unavailable"]


def test_a_busy_read_only_or_broken_file_is_waited_for(tmp_path: Path) -> None:
    """Locks, files that cannot be written and schemas of other versions may end by themselves."""
    path = tmp_path / "some.db"
    raised: list[sqlite3.Error] = []

    def fail(conn: sqlite3.Connection, statement: str) -> None:
        with pytest.raises(sqlite3.Error) as error:
            conn.execute(statement)
        raised.append(error.value)

    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("CREATE TABLE numbers (n)")
    holder.execute("BEGIN IMMEDIATE")
    other = sqlite3.connect(path, isolation_level=None, timeout=0)
    fail(other, "INSERT INTO numbers VALUES (1)")
    holder.execute("ROLLBACK")
    fail(other, "INSERT INTO letters VALUES ('a')")
    reader = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    fail(reader, "INSERT INTO numbers VALUES (1)")
    for conn in (holder, other, reader):
        conn.close()
    path.write_bytes(b"no database" * 100)
    broken = sqlite3.connect(path)
    fail(broken, "SELECT * FROM numbers")
    broken.close()

    assert [classify(error) for error in raised] == ["unavailable"] * 4
