"""Messages and signatures: the rows that failures share, and their ids."""

# ruff: noqa: S608 - only names of this code are put into statements, values are bound

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, Table

from toolfault_collector import arrays
from toolfault_collector.bulk import columns, find_rows, run
from toolfault_collector.engine import is_sqlite
from toolfault_collector.errors import StaleIds
from toolfault_collector.prepared import PreparedCall
from toolfault_collector.tables import message, signature

__all__ = ["Catalog"]

# Ids remembered per table, some 5 MiB: more wordings than any shop uses in an hour.
MAX_REMEMBERED: Final = 20_000

_MESSAGE: Final = columns("project_id digest text first_at last_at")
_SIGNATURE: Final = columns(
    "project_id fingerprint tool code fields exception_type first_at last_at"
)

Key = tuple[int, str]


@dataclass(slots=True)
class _Shared:
    """One table of shared rows within one transaction."""

    table: Table
    names: tuple[str, ...]
    known: dict[Key, int] = field(default_factory=dict)
    fresh: dict[Key, int] = field(default_factory=dict)
    seen: dict[int, tuple[int, int]] = field(default_factory=dict)


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
            at = (call.occurred_at, call.occurred_at)
            signatures.setdefault(
                (call.project_id, call.fingerprint or ""),
                (call.event.tool, call.code, call.fields_json, call.exception_type, *at),
            )
            if call.message_digest is not None:
                messages.setdefault(
                    (call.project_id, call.message_digest), (call.message_text, *at)
                )
        signature_ids = _ids(conn, self._signatures, signatures)
        message_ids = _ids(conn, self._messages, messages)
        for call in failures:
            call.signature_id = signature_ids[call.project_id, call.fingerprint or ""]
            _see(self._signatures, call.signature_id, call.occurred_at)
            if call.message_digest is not None:
                call.message_id = message_ids[call.project_id, call.message_digest]
                _see(self._messages, call.message_id, call.occurred_at)

    def touch(self, conn: Connection) -> None:
        """Write when each row was first and last seen.

        Done last in the transaction, since a row of a frequent failure is wanted by every writer;
        in the order of ids, so that two writers never wait for each other.

        Raises:
            StaleIds: A row is gone; forget the remembered ids and store again.
        """
        for shared in (self._signatures, self._messages):
            if shared.seen and _widen(conn, shared) != len(shared.seen):
                # Retention of another process removed a row whose id was remembered here.
                raise StaleIds

    def committed(self) -> None:
        """Remember the ids the transaction made."""
        for shared in (self._signatures, self._messages):
            if len(shared.known) + len(shared.fresh) > MAX_REMEMBERED:
                shared.known.clear()
            shared.known.update(shared.fresh)
        self._forget_transaction()

    def rolled_back(self) -> None:
        """Forget everything: rows may be gone, or never have come to be."""
        for shared in (self._signatures, self._messages):
            shared.known.clear()
        self._forget_transaction()

    def _forget_transaction(self) -> None:
        for shared in (self._signatures, self._messages):
            shared.fresh.clear()
            shared.seen.clear()


def _ids(conn: Connection, shared: _Shared, wanted: dict[Key, tuple[Any, ...]]) -> dict[Key, int]:
    ids = {key: shared.known[key] for key in wanted if key in shared.known}
    missing = [key for key in wanted if key not in ids]
    if not missing:
        return ids
    found = _find(conn, shared, missing)
    new = sorted(key for key in missing if key not in found)
    if new:
        _insert_ignore(conn, shared, [(*key, *wanted[key]) for key in new])
        found |= _find(conn, shared, new)
    shared.fresh |= found
    return ids | found


def _find(conn: Connection, shared: _Shared, keys: Iterable[Key]) -> dict[Key, int]:
    by_project: dict[int, list[str]] = {}
    for project_id, digest in keys:
        by_project.setdefault(project_id, []).append(digest)
    digest_column = shared.names[1]
    return {
        (project_id, digest): row_id
        for project_id, digests in by_project.items()
        for digest, row_id in find_rows(
            conn,
            shared.table,
            (digest_column, "id"),
            project_id=project_id,
            key=digest_column,
            among=digests,
        )
    }


def _insert_ignore(conn: Connection, shared: _Shared, rows: list[tuple[Any, ...]]) -> None:
    marks = ", ".join("?" * len(shared.names))
    names = ", ".join(shared.names)
    sql = f"INSERT INTO {shared.table.name} ({names}) VALUES ({marks}) ON CONFLICT DO NOTHING"
    run(conn, sql, rows)


def _widen(conn: Connection, shared: _Shared) -> int:
    """Let each row's span reach as far as it was seen; return how many rows there were."""
    rows = sorted((row, first, last) for row, (first, last) in shared.seen.items())
    if is_sqlite(conn):
        sql = (
            f"UPDATE {shared.table.name} SET first_at = min(first_at, ?2),"
            " last_at = max(last_at, ?3) WHERE id = ?1"
        )
        return conn.exec_driver_sql(sql, rows).rowcount
    change = (
        "first_at = least(t.first_at, given.first_at), last_at = greatest(t.last_at, given.last_at)"
    )
    names = ("id", "first_at", "last_at")
    return arrays.update_arrays(conn, shared.table, names, change=change, rows=rows)


def _see(shared: _Shared, row_id: int, at: int) -> None:
    first, last = shared.seen.get(row_id, (at, at))
    shared.seen[row_id] = (min(first, at), max(last, at))
