"""Who reads: a read key, or a person who is signed in; and what they may see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from sqlalchemy import Connection, Engine

from toolfault_collector.admin.keys import KeyCache
from toolfault_collector.http.auth import admit
from toolfault_collector.http.problems import Problem
from toolfault_dashboard import queries
from toolfault_dashboard.access.policy import KEY_AUDIENCE, sees
from toolfault_dashboard.queries import Audience, Scope
from toolfault_dashboard.queries.counting.deadline import deadline
from toolfault_dashboard.queries.reading import reading
from toolfault_dashboard.search import parse

__all__ = ["Asked", "ProjectName", "Question", "Reader", "Services", "Text", "read_from"]

Text = Annotated[
    str,
    Query(
        alias="q",
        description="Filter in the query language, for example `tool:x since:7d`.",
        max_length=8_192,
    ),
]
ProjectName = Annotated[
    str,
    Query(alias="project", description="Project; a read key names its own.", max_length=128),
]


@dataclass(frozen=True, slots=True)
class Services:
    """What the API shares with the rest of the server."""

    engine: Engine
    keys: KeyCache
    clock: Callable[[], int]  # microseconds since the epoch, UTC


@dataclass(frozen=True, slots=True)
class Reader:
    """One admitted reader: by whom, for which project, how much of it."""

    name: str  # of the key or session; limits are counted by it
    project_id: int | None  # of the key; None for a session, which may choose
    audience: Audience


@dataclass(frozen=True, slots=True)
class Question:
    """A connection in one snapshot and the scope that is asked for."""

    conn: Connection
    scope: Scope
    reader: Reader


async def reader_of(request: Request) -> Reader:
    """Admit a reader by key or session.

    Raises:
        Problem: 401 with neither, 403 with a key of another kind.
    """
    services: Services = request.app.state.services
    if "authorization" in request.headers or getattr(request.state, "viewer", None) is None:
        key = await admit(services.keys, request.scope, request.headers, kind="read")
        return Reader(f"key {key.id}", key.project_id, KEY_AUDIENCE)
    viewer: Any = request.state.viewer
    return Reader(f"user {viewer.user_id}", None, sees(viewer.role))


def question(
    request: Request,
    reader: Annotated[Reader, Depends(reader_of)],
    text: Text = "",
    project: ProjectName = "",
) -> Iterator[Question]:
    """Yield the question of a request inside one read transaction and a deadline."""
    services: Services = request.app.state.services
    with reading(services.engine) as conn, deadline(conn):
        yield Question(conn, read_from(conn, reader, text, project, services.clock()), reader)


def read_from(conn: Connection, reader: Reader, text: str, project: str, now: int) -> Scope:
    """Return the scope that *reader* asks for.

    Raises:
        Problem: 404 for a project that is not there for this reader.
        QueryError: The query cannot be read.
    """
    known = {row.name: row.id for row in queries.projects(conn)}
    if reader.project_id is not None:
        known = {name: number for name, number in known.items() if number == reader.project_id}
    wanted = known.get(project) if project else next(iter(known.values()), None)
    if wanted is None:
        raise Problem(404, "unknown_project", "There is no project of that name for this reader.")
    return Scope(wanted, parse(text), now, reader.audience)


Asked = Annotated[Question, Depends(question)]
