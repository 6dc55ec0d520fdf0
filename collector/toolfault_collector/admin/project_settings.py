"""What is decided for one project: how long its calls are kept, and what its tokens cost.

Stored where somebody changed it; where nobody did, the environment of the server decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select, update

from toolfault_collector.admin.audit import note
from toolfault_collector.settings import Settings
from toolfault_collector.storage.tables import project

__all__ = [
    "MOST_CALLS",
    "MOST_DAYS",
    "MOST_NEW_DAYS",
    "ProjectSettings",
    "change_settings",
    "kept",
    "settings_of",
]

MOST_DAYS = 36_500
MOST_CALLS = 1_000_000_000_000
LONGEST_PRICES = 8_192
MOST_NEW_DAYS = 365
_NAMES = ("retention_days", "retention_calls", "token_prices", "new_kind_days")


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """The stored settings of a project; None where the environment decides.

    Attributes:
        retention_days: Keep what was received in the last so many days; 0 keeps everything.
        retention_calls: Keep about so many calls; 0 sets no limit.
        token_prices: Prices of a million tokens by model, as ``TOOLFAULT_TOKEN_PRICES`` has them.
        new_kind_days: For how many days a kind of failure counts as new; None for 7.
    """

    retention_days: int | None = None
    retention_calls: int | None = None
    token_prices: str | None = None
    new_kind_days: int | None = None


def settings_of(conn: Connection, project_id: int) -> ProjectSettings:
    """Return what is stored for a project; nothing for one that is not there."""
    columns = [project.c[name] for name in _NAMES]
    row = conn.execute(select(*columns).where(project.c.id == project_id)).one_or_none()
    return ProjectSettings() if row is None else ProjectSettings(*row)


def change_settings(
    conn: Connection, project_id: int, wanted: ProjectSettings, *, actor: str
) -> bool:
    """Store what changed, and write down who did it; say whether anything did.

    Args:
        conn: In a write transaction.
        project_id: The project.
        wanted: All its settings as they are to be.
        actor: Who does it.

    Raises:
        ValueError: A number or text is beyond what can be stored.
    """
    _check(wanted)
    before = settings_of(conn, project_id)
    changed = {
        name: getattr(wanted, name)
        for name in _NAMES
        if getattr(wanted, name) != getattr(before, name)
    }
    if not changed:
        return False
    conn.execute(update(project).where(project.c.id == project_id).values(changed))
    # "server" for what the environment decides from now on: null would read as nothing.
    told: dict[str, Any] = {
        name: "server" if value is None else value for name, value in changed.items()
    }
    note(conn, "settings_changed", actor=actor, project_id=project_id, **told)
    return True


def kept(stored: ProjectSettings, server: Settings) -> tuple[int, int]:
    """Return the days and calls that are kept of a project; 0 for everything."""
    days, calls = stored.retention_days, stored.retention_calls
    return (
        server.retention_days if days is None else days,
        server.retention_calls if calls is None else calls,
    )


def _check(wanted: ProjectSettings) -> None:
    if not 0 <= (wanted.retention_days or 0) <= MOST_DAYS:
        message = f"Keep between 0 and {MOST_DAYS} days."
        raise ValueError(message)
    if not 0 <= (wanted.retention_calls or 0) <= MOST_CALLS:
        message = f"Keep between 0 and {MOST_CALLS} calls."
        raise ValueError(message)
    if wanted.new_kind_days is not None and not 1 <= wanted.new_kind_days <= MOST_NEW_DAYS:
        message = f"A kind of failure is new for 1 to {MOST_NEW_DAYS} days."
        raise ValueError(message)
    if len(wanted.token_prices or "") > LONGEST_PRICES:
        message = f"The prices have more than {LONGEST_PRICES} characters."
        raise ValueError(message)
