"""The audit log: who did what to keys, people and data. Rows are added and never changed.

Each is written in the transaction of the act it tells of, so there is neither without the other.
Reading is not noted here, but for exports: they take data out of reach of its retention.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, insert, select

from toolfault_collector.clock import now_us
from toolfault_collector.storage.tables import audit_log, project

__all__ = ["ACTIONS", "Act", "acts", "note"]

ACTIONS: Final = (
    "access_ended",
    "alert_changed",
    "alert_made",
    "alert_removed",
    "alert_snoozed",
    "channel_made",
    "channel_removed",
    "channel_tested",
    "database_restored",
    "database_upgraded",
    "events_forgotten",
    "exported",
    "fix_picked",
    "fix_unpicked",
    "kind_changed",
    "key_created",
    "key_revoked",
    "key_rotated",
    "link_created",
    "project_deleted",
    "project_renamed",
    "pruned",
    "rejects_retried",
    "repaired",
    "role_changed",
    "sessions_imported",
    "settings_changed",
    "signed_in",
    "signed_out",
    "soft_rules_changed",
)


@dataclass(frozen=True, slots=True)
class Act:
    """One row of the log; ``occurred_at`` is in microseconds."""

    id: int
    occurred_at: int
    actor: str
    action: str
    project: str | None
    detail: dict[str, Any]


def note(
    conn: Connection,
    action: str,
    *,
    actor: str,
    project_id: int | None = None,
    at: int | None = None,
    **detail: object,
) -> None:
    """Add a row to the log.

    Args:
        conn: In the write transaction of the act.
        action: One of `ACTIONS`.
        actor: The account that did it, or ``cli:`` and the user of the operating system.
        project_id: The project it was done to, if it was one.
        at: When, in microseconds; now by default.
        detail: What it was done to, by names and numbers; never a secret.
    """
    if action not in ACTIONS:
        message = f"{action!r} is no action of the audit log"
        raise ValueError(message)
    row = {
        "occurred_at": now_us() if at is None else at,
        "actor": actor[:128],
        "action": action,
        "project_id": project_id,
        "detail": detail,
    }
    conn.execute(insert(audit_log).values(row))


def acts(conn: Connection, *, limit: int = 100) -> list[Act]:
    """Return the newest *limit* acts, newest first."""
    log = audit_log.c
    query = (
        select(log.id, log.occurred_at, log.actor, log.action, project.c.name, log.detail)
        .select_from(audit_log.outerjoin(project, project.c.id == log.project_id))
        .order_by(log.id.desc())
        .limit(limit)
    )
    return [Act(*row[:5], row[5] or {}) for row in conn.execute(query)]
