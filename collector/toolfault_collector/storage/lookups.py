"""Messages and signatures: the rows that failures share, found or made in each transaction.

``first_at`` is when a row was first seen; ``last_at`` is the end of the hour in which it was last
seen, so that a failure that happens a thousand times an hour does not write its row each time:
every collector would wait for that one row.

No id outlives its transaction here: SQLite gives the highest id again once its row is gone. On
PostgreSQL retention (`retention.rows`) waits for all who write before it removes rows, so that none
goes between being looked up and being used.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Table

from toolfault_collector.clock import MINUTE_US
from toolfault_collector.storage.database import postgres as arrays
from toolfault_collector.storage.database.bulk import (
    allocate_ids,
    columns,
    find_rows,
    insert_rows,
    update_rows,
)
from toolfault_collector.storage.database.columns import CallRow
from toolfault_collector.storage.database.engine import is_sqlite
from toolfault_collector.storage.tables import message, signature

__all__ = ["Lookups"]

HOUR_US: Final = 60 * MINUTE_US

_MESSAGE: Final = columns("project_id digest text first_at last_at")
_SIGNATURE: Final = columns(
    "project_id fingerprint tool code fields exception_type first_at last_at"
)

Key = tuple[int, str]


class Lookups:
    """The messages and signatures of the failures of one transaction."""

    def __init__(self) -> None:
        self._messages = _Shared(message, "digest", _MESSAGE)
        self._signatures = _Shared(signature, "fingerprint", _SIGNATURE)

    def resolve(self, conn: Connection, calls: Iterable[CallRow]) -> None:
        """Set ``signature_id`` and ``message_id`` of the failed *calls*; new rows are made."""
        found: list[tuple[CallRow, _Row, _Row | None]] = []
        for row in calls:
            call, failure = row.record, row.record.failure
            if failure is None:
                continue
            at, of_message = call.occurred_at, None
            shown = (call.tool, failure.code, failure.signature, failure.exception_type)
            of_signature = self._signatures.want((call.project_id, failure.fingerprint), shown, at)
            if failure.message_digest is not None:
                key = (call.project_id, failure.message_digest)
                of_message = self._messages.want(key, (failure.message,), at)
            found.append((row, of_signature, of_message))
        self._signatures.find_or_make(conn)
        self._messages.find_or_make(conn)
        for row, of_signature, of_message in found:
            row.signature_id = of_signature.id
            row.message_id = None if of_message is None else of_message.id

    def touch(self, conn: Connection) -> None:
        """Write when rows were first and last seen, of those that do not say so already.

        Last in the transaction, since a row of a frequent failure is wanted by every writer.
        """
        self._signatures.widen(conn)
        self._messages.widen(conn)


@dataclass(slots=True)
class _Row:
    """One row that is wanted: its own columns, when it was seen here, and what was found of it."""

    shown: tuple[Any, ...]
    first_at: int
    last_at: int
    id: int = 0
    seen: bool = False


class _Shared:
    """The wanted rows of one table, by project and digest."""

    def __init__(self, table: Table, digest: str, names: tuple[str, ...]) -> None:
        self._rows: dict[Key, _Row] = {}
        self._table = table
        self._digest = digest
        self._names = names

    def want(self, key: Key, shown: tuple[Any, ...], at: int) -> _Row:
        until = at - at % HOUR_US + HOUR_US
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = _Row(shown, at, until)
        else:
            row.first_at, row.last_at = min(row.first_at, at), max(row.last_at, until)
        return row

    def find_or_make(self, conn: Connection) -> None:
        self._find(conn, self._rows)
        # In the order of their keys: two collectors never wait for each other in a circle.
        new = sorted([key for key, row in self._rows.items() if not row.id])
        if new:
            self._make(conn, new)
            # Those that another collector made in the meantime.
            self._find(conn, [key for key in new if not self._rows[key].id])

    def widen(self, conn: Connection) -> None:
        """Let each row's span reach as far as it was seen; in the order of ids, as above."""
        wider = sorted(
            [(row.id, row.first_at, row.last_at) for row in self._rows.values() if not row.seen]
        )
        least, greatest = ("min", "max") if is_sqlite(conn) else ("least", "greatest")
        change = f"first_at = {least}(t.first_at, given.first_at)"
        change += f", last_at = {greatest}(t.last_at, given.last_at)"
        update_rows(conn, self._table, columns("id first_at last_at"), change=change, rows=wider)

    def _find(self, conn: Connection, keys: Iterable[Key]) -> None:
        names = ("project_id", self._digest, "id", "first_at", "last_at")
        for project_id, digest, row_id, first_at, last_at in find_rows(
            conn, self._table, names, key=self._digest, among=keys
        ):
            row = self._rows[project_id, digest]
            row.id = row_id
            row.seen = first_at <= row.first_at and row.last_at <= last_at

    def _make(self, conn: Connection, keys: list[Key]) -> None:
        """Insert the rows of *keys*, none of which was there just now."""
        rows = [self._rows[key] for key in keys]
        given = [
            (*key, *row.shown, row.first_at, row.last_at)
            for key, row in zip(keys, rows, strict=True)
        ]
        if is_sqlite(conn):
            # Nobody else can write until this transaction ends.
            ids = allocate_ids(conn, self._table, len(rows))
            given = [(row_id, *row) for row_id, row in zip(ids, given, strict=True)]
            insert_rows(conn, self._table, ("id", *self._names), given)
            made = dict(zip(keys, ids, strict=True))
        else:
            returned = arrays.insert_arrays(
                conn,
                self._table,
                self._names,
                rows=given,
                conflict="ON CONFLICT DO NOTHING",
                returning=f"project_id, {self._digest}, id",
            )
            made = {(project_id, digest): row_id for project_id, digest, row_id in returned}
        for key, row_id in made.items():
            self._rows[key].id, self._rows[key].seen = row_id, True
