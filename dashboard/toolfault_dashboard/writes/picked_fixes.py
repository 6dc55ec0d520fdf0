"""What people put on Fix next by hand: a remedy that they saw on a failure, until it is removed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Final

from sqlalchemy import Connection, Engine, delete, insert, select

from toolfault_collector.admin.audit import note
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_collector.storage.tables import picked_fix

__all__ = ["PickedFix", "Prediction", "pick_fix", "picked_fixes", "unpick_fix"]

_MOST: Final = 200  # of one project; a longer list says nothing about what is next


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a fix would save, as it was known when somebody picked it.

    ``low`` and ``high`` are of the four weeks to come; what they are of a shorter or longer time
    follows from ``weeks`` and ``squares`` (`analysis.fixes.prediction`).
    """

    per_week: float  # calls
    low: float
    high: float
    n: int  # failures that it rests on
    operations: float  # of the tool, a week: what the saving is a part of
    weeks: float  # that it rests on
    squares: float  # of what each conversation would have saved in these, added up


@dataclass(frozen=True, slots=True)
class PickedFix:
    """One thing that somebody wants mended."""

    id: int
    tool: str
    field: str  # a pattern, as Fix next names it
    remedy: str
    event_id: str  # the failure it was seen on
    added_by: str
    added_at: int
    predicted_per_week: float | None = None  # calls saved; None: not enough data to predict
    predicted_low: float | None = None
    predicted_high: float | None = None
    predicted_n: int | None = None  # failures that the prediction rests on
    predicted_operations: float | None = None  # of the tool, a week, at that time
    predicted_weeks: float | None = None  # that the prediction rests on
    predicted_squares: float | None = None  # of what each conversation would have saved, added up


def picked_fixes(conn: Connection, project_id: int) -> tuple[PickedFix, ...]:
    """Return what was picked in a project, newest first."""
    fix = picked_fix.c
    rows = conn.execute(
        select(*(fix[each.name] for each in fields(PickedFix)))
        .where(fix.project_id == project_id)
        .order_by(fix.added_at.desc(), fix.id.desc())
    )
    return tuple(PickedFix(*row) for row in rows)


def pick_fix(  # noqa: PLR0913 - one argument per column
    engine: Engine,
    project_id: int,
    *,
    tool: str,
    field: str,
    remedy: str,
    event_id: str,
    actor: str,
    now: int,
    prediction: Prediction | None = None,
) -> None:
    """Put a remedy on Fix next; one that stands there already stays as it is.

    Args:
        engine: A writable engine.
        project_id: The project.
        tool: The tool to mend.
        field: The pattern of its argument.
        remedy: What would have accepted the value.
        event_id: The failure it was seen on.
        actor: Who wants it.
        now: Microseconds since the epoch.
        prediction: What it would save; None where there is too little data to say.

    Raises:
        ValueError: There are too many already.
    """
    fix = picked_fix.c
    with write_transaction(engine) as conn:
        there = conn.execute(
            select(fix.tool, fix.field, fix.remedy).where(fix.project_id == project_id)
        ).all()
        if (tool, field, remedy) in {tuple(row) for row in there}:
            return
        if len(there) >= _MOST:
            raise ValueError(f"{_MOST} things stand on Fix next already; remove one first.")
        conn.execute(
            insert(picked_fix).values(
                project_id=project_id,
                tool=tool,
                field=field,
                remedy=remedy,
                event_id=event_id,
                added_by=actor[:128],
                added_at=now,
                **_columns(prediction),
            )
        )
        note(
            conn,
            "fix_picked",
            actor=actor,
            project_id=project_id,
            tool=tool,
            field=field,
            remedy=remedy,
        )


def _columns(prediction: Prediction | None) -> dict[str, float]:
    if prediction is None:
        return {}
    return {f"predicted_{name}": value for name, value in asdict(prediction).items()}


def unpick_fix(engine: Engine, project_id: int, number: int, *, actor: str) -> bool:
    """Take something off Fix next; say whether it stood there."""
    fix = picked_fix.c
    with write_transaction(engine) as conn:
        row = conn.execute(
            select(fix.tool, fix.field, fix.remedy).where(
                fix.id == number, fix.project_id == project_id
            )
        ).one_or_none()
        if row is None:
            return False
        conn.execute(delete(picked_fix).where(fix.id == number))
        note(
            conn,
            "fix_unpicked",
            actor=actor,
            project_id=project_id,
            tool=row.tool,
            field=row.field,
            remedy=row.remedy,
        )
    return True
