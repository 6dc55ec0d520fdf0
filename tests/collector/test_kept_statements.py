"""Compiled statements are kept for the next question, and fill no memory."""

from __future__ import annotations

import gc
import weakref

import pytest
from sqlalchemy import Engine, Subquery, literal_column, select
from sqlalchemy.engine.interfaces import CacheStats

from toolfault_collector.storage.database.engine import read_connection
from toolfault_collector.storage.database.statements import MOST_CHARACTERS, KeptStatements

LENGTH = MOST_CHARACTERS // 10


def _rows(number: int) -> Subquery:
    """A row as long as a tenth of what is kept, another one for each *number*."""
    return select(literal_column(f"'{number:02}{'x' * LENGTH}'").label("text")).subquery()


@pytest.mark.parametrize(
    "database_url",
    ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)],
    indirect=True,
)
def test_ever_new_statements_take_a_bounded_place(engine: Engine) -> None:
    """However long and many they are, only so much of them stays, and what was asked last does."""
    kept = engine.get_execution_options()["compiled_cache"]
    assert isinstance(kept, KeptStatements)
    seen = []
    with read_connection(engine) as conn:
        for number in [*range(25), 24, 0]:
            context = conn.execute(select(_rows(number).c.text)).context
            seen.append(context.cache_hit is CacheStats.CACHE_HIT)
            assert kept.characters == sum(len(each.string) for each in kept.values())
            assert kept.characters <= MOST_CHARACTERS

    assert seen == [*[False] * 25, True, False]


def test_what_is_forgotten_is_gone(sqlite_engine: Engine) -> None:
    """Of what is no longer kept at most as much as is kept waits for a garbage collection."""
    there = []
    gc.disable()
    try:
        with read_connection(sqlite_engine) as conn:
            for number in range(40):
                rows = _rows(number)
                there.append(weakref.ref(rows))
                conn.execute(select(rows.c.text)).close()
    finally:
        gc.enable()

    assert sum(each() is not None for each in there) <= 10 + 10 + 1
