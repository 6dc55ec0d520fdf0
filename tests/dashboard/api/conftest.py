"""One history for what programs read: SQLite, since no answer depends on the engine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine
from tests.dashboard.generated import NOW

from toolfault_collector.admin.projects import find_project
from toolfault_collector.storage.database.engine import open_engine, read_connection
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.search import parse


@pytest.fixture(scope="module")
def history(filled_sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The generated history; tests add keys to it and nothing else."""
    path = tmp_path_factory.mktemp("api") / "toolfault.db"
    shutil.copyfile(filled_sqlite, path)
    engine = open_engine(f"sqlite:///{path}")
    yield engine
    engine.dispose()


@pytest.fixture
def conn(history: Engine) -> Iterator[Connection]:
    """A snapshot of it."""
    with read_connection(history) as connection:
        yield connection


@pytest.fixture
def scope(conn: Connection) -> Scope:
    """Everything in the generated project, as a read key sees it."""
    project = find_project(conn, "generated")
    assert project is not None
    return Scope(project, parse(""), NOW, "llm")
