"""The generated history for a whole module."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from toolfault_collector.storage.database.engine import open_engine


@pytest.fixture(scope="module")
def history(filled_sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The generated history, which nobody changes."""
    path = tmp_path_factory.mktemp("mcp") / "toolfault.db"
    shutil.copyfile(filled_sqlite, path)
    engine = open_engine(f"sqlite:///{path}")
    yield engine
    engine.dispose()
