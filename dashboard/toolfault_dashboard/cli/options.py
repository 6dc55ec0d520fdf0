"""What the commands share: the database, the project, the query, and how errors are told."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from toolfault_dashboard.queries import Scope

__all__ = [
    "HELP_DATABASE",
    "DatabaseOption",
    "EventsOption",
    "Failed",
    "ProjectOption",
    "QueryArgument",
    "Settings",
    "WronglyUsed",
    "actor",
    "database_url",
    "open_database",
    "open_events_of",
    "project_id",
    "project_to_fill",
    "reading",
]

HELP_DATABASE = (
    "sqlite:///FILE or postgresql://USER@HOST/NAME; by default a file in your data directory."
)
DEFAULT_PROJECT = "default"

DatabaseOption = Annotated[
    str | None, typer.Option("--database-url", help=HELP_DATABASE, show_default=False)
]
EventsOption = Annotated[
    str | None,
    typer.Option(
        "--events-url",
        help="ClickHouse, if events are read from there [env: TOOLFAULT_EVENTS_URL].",
        show_default=False,
    ),
]
ProjectOption = Annotated[
    str | None,
    typer.Option(
        "--project",
        help="Name of the project; needed only where there are several and none is 'default'.",
    ),
]
QueryArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[QUERY]", help='For example: tool:http_request since:7d "not found"'),
]


class Failed(Exception):  # noqa: N818 - raised as "the command failed: ..."
    """The command cannot do what was asked; the text says what to do instead. Exit code 1."""


class WronglyUsed(Exception):  # noqa: N818
    """The command line makes no sense; the text says what to write. Exit code 2."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Options given before the subcommand."""

    database_url: str | None
    explicit: bool = False  # on the command line, not from the environment


def database_url(context: typer.Context, own: str | None) -> str:
    """Return the database URL: after the subcommand, before it, environment, default."""
    from toolfault_collector.settings import default_database_url

    common = context.find_object(Settings)
    return own or (common.database_url if common else None) or default_database_url()


@contextmanager
def open_database(
    context: typer.Context, own: str | None, *, create: bool, migrate: bool = False
) -> Iterator[Engine]:
    """Open the database with the schema this version needs.

    Args:
        context: Of the command.
        own: ``--database-url`` given after the subcommand.
        create: Whether a missing SQLite file is made; commands that only read refuse.
        migrate: Also migrate an older PostgreSQL schema.

    Raises:
        Failed: The SQLite file does not exist and *create* is false.
    """
    import toolfault_migrations as migrations
    from toolfault_collector.storage.database.engine import open_engine
    from toolfault_collector.storage.database.schema import prepare

    _log_to_stderr()
    url = database_url(context, own)
    if not create:
        _refuse_missing_file(url)
    engine = open_engine(url)
    try:
        # A database without any schema has no other process that a migration could disturb.
        prepare(engine, migrate=migrate or (create and migrations.current(engine) is None))
        yield engine
    finally:
        engine.dispose()


@contextmanager
def open_events_of(own: str | None) -> Iterator[Engine | None]:
    """Open the ClickHouse of ``--events-url`` or of the environment; None if there is none."""
    url = own or os.environ.get("TOOLFAULT_EVENTS_URL", "")
    if not url:
        yield None
        return
    from toolfault_collector.clickhouse.database import open_events

    events = open_events(url, os.environ.get("TOOLFAULT_EVENTS_PASSWORD", ""))
    try:
        yield events
    finally:
        events.dispose()


def _log_to_stderr() -> None:
    # Standard output belongs to what the command answers.
    import logging
    import sys

    import structlog

    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        # Looked up for every line: whoever runs commands in one process may exchange it.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )


def _refuse_missing_file(url: str) -> None:
    from pathlib import Path

    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parsed = make_url(url)
    except ArgumentError:
        return  # open_engine says it better
    if parsed.get_backend_name() != "sqlite" or not parsed.database:
        return
    if not Path(parsed.database).exists():
        raise Failed(
            f"There is no database at {parsed.database}; fill one with `toolfault import` or"
            " `toolfault serve`, or name another with --database-url."
        )


def project_id(conn: Connection, name: str | None) -> int:
    """Return the project to read: *name*, else the only one, else ``default``.

    Raises:
        Failed: There is no such project, or none at all.
        WronglyUsed: There are several and none is called ``default``.
    """
    from toolfault_dashboard.queries import projects

    known = {row.name: row.id for row in projects(conn)}
    wanted = name or (next(iter(known)) if len(known) == 1 else DEFAULT_PROJECT)
    if wanted in known:
        return known[wanted]
    if not known:
        raise Failed("There is no project yet; fill one with `toolfault import PATH`.")
    listed = ", ".join(sorted(known))
    if name is None:
        raise WronglyUsed(f"Say which project with --project: {listed}.")
    raise Failed(f"There is no project {name!r}; there are: {listed}.")


def project_to_fill(engine: Engine, name: str | None) -> tuple[str, int]:
    """Return name and id of the project to write to; it is made if it is new.

    Without a name that is the only project there is, else ``default``.

    Raises:
        WronglyUsed: The name cannot be one of a project.
    """
    from toolfault_collector.admin.projects import ensure_project, list_projects
    from toolfault_collector.storage.database.engine import write_transaction

    with write_transaction(engine) as conn:
        known = [each.name for each in list_projects(conn)]
        wanted = name or (known[0] if len(known) == 1 else DEFAULT_PROJECT)
        try:
            return wanted, ensure_project(conn, wanted)
        except ValueError as error:
            raise WronglyUsed(f"Choose another --project: {error}.") from None


def actor() -> str:
    """Return who runs the command, for the audit log."""
    import getpass

    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):  # a number without a name, as in a container
        return "cli"


@contextmanager
def reading(
    context: typer.Context, own: str | None, project: str | None, query: list[str] | None
) -> Iterator[tuple[Connection, Scope]]:
    """Open a snapshot of the database and the scope that the command line asks for."""
    from toolfault_collector.clock import now_us
    from toolfault_collector.storage.database.engine import read_connection
    from toolfault_dashboard.queries import Scope
    from toolfault_dashboard.search import parse

    parsed = parse(" ".join(query or ()))
    with open_database(context, own, create=False) as engine, read_connection(engine) as conn:
        yield conn, Scope(project_id(conn, project), parsed, now_us())
