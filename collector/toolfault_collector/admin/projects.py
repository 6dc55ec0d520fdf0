"""Projects: every stored row belongs to one, and nothing is read across them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, Engine, Table, delete, exists, or_, select, tuple_, update

from toolfault_collector.clock import now_us
from toolfault_collector.storage.database.dialect import insert_ignore
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_collector.storage.tables import api_key, audit_log, conversation, metadata, project

__all__ = [
    "Project",
    "delete_project",
    "ensure_project",
    "find_project",
    "list_projects",
    "lock_project",
    "remove_unused_project",
    "rename_project",
]

MAX_NAME = 128
ROWS_AT_ONCE: Final = 2_000  # rows removed by one transaction, so that no writer waits long


@dataclass(frozen=True, slots=True)
class Project:
    """One project: its number, its name and when it was made (microseconds since the epoch)."""

    id: int
    name: str
    created_at: int


def ensure_project(conn: Connection, name: str) -> int:
    """Return the id of the project *name*, creating it if it is new.

    Raises:
        ValueError: *name* is empty, longer than 128 characters, or has control characters.
    """
    _check(name)
    found = find_project(conn, name)
    if found is not None:
        return found
    conn.execute(insert_ignore(conn, project).values(name=name, created_at=now_us()))
    created = find_project(conn, name)
    assert created is not None
    return created


def _check(name: str) -> None:
    if not name.strip() or len(name) > MAX_NAME or not name.isprintable():
        message = "a project name has 1 to 128 printable characters"
        raise ValueError(message)


def lock_project(conn: Connection, project_id: int) -> None:
    """Let those who change what belongs to a project take turns, until the transaction ends.

    For what is read, changed and written back. On PostgreSQL the project's row is locked in the
    strength that senders do not wait for (``FOR NO KEY UPDATE``); SQLite has one writer anyway.

    Args:
        conn: In a write transaction that has read nothing yet of what it will change.
        project_id: The project; one that is not there locks nothing.
    """
    own = select(project.c.id).where(project.c.id == project_id)
    conn.execute(own.with_for_update(key_share=True))


def rename_project(conn: Connection, project_id: int, name: str) -> None:
    """Give a project another name; its keys, views and addresses by number stay.

    Raises:
        ValueError: *name* is no name of a project, or that of another one.
    """
    _check(name)
    if find_project(conn, name) not in (None, project_id):
        message = f"there is a project {name!r} already"
        raise ValueError(message)
    conn.execute(update(project).where(project.c.id == project_id).values(name=name))


def delete_project(engine: Engine, project_id: int) -> int:
    """Remove a project with all that is stored of it, and return how many rows that were.

    Its keys go first, so nothing new arrives; a collector believes a key for two more seconds. Then
    rows go in short transactions, so that other projects are served meanwhile. If it is
    interrupted, calling it again goes on. What the audit log says of the project stays.
    """
    with write_transaction(engine) as conn:
        keys = delete(api_key).where(api_key.c.project_id == project_id)
        removed = conn.execute(keys).rowcount
    tables = _tables_of_projects(engine.dialect.name)
    for table in tables:
        while True:
            with write_transaction(engine) as conn:
                gone = _remove_some(conn, table, project_id)
            removed += gone
            if gone < ROWS_AT_ONCE:
                break
    with write_transaction(engine) as conn:
        for table in tables:  # what came in meanwhile
            removed += conn.execute(delete(table).where(table.c.project_id == project_id)).rowcount
        conn.execute(delete(project).where(project.c.id == project_id))
    return removed


def _tables_of_projects(dialect: str) -> list[Table]:
    """Return the tables with rows of projects, those that refer to others first."""
    return [
        table
        for table in reversed(metadata.sorted_tables)
        if "project_id" in table.c
        and table is not audit_log
        and table.info.get("only", dialect) == dialect
    ]


def _remove_some(conn: Connection, table: Table, project_id: int) -> int:
    key = tuple_(*table.primary_key.columns)
    some = (
        select(*table.primary_key.columns)
        .where(table.c.project_id == project_id)
        .limit(ROWS_AT_ONCE)
    )
    return conn.execute(
        delete(table).where(table.c.project_id == project_id, key.in_(some))
    ).rowcount


def remove_unused_project(conn: Connection, project_id: int) -> None:
    """Remove a project that has neither a key nor a conversation; another one stays as it is."""
    used = (exists().where(table.c.project_id == project_id) for table in (api_key, conversation))
    conn.execute(delete(project).where(project.c.id == project_id, ~or_(*used)))


def find_project(conn: Connection, name: str) -> int | None:
    """Return the id of the project *name*, or None."""
    return conn.execute(select(project.c.id).where(project.c.name == name)).scalar_one_or_none()


def list_projects(conn: Connection) -> list[Project]:
    """Return every project, by name."""
    rows = conn.execute(
        select(project.c.id, project.c.name, project.c.created_at).order_by(project.c.name)
    )
    return [Project(row.id, row.name, row.created_at) for row in rows]
