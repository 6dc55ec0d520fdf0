"""What a reader adds to the data, by the collector's functions: changes, keys, notes of exports."""

from __future__ import annotations

from typing import Final

import structlog
import uuid_utils
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from toolfault_collector.admin.audit import note
from toolfault_collector.admin.keys import create_key, shown
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import format_time
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_collector.storage.store import store_events

__all__ = ["create_ingest_key", "note_export", "record_change"]

_MAX_QUERY: Final = 500
_log = structlog.get_logger(__name__)


def record_change(
    engine: Engine, project_id: int, *, label: str, tool: str | None, at: int, now: int
) -> str:
    """Store a change like any other event and return its event id.

    Args:
        engine: A writable engine.
        project_id: The project.
        label: What was changed, 1 to 200 characters.
        tool: The tool it is about; None for all.
        at: When it went live, microseconds since the epoch; any time in the past.
        now: Microseconds since the epoch.

    Raises:
        ValueError: The collector refused it.
    """
    event_id = str(uuid_utils.uuid7())
    event = {
        "type": "change",
        "event_id": event_id,
        "occurred_at": format_time(at),
        "label": label,
        "tool": tool,
        "kind": "manual",
    }
    with write_transaction(engine) as conn:
        # "import": a change may lie longer back than a sender's clock is believed.
        receipt = store_events(
            conn, project_id, [event], received_at=now, time_policy="import", source="dashboard"
        )
    if receipt.accepted != 1:
        raise ValueError(
            "The change was not stored: its label or tool cannot be written like that."
        )
    return event_id


def create_ingest_key(engine: Engine, project: str, *, actor: str) -> str:
    """Return a new ingest key of *project*, which is made if it is new.

    Raises:
        ValueError: The name cannot be a project's.
    """
    with write_transaction(engine) as conn:
        number = ensure_project(conn, project)
        key = create_key(conn, number, "ingest", label="first-run page")
        note(conn, "key_created", actor=actor, project_id=number, kind="ingest", key=shown(key))
    return key


def note_export(
    engine: Engine, *, actor: str, project_id: int | None, file: str, query: str
) -> None:
    """Write into the audit log that rows leave the server.

    A database that takes no writes keeps nobody from their data: then the server's log has it.

    Args:
        engine: A writable engine.
        actor: The account or key that asked.
        project_id: Whose rows they are; None for those of no project.
        file: Table and format, such as ``failures.csv``.
        query: What selects the rows.
    """
    try:
        with write_transaction(engine) as conn:
            note(
                conn,
                "exported",
                actor=actor,
                project_id=project_id,
                file=file,
                query=query[:_MAX_QUERY],
            )
    except SQLAlchemyError as error:
        _log.warning("export_not_noted", actor=actor, file=file, error=type(error).__name__)
