"""Fix next: what to mend first, and how many round trips that would save."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter
from starlette.responses import Response

from toolfault_dashboard.contexts.advice import FixLine, FixNextContext
from toolfault_dashboard.formats import decimal, plural
from toolfault_dashboard.pages._ask import Ask, Asked
from toolfault_dashboard.pages._lines import rows_behind
from toolfault_dashboard.queries.fix_next import FixRow
from toolfault_dashboard.queries.fix_next import fix_next as find

__all__ = ["router"]

router = APIRouter()

ROWS: Final = 50


@router.get("/fix-next", name="fix_next")
def fix_next(ask: Asked) -> Response:
    """Render the ranking; what a change has mended stands apart."""
    found = find(ask.conn, ask.scope, limit=ROWS)
    most = max((row.round_trips for row in found.rows), default=0.0)
    lines = [(row, _line(ask, row, most)) for row in found.rows]
    context = FixNextContext(
        view=ask.view("/fix-next"),
        fixes=tuple(line for row, line in lines if row.mended_by is None),
        mended=tuple(line for row, line in lines if row.mended_by is not None),
        failures=found.failures,
        complete=found.complete,
        csv=ask.export("/fix-next.csv"),
    )
    return ask.render("fix_next.html", context, title="Fix next")


def _line(ask: Ask, row: FixRow, most: float) -> FixLine:
    return FixLine(
        row=row,
        share=row.round_trips / most if most else 0.0,
        saved=_saved(row),
        interval=_interval(row),
        since=_since(row),
        href=rows_behind(ask, row.query),
    )


def _saved(row: FixRow) -> str:
    if row.per_week is None:
        return f"{plural(round(row.round_trips), 'round trip')} in the window"
    return f"{decimal(row.per_week, 1)} round trips a week"


def _interval(row: FixRow) -> str:
    if row.low is None or row.high is None:
        return ""
    return f"95%: {decimal(row.low, 1)} to {decimal(row.high, 1)}"


def _since(row: FixRow) -> str:
    """Say how a change of the tool turned out, with its interval."""
    if row.saved_since is None:
        return ""
    number = plural(round(abs(row.saved_since)), "round trip")
    word = "saved" if row.saved_since >= 0 else "more"
    low, high = decimal(row.saved_since_low, 1), decimal(row.saved_since_high, 1)
    return f"{number} {word} since “{row.changed_by}” (95%: {low} to {high})"
