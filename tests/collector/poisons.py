"""Databases that refuse one event: triggers that fail when it is inserted."""

from __future__ import annotations

from sqlalchemy import Connection

from toolfault_collector.storage.database.engine import is_sqlite

__all__ = ["DEADLOCK", "POISONS", "poison"]

_SQLITE = "CREATE TRIGGER poison BEFORE INSERT ON tool_call WHEN {} BEGIN {}; END"
_POSTGRESQL = """
CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN IF {} THEN {}; END IF; RETURN new; END $$;
CREATE TRIGGER poison BEFORE INSERT ON tool_call FOR EACH ROW EXECUTE FUNCTION poison();
"""
POISONS = {
    "sqlite": [
        "SELECT RAISE(ABORT, 'no')",
        "SELECT RAISE(FAIL, 'no')",
        "INSERT INTO issue (position) VALUES (1)",
    ],
    "postgresql": [
        *(
            f"RAISE EXCEPTION SQLSTATE '{state}'"
            for state in ("22001", "23505", "54000", "22003", "22021", "22P02", "23502", "23503")
        ),
        "RAISE EXCEPTION SQLSTATE '23514'",
        "RAISE EXCEPTION 'no'",
    ],
}
# What PostgreSQL says to one of those who wait for each other in a circle.
DEADLOCK = "RAISE EXCEPTION SQLSTATE '40P01'"


def poison(conn: Connection, which: int | str = 0, *, when: str = "new.tool = 'poison'") -> None:
    """Let the database refuse every call for which *when* holds, in one of its ways."""
    frame = _SQLITE if is_sqlite(conn) else _POSTGRESQL
    how = POISONS[conn.dialect.name][which] if isinstance(which, int) else which
    conn.exec_driver_sql(frame.format(when, how))
