"""Refused events: kept redacted and capped, so that people see them and a later version takes them.

What is kept is JSON wherever the event was, with the members of the batch's resource that the event
left out: that is all it needs to be stored like any other event once its fault is understood.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Engine, delete, select

from toolfault_collector.bulk import columns, insert_rows
from toolfault_collector.clean import clean_text
from toolfault_collector.decode import Rejection
from toolfault_collector.redact import redact_bluntly, redact_value
from toolfault_collector.tables import rejected_event

__all__ = ["Kept", "keep_rejects", "kept_rejects", "remove_rejects"]

# Kept of one event; enough to see what the sender built.
MAX_BODY: Final = 16_384
# Kept of one batch: a sender that is wrong is wrong in every event.
MAX_PER_BATCH: Final = 100
# Members that an event takes from its batch where it has none.
_INHERITED: Final = ("agent", "model", "provider", "environment", "release", "variant", "user")
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
    """Store what was *rejected* of one batch of *project_id*; times are microseconds."""
    kept = [
        (
            project_id,
            received_at,
            rejection.event_id,
            rejection.code,
            rejection.pointer,
            _body(rejection),
        )
        for rejection in rejected[:MAX_PER_BATCH]
    ]
    insert_rows(conn, rejected_event, _COLUMNS, kept)


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


def _body(rejection: Rejection) -> str | None:
    source = rejection.source
    if source is None:
        return None
    text = (
        _encode(source) if isinstance(source, Mapping) else str(bytes(source), "utf-8", "replace")
    )
    if len(text) <= 4 * MAX_BODY:
        with suppress(ValueError, RecursionError):  # no JSON, or too deep even to be looked at
            return _whole(json.loads(text), rejection.resource)[:MAX_BODY]
    return clean_text(redact_bluntly(text[: 4 * MAX_BODY])[:MAX_BODY])


def _whole(event: Any, resource: Mapping[str, str]) -> str:
    if isinstance(event, dict):
        event = {name: resource[name] for name in _INHERITED if name in resource} | event
    # Escaped: a lone surrogate, for which it may have been refused, is no text for a database.
    return json.dumps(redact_value(event, clean=redact_bluntly), separators=(",", ":"))


def _encode(source: Mapping[str, Any]) -> str:
    try:
        return json.dumps(source, default=str)
    except (ValueError, TypeError, RecursionError):
        return repr(dict(source))
