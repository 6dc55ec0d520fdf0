"""Which soft rules count for a project, and since when.

A soft rule takes a result that reads like a failure for one (`failures.SOFT_RULES`). Each holds
unless it was switched off for the project. A change counts for what arrives after it, and for the
calls of traces of which more arrives; whatever else is stored stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec
import structlog
from sqlalchemy import Connection, select, update

from toolfault_collector.admin.audit import note
from toolfault_collector.admin.projects import lock_project
from toolfault_collector.otlp.calls.failures import SOFT_RULES
from toolfault_collector.storage.tables import project

__all__ = ["SoftRule", "soft_rules_of", "switch_soft_rules", "switched_off"]


@dataclass(frozen=True, slots=True)
class SoftRule:
    """A soft rule as it is for one project.

    Attributes:
        name: As in ``detection``, without ``soft:``.
        meaning: When it holds, one sentence.
        on: Whether a call counts as failed by it.
        since: From when that applies, in microseconds since the epoch; None if nobody changed it.
    """

    name: str
    meaning: str
    on: bool
    since: int | None


class _Switch(msgspec.Struct):
    """What is stored of a rule that somebody switched."""

    on: bool
    since: int


_log = structlog.get_logger(__name__)
_STORED: Final = msgspec.json.Decoder(dict[str, _Switch])


def soft_rules_of(conn: Connection, project_id: int) -> tuple[SoftRule, ...]:
    """Return all soft rules as they are for a project, in the order in which they are asked."""
    stored = _stored(conn, project_id)
    return tuple(
        SoftRule(name, meaning, True, None)
        if (switch := stored.get(name)) is None
        else SoftRule(name, meaning, switch.on, switch.since)
        for name, meaning in SOFT_RULES.items()
    )


def switched_off(conn: Connection, project_id: int) -> frozenset[str]:
    """Name the soft rules that do not count for a project."""
    return frozenset(name for name, switch in _stored(conn, project_id).items() if not switch.on)


def switch_soft_rules(
    conn: Connection, project_id: int, off: Collection[str], *, actor: str, now: int
) -> tuple[SoftRule, ...]:
    """Switch off the rules *off* and all others on; return those that changed, and write that down.

    Two who switch at once take turns. Who adds to what is off reads that behind `lock_project`.

    Args:
        conn: In a write transaction.
        project_id: The project.
        off: Names of the rules that are not to count.
        actor: Who does it.
        now: From when it applies, in microseconds since the epoch.

    Raises:
        ValueError: There is no rule of such a name.
    """
    unknown = sorted(set(off) - SOFT_RULES.keys())
    if unknown:
        message = f"There is no soft rule {unknown[0]!r}. The rules are {', '.join(SOFT_RULES)}."
        raise ValueError(message)
    lock_project(conn, project_id)
    stored = _stored(conn, project_id)
    was_off = {name for name, switch in stored.items() if not switch.on}
    changed = [name for name in SOFT_RULES if (name in off) != (name in was_off)]
    if not changed:
        return ()
    stored |= {name: _Switch(name not in off, now) for name in changed}
    text = msgspec.json.encode(stored).decode()
    conn.execute(update(project).where(project.c.id == project_id).values(soft_rules=text))
    told = {name: "off" if name in off else "on" for name in changed}
    note(conn, "soft_rules_changed", actor=actor, project_id=project_id, at=now, **told)
    return tuple(rule for rule in soft_rules_of(conn, project_id) if rule.name in changed)


def _stored(conn: Connection, project_id: int) -> dict[str, _Switch]:
    query = select(project.c.soft_rules).where(project.c.id == project_id)
    text = conn.execute(query).scalar_one_or_none()
    try:
        return _STORED.decode(text) if text else {}
    except msgspec.MsgspecError:
        _tell_damaged(project_id, text or "")
        return {}


@lru_cache(maxsize=1_024)
def _tell_damaged(project_id: int, text: str) -> None:
    """Log that a value cannot be read: once, not with every batch that asks for it."""
    hint = "all soft rules count until somebody switches one"
    _log.error("soft_rules_unreadable", project=project_id, length=len(text), hint=hint)
