"""What is asked once in a transaction is asked anew in the next one, and is kept by nobody."""

from __future__ import annotations

import gc
from weakref import WeakSet

from sqlalchemy import Connection, Engine
from tests.engines import HISTORY_ON_POSTGRESQL_IS_LONG

from toolfault_collector.storage.database.engine import read_connection
from toolfault_dashboard.queries.counting.memoise import memoised


class _Answer:
    """One that says when it has gone."""


_LEFT: WeakSet[_Answer] = WeakSet()


@memoised
def _asked(_conn: Connection, _of: str) -> _Answer:
    found = _Answer()
    _LEFT.add(found)
    return found


@HISTORY_ON_POSTGRESQL_IS_LONG
def test_answers_go_with_their_transaction(history: Engine) -> None:
    """A server that answers for weeks holds no answer of a page that was read."""
    for _ in range(2):
        with read_connection(history) as conn:
            assert _asked(conn, "a") is _asked(conn, "a")
            assert _asked(conn, "b") is not _asked(conn, "a")
        del conn
        gc.collect()
        assert not _LEFT
