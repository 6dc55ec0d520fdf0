"""Projects: every stored row belongs to one, and nothing is read across them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select

from toolfault_collector.clock import now_us
from toolfault_collector.storage.dialect import insert_ignore
from toolfault_collector.storage.tables import project

__all__ = ["Project", "ensure_project", "find_project", "list_projects"]

MAX_NAME = 128


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
    if not name.strip() or len(name) > MAX_NAME or not name.isprintable():
        message = "a project name has 1 to 128 printable characters"
        raise ValueError(message)
    found = find_project(conn, name)
    if found is not None:
        return found
    conn.execute(insert_ignore(conn, project).values(name=name, created_at=now_us()))
    created = find_project(conn, name)
    assert created is not None
    return created


def find_project(conn: Connection, name: str) -> int | None:
    """Return the id of the project *name*, or None."""
    return conn.execute(select(project.c.id).where(project.c.name == name)).scalar_one_or_none()


def list_projects(conn: Connection) -> list[Project]:
    """Return every project, by name."""
    rows = conn.execute(
        select(project.c.id, project.c.name, project.c.created_at).order_by(project.c.name)
    )
    return [Project(row.id, row.name, row.created_at) for row in rows]
