"""Messages and signatures: the rows that failures share, and their ids.

``first_at`` is when a row was first seen; ``last_at`` is the end of the hour in which it was last
seen, so that a failure that happens a thousand times an hour does not write its row each time:
every collector would wait for that one row.
"""

# ruff: noqa: S608 - only names of this code are put into statements, values are bound

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Table

from toolfault_collector import arrays
from toolfault_collector.bulk import allocate_ids, columns, find_rows, insert_rows, run, select_in
from toolfault_collector.clock import MINUTE_US
from toolfault_collector.engine import is_sqlite
from toolfault_collector.errors import StaleIds
from toolfault_collector.prepared import PreparedCall
from toolfault_collector.tables import message, signature

__all__ = ["Catalog"]

# Ids remembered per table, some 10 MiB: more wordings than any shop uses in an hour.
MAX_REMEMBERED: Final = 50_000
HOUR_US: Final = 60 * MINUTE_US

_MESSAGE: Final = columns("project_id digest text first_at last_at")
_SIGNATURE: Final = columns(
    "project_id fingerprint tool code fields exception_type first_at last_at"
)

Key = tuple[int, str]
Span = tuple[int, int]


@dataclass(slots=True)
class _Shared:
    """One table of shared rows within one transaction."""

    table: Table
    names: tuple[str, ...]
    known: dict[Key, int] = field(default_factory=dict)
    spans: dict[int, Span] = field(default_factory=dict)
    fresh: dict[Key, int] = field(default_factory=dict)
    used: dict[int, Key] = field(default_factory=dict)
    seen: dict[int, Span] = field(default_factory=dict)

    def see(self, key: Key, row_id: int, at: int) -> None:
        """Note that a call of the time *at* refers to the row, and whether that must be written.

        Raises:
            StaleIds: The id is remembered of two rows, so one of them is gone.
        """
        if self.used.setdefault(row_id, key) != key:
            raise StaleIds
        first, until = self.seen.get(row_id) or self.spans.get(row_id) or (at, at)
        if not first <= at < until:
            self.seen[row_id] = (min(first, at), max(until, _end_of_hour(at)))


class Catalog:
    """Finds or makes the message and signature rows of failures.

    Ids outlive a transaction in memory; those a rolled-back transaction made do not. Call
    `committed` or `rolled_back` after each.
    """

    def __init__(self) -> None:
        self._messages = _Shared(message, _MESSAGE)
        self._signatures = _Shared(signature, _SIGNATURE)

    def resolve(self, conn: Connection, failures: list[PreparedCall]) -> None:
        """Set ``message_id`` and ``signature_id`` of *failures*, making the rows that are new."""
        signatures: dict[Key, tuple[Any, ...]] = {}
        messages: dict[Key, tuple[Any, ...]] = {}
        for call in failures:
            at, key = call.occurred_at, (call.project_id, call.fingerprint or "")
            if key not in signatures:
                shown = (call.event.tool, call.code, call.fields_json, call.exception_type)
                signatures[key] = (*shown, at, _end_of_hour(at))
            if call.message_digest is not None:
                key = (call.project_id, call.message_digest)
                if key not in messages:
                    messages[key] = (call.message_text, at, _end_of_hour(at))
        signature_ids = _ids(conn, self._signatures, signatures)
        message_ids = _ids(conn, self._messages, messages)
        for call in failures:
            key = (call.project_id, call.fingerprint or "")
            call.signature_id = signature_ids[key]
            self._signatures.see(key, call.signature_id, call.occurred_at)
            if call.message_digest is not None:
                key = (call.project_id, call.message_digest)
                call.message_id = message_ids[key]
                self._messages.see(key, call.message_id, call.occurred_at)

    def touch(self, conn: Connection) -> None:
        """Write when rows were first and last seen, of those that do not say so already.

        Done last in the transaction, since a row of a frequent failure is wanted by every writer;
        in the order of ids, so that two writers never wait for each other.

        Raises:
            StaleIds: A row is gone, or its id is another's by now (SQLite gives the highest one
                again); forget the remembered ids and store again.
        """
        for shared in (self._signatures, self._messages):
            unchanged = shared.used.keys() - shared.seen.keys()
            if _widen(conn, shared) + _count(conn, shared, unchanged) < len(shared.used):
                # Retention removed a row whose id was remembered here.
                raise StaleIds

    def committed(self) -> None:
        """Remember the ids the transaction made."""
        for shared in (self._signatures, self._messages):
            if len(shared.known) + len(shared.fresh) > MAX_REMEMBERED:
                shared.known.clear()
                shared.spans.clear()
            shared.known.update(shared.fresh)
            shared.spans.update(shared.seen)
        self._forget_transaction()

    def rolled_back(self) -> None:
        """Forget everything: rows may be gone, or never have come to be."""
        for shared in (self._signatures, self._messages):
            shared.known.clear()
            shared.spans.clear()
        self._forget_transaction()

    def _forget_transaction(self) -> None:
        for shared in (self._signatures, self._messages):
            shared.fresh.clear()
            shared.used.clear()
            shared.seen.clear()


def _ids(conn: Connection, shared: _Shared, wanted: dict[Key, tuple[Any, ...]]) -> dict[Key, int]:
    ids = {key: shared.known[key] for key in wanted if key in shared.known}
    missing = [key for key in wanted if key not in ids]
    if not missing:
        return ids
    found = _find(conn, shared, missing)
    new = sorted(key for key in missing if key not in found)
    if new:
        found |= _make(conn, shared, {key: wanted[key] for key in new})
        # Those that another collector made in the meantime.
        found |= _find(conn, shared, (key for key in new if key not in found))
    shared.fresh |= found
    return ids | found


def _find(conn: Connection, shared: _Shared, keys: Iterable[Key]) -> dict[Key, int]:
    by_project: dict[int, list[str]] = {}
    for project_id, digest in keys:
        by_project.setdefault(project_id, []).append(digest)
    digest_column = shared.names[1]
    found = {}
    for project_id, digests in by_project.items():
        for digest, row_id, first_at, last_at in find_rows(
            conn,
            shared.table,
            (digest_column, "id", "first_at", "last_at"),
            project_id=project_id,
            key=digest_column,
            among=digests,
        ):
            found[project_id, digest] = row_id
            shared.spans[row_id] = (first_at, last_at)
    return found


def _make(conn: Connection, shared: _Shared, rows: dict[Key, tuple[Any, ...]]) -> dict[Key, int]:
    """Insert *rows*, none of which was there just now, and return the ids of those it made."""
    table, names = shared.table, shared.names
    if is_sqlite(conn):
        # Nobody else can write until this transaction ends.
        ids = dict(zip(rows, allocate_ids(conn, table, len(rows)), strict=True))
        given = [(ids[key], *key, *row) for key, row in rows.items()]
        insert_rows(conn, table, ("id", *names), given)
        shared.spans.update((ids[key], row[-2:]) for key, row in rows.items())
        return ids
    made = arrays.insert_arrays(
        conn,
        table,
        names,
        rows=[(*key, *row) for key, row in rows.items()],
        conflict="ON CONFLICT DO NOTHING",
        returning=f"id, project_id, {names[1]}, first_at, last_at",
    )
    shared.spans.update({row[0]: (row[3], row[4]) for row in made})
    return {(row[1], row[2]): row[0] for row in made}


def _widen(conn: Connection, shared: _Shared) -> int:
    """Let each row's span reach as far as it was seen; return how many rows there were."""
    rows = sorted((row, first, last) for row, (first, last) in shared.seen.items())
    if not rows:
        return 0
    if is_sqlite(conn):
        text = msgspec.json.encode([(*row, *shared.used[row[0]]) for row in rows]).decode()
        given = [f"json_extract(given.value, '$[{place}]')" for place in range(5)]
        sql = (
            f"UPDATE {shared.table.name} AS t SET first_at = min(t.first_at, {given[1]}),"
            f" last_at = max(t.last_at, {given[2]}) FROM json_each(?) AS given"
            f" WHERE t.id = {given[0]} AND t.project_id = {given[3]}"
            f" AND t.{shared.names[1]} = {given[4]}"
        )
        return run(conn, sql, [(text,)])
    change = (
        "first_at = least(t.first_at, given.first_at), last_at = greatest(t.last_at, given.last_at)"
    )
    names = ("id", "first_at", "last_at")
    return arrays.update_arrays(conn, shared.table, names, change=change, rows=rows)


def _count(conn: Connection, shared: _Shared, ids: set[int]) -> int:
    """Return how many of the rows *ids* are there and are still what they were."""
    sql = f"SELECT id, project_id, {shared.names[1]} FROM {shared.table.name} WHERE id IN ?"
    return sum(shared.used[row[0]] == (row[1], row[2]) for row in select_in(conn, sql, among=ids))


def _end_of_hour(at: int) -> int:
    return at - at % HOUR_US + HOUR_US
