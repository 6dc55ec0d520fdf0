"""Refused events, kept so that somebody can see what was refused: redacted, and only so much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Connection

from toolfault_collector.bulk import columns, insert_rows
from toolfault_collector.clean import clean_text
from toolfault_collector.decode import Rejection
from toolfault_collector.redact import redact_bluntly
from toolfault_collector.tables import rejected_event

__all__ = ["keep_rejects"]

# Kept of one event; enough to see what the sender built.
MAX_BODY: Final = 16_384
# Kept of one batch: a sender that is wrong is wrong in every event.
MAX_PER_BATCH: Final = 100
_COLUMNS: Final = columns("project_id received_at event_id code pointer body")


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
            _body(rejection.source),
        )
        for rejection in rejected[:MAX_PER_BATCH]
    ]
    insert_rows(conn, rejected_event, _COLUMNS, kept)


def _body(source: bytes | Mapping[str, Any] | None) -> str | None:
    if source is None:
        return None
    if isinstance(source, bytes):
        text = source[: 4 * MAX_BODY].decode("utf-8", "replace")
    else:
        text = _encode(source)
    return clean_text(redact_bluntly(text)[:MAX_BODY])


def _encode(source: Mapping[str, Any]) -> str:
    try:
        return msgspec.json.encode(source).decode()[: 4 * MAX_BODY]
    except (UnicodeEncodeError, TypeError, RecursionError, msgspec.MsgspecError):
        return repr(dict(source))[: 4 * MAX_BODY]
