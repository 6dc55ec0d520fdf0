"""The same generated history on SQLite and on PostgreSQL, for everything that only reads."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import Connection, Engine
from tests.dashboard.generated import NOW, fill

from toolfault_collector.engine import open_engine, read_connection
from toolfault_collector.projects import find_project
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.search import parse

_copies = count(1)
ENGINES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


@pytest.fixture(scope="session")
def filled_sqlite(
    sqlite_template: Path, made_once: Callable[[str, Callable[[Path], None]], Path]
) -> Path:
    """A SQLite file with the generated history of two projects; tests that write copy it."""

    def make(path: Path) -> None:
        shutil.copyfile(sqlite_template, path)
        engine = open_engine(f"sqlite:///{path}")
        fill(engine)
        engine.dispose()

    return made_once("history.db", make)


@pytest.fixture(scope="session")
def filled_postgres(request: pytest.FixtureRequest) -> str:
    """URL of a PostgreSQL database with the generated history; nobody writes to it."""
    url = copied_database(request, "history")
    engine = open_engine(url)
    fill(engine)
    engine.dispose()
    return url


@pytest.fixture(scope="session", params=ENGINES)
def history_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of a database with the generated history of two projects, once per engine."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("filled_postgres"))
    # A copy for each worker: pages add accounts.
    path = tmp_path_factory.mktemp("history") / "toolfault.db"
    shutil.copyfile(request.getfixturevalue("filled_sqlite"), path)
    return f"sqlite:///{path}"


def copied_database(request: pytest.FixtureRequest, name: str) -> str:
    """Return the URL of a new, migrated PostgreSQL database."""
    base = str(request.getfixturevalue("postgres_url"))
    template = str(request.getfixturevalue("postgres_template"))
    # pytest may make a parametrised session fixture again after another parameter's turn.
    new = f"{name}_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_{next(_copies)}"
    with psycopg.connect(base, autocommit=True) as conn:
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        conn.execute(statement.format(sql.Identifier(new), sql.Identifier(template)))
    head, _, query = base.partition("?")
    return f"{head.rpartition('/')[0]}/{new}" + (f"?{query}" if query else "")


@pytest.fixture(scope="session")
def history(history_url: str) -> Iterator[Engine]:
    """The generated history, opened."""
    engine = open_engine(history_url)
    yield engine
    engine.dispose()


@pytest.fixture
def conn(history: Engine) -> Iterator[Connection]:
    """A snapshot of the generated history."""
    with read_connection(history) as connection:
        yield connection


@pytest.fixture
def project(conn: Connection) -> int:
    """The generated project; a second one beside it must never show."""
    found = find_project(conn, "generated")
    assert found is not None
    return found


@pytest.fixture
def scope(project: int) -> Scope:
    """Everything in the generated project."""
    return Scope(project, parse(""), NOW)


@pytest.fixture
def empty_sqlite(sqlite_template: Path, tmp_path: Path) -> Iterator[Engine]:
    """A migrated SQLite database without a row."""
    path = tmp_path / "empty.db"
    shutil.copyfile(sqlite_template, path)
    engine = open_engine(f"sqlite:///{path}")
    yield engine
    engine.dispose()
