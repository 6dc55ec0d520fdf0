"""Statements that are compiled once for all engines of a worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, event

from toolfault_collector.storage.database.statements import MOST_CHARACTERS, KeptStatements

__all__ = ["compiled_once"]


class _OfEveryEngine(KeptStatements):
    """Statements that were compiled for one database and are used for all of its kind."""

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__((type(key[0]), *key[1:]))

    def __setitem__(self, key: Any, statement: Any) -> None:
        super().__setitem__((type(key[0]), *key[1:]), statement)


_compiled = _OfEveryEngine(2 * MOST_CHARACTERS)


def _share(conn: Connection) -> None:
    if conn.dialect.name in ("sqlite", "postgresql"):
        conn.execution_options(compiled_cache=_compiled)


@contextmanager
def compiled_once() -> Iterator[None]:
    """Let all engines share what was compiled: a server has one for years, tests open hundreds.

    With a cache for each engine a tenth of the time of tests that read went into compiling the same
    again.
    """
    event.listen(Engine, "engine_connect", _share)
    yield
    event.remove(Engine, "engine_connect", _share)
