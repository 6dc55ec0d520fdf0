"""Refused events in the database, where people see them and a later version takes them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, Engine, delete, select

from toolfault_collector.protocol.refused import MAX_PER_BATCH, Rejection
from toolfault_collector.storage.database.bulk import columns, insert_rows
from toolfault_collector.storage.tables import rejected_event

__all__ = ["Kept", "keep_rejects", "kept_rejects", "remove_rejects"]

_COLUMNS: Final = columns("project_id received_at event_id code pointer body")


@dataclass(frozen=True, slots=True)
class Kept:
    """One refused event as it was kept. ``received_at`` is in microseconds."""

    id: int
    project_id: int
    received_at: int
    code: str
    body: str | None


def keep_rejects(
    conn: Connection, project_id: int, *, received_at: int, rejected: Sequence[Rejection]
) -> None:
    """Store what was *rejected* of one batch of *project_id*; times are microseconds.

    An event that names itself is kept once for each fault, however often it is sent.
    """
    rejected = rejected[:MAX_PER_BATCH]
    known = _known(conn, project_id, [each.event_id for each in rejected if each.event_id])
    kept = []
    for each in rejected:
        fault = (each.event_id, each.code, _member(each.pointer))
        if fault in known:
            continue
        if each.event_id:
            known.add(fault)
        row = (project_id, received_at, each.event_id, each.code, each.pointer, each.body)
        kept.append(row)
    insert_rows(conn, rejected_event, _COLUMNS, kept)


def _known(
    conn: Connection, project_id: int, ids: Sequence[str]
) -> set[tuple[str | None, str, str]]:
    """Return those of *ids* that are kept, each with its fault."""
    if not ids:
        return set()
    row = rejected_event.c
    rows = conn.execute(
        select(row.event_id, row.code, row.pointer).where(
            row.project_id == project_id, row.event_id.in_(ids)
        )
    )
    return {(event_id, code, _member(pointer)) for event_id, code, pointer in rows}


def _member(pointer: str) -> str:
    """Return *pointer* without the place of the event in its batch, which changes."""
    return "/".join(pointer.split("/")[3:])


def kept_rejects(
    engine: Engine, *, project_id: int | None, code: str | None, after: int, limit: int
) -> list[Kept]:
    """Return at most *limit* kept events with ids beyond *after*, oldest first."""
    table = rejected_event.c
    query = select(table.id, table.project_id, table.received_at, table.code, table.body)
    query = query.where(table.id > after).order_by(table.id).limit(limit)
    if project_id is not None:
        query = query.where(table.project_id == project_id)
    if code is not None:
        query = query.where(table.code == code)
    with engine.connect() as conn:
        return [Kept(**row) for row in conn.execute(query).mappings()]


def remove_rejects(conn: Connection, ids: Sequence[int]) -> None:
    """Remove kept events, which were stored after all."""
    conn.execute(delete(rejected_event).where(rejected_event.c.id.in_(ids)))
