"""The same generated history on SQLite and on PostgreSQL, for everything that only reads."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import Connection, Engine, text
from tests.dashboard.generated import NOW, fill
from tests.dashboard.naive import Tables, load

from toolfault_collector.admin.projects import find_project
from toolfault_collector.storage.database.engine import (
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.search import parse

_copies = count(1)
ENGINES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
Rows = Callable[[str], Tables]


def on_engines(
    names: str,
    sqlite: Sequence[object],
    postgresql: Sequence[object] = (),
    *,
    long: Sequence[object] = (),
    history: str = "history_url",
) -> pytest.MarkDecorator:
    """Parametrise a test with *names*: other values on SQLite than on PostgreSQL, mostly more.

    A value of several *names* is a tuple. Those of *long* are asked of SQLite in the long run.
    """
    several = "," in names

    def case(engine: str, value: object, *marks: pytest.MarkDecorator) -> object:
        if isinstance(value, pytest.ParameterSet):
            return pytest.param(engine, *value.values, marks=[*value.marks, *marks])
        values = value if several and isinstance(value, tuple) else (value,)
        return pytest.param(engine, *values, marks=marks)

    cases = [case("sqlite", value) for value in sqlite]
    cases += [case("sqlite", value, pytest.mark.long) for value in long]
    cases += [case("postgresql", value, pytest.mark.postgres) for value in postgresql]
    return pytest.mark.parametrize(f"{history},{names}", cases, indirect=[history], scope="session")


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
def filled_template(
    request: pytest.FixtureRequest, made_once: Callable[[str, Callable[[Path], None]], Path]
) -> str:
    """Name of a PostgreSQL database with the generated history, which others are copied from."""

    def make(path: Path) -> None:
        url = copied_database(request, "filled")
        engine = open_engine(url)
        fill(engine)
        # A server that runs for a day has done this by itself; without it plans are guesses.
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
            conn.execute(text("ANALYZE"))
        engine.dispose()
        path.write_text(str(engine.url.database))

    # Of this server: it is stopped by the last of who uses it, and a worker that comes later
    # starts another one.
    with psycopg.connect(str(request.getfixturevalue("postgres_url"))) as conn:
        row = conn.execute("SELECT extract(epoch FROM pg_postmaster_start_time())").fetchone()
    assert row is not None
    return made_once(f"history.{row[0]}.postgresql", make).read_text()


@pytest.fixture(scope="session")
def filled_postgres(request: pytest.FixtureRequest, filled_template: str) -> str:
    """URL of a PostgreSQL database with the generated history; nobody writes to it."""
    return copied_database(request, "history", template=filled_template)


@pytest.fixture(scope="session", params=ENGINES)
def history_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of a database with the generated history of two projects, once per engine."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("filled_postgres"))
    # A copy for each worker: pages add accounts.
    path = tmp_path_factory.mktemp("history") / "toolfault.db"
    shutil.copyfile(request.getfixturevalue("filled_sqlite"), path)
    return f"sqlite:///{path}"


@pytest.fixture(scope="session")
def _large() -> dict[str, str]:
    """URLs of the large histories that were made, by engine: pytest may ask for one again."""
    return {}


@pytest.fixture(scope="session", params=ENGINES)
def large_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, _large: dict[str, str]
) -> str:
    """URL of a database whose generated project was written to a million times a day.

    A window of it is counted in segments, which are kept in memory; one of `history` is not.
    """
    if request.param not in _large:
        _large[request.param] = _made_large(request, tmp_path_factory)
    return _large[request.param]


def _made_large(request: pytest.FixtureRequest, folder: pytest.TempPathFactory) -> str:
    if request.param == "postgresql":
        template = request.getfixturevalue("filled_template")
        url = copied_database(request, "large", template=template)
    else:
        path = folder.mktemp("large") / "toolfault.db"
        shutil.copyfile(request.getfixturevalue("filled_sqlite"), path)
        url = f"sqlite:///{path}"
    engine = open_engine(url)
    grow(engine, "generated")
    engine.dispose()
    return url


def grow(engine: Engine, project: str) -> None:
    """Let the days of *project* look as if they had been written to a million times each."""
    with write_transaction(engine) as conn:
        conn.execute(
            text(
                "UPDATE quarter_version SET version = version + 1000000"
                " WHERE project_id = (SELECT id FROM project WHERE name = :name)"
            ),
            {"name": project},
        )


@pytest.fixture
def large(large_url: str) -> Iterator[Engine]:
    """The large history, opened, with nothing of it known yet."""
    engine = open_engine(large_url)
    yield engine
    engine.dispose()


@contextmanager
def opening(path: Path) -> Iterator[Callable[[], Engine]]:
    """Yield a function that opens the SQLite file *path* anew; in the end all are closed."""
    engines: list[Engine] = []

    def open_again() -> Engine:
        engines.append(open_engine(f"sqlite:///{path}"))
        return engines[-1]

    yield open_again
    for engine in engines:
        engine.dispose()


@pytest.fixture
def opened(filled_sqlite: Path, tmp_path: Path) -> Iterator[Callable[[], Engine]]:
    """A function that opens a history with a large project anew, as a server that starts does."""
    path = tmp_path / "toolfault.db"
    shutil.copyfile(filled_sqlite, path)
    with opening(path) as open_again:
        grow(open_again(), "generated")
        yield open_again


def copied_database(
    request: pytest.FixtureRequest, name: str, *, template: str | None = None
) -> str:
    """Return the URL of a new PostgreSQL database, a copy of *template* or migrated and empty."""
    base = str(request.getfixturevalue("postgres_url"))
    template = template or str(request.getfixturevalue("postgres_template"))
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


@pytest.fixture(scope="session")
def _read() -> dict[tuple[str, str], Tables]:
    """Rows that were read, by database and project."""
    return {}


@pytest.fixture(scope="session")
def rows_of(history: Engine, _read: dict[tuple[str, str], Tables]) -> Rows:
    """A function that returns all rows of a project of the generated history, for recounts."""

    def rows(name: str) -> Tables:
        key = history.dialect.name, name
        if key not in _read:
            with read_connection(history) as conn:
                found = find_project(conn, name)
                assert found is not None
                _read[key] = load(conn, found, NOW)
        return _read[key]

    return rows


@pytest.fixture
def stored(rows_of: Rows) -> Tables:
    """All rows of the generated project."""
    return rows_of("generated")


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
