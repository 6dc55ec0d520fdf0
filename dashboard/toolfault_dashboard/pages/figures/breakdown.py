"""Break down: which model (agent, release ...) fails, and at which tool."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter
from starlette.responses import Response

from toolfault_dashboard.analysis.rates import rate
from toolfault_dashboard.charts import estimate, heat_level
from toolfault_dashboard.contexts import Link
from toolfault_dashboard.contexts.breakdown import (
    BreakdownContext,
    BreakdownLine,
    BreakdownRow,
    RateCell,
)
from toolfault_dashboard.formats import count, percent_interval, plural
from toolfault_dashboard.pages.shared.ask import Ask, Asked
from toolfault_dashboard.pages.shared.lines import NONE, exactly, rate_scale
from toolfault_dashboard.queries.figures.breakdown import (
    BREAKDOWNS,
    MINIMUM_CALLS,
    Breakdown,
    BreakdownCell,
    BreakdownGroup,
    BreakdownKey,
    breakdown,
)

__all__ = ["chosen_key", "lines_of", "router"]

router = APIRouter()

LINES: Final = 30
TOOLS: Final = 30
COLUMNS: Final = 8


@router.get("/breakdown", name="breakdown")
def breakdown_page(ask: Asked) -> Response:
    """Render the page."""
    by = chosen_key(ask)
    found = breakdown(ask.conn, ask.scope, by)
    columns = tuple(group.name for group in found.groups[:COLUMNS])
    kept: dict[str, str] = {} if by == BREAKDOWNS[0] else {"by": by}
    context = BreakdownContext(
        view=ask.view("/breakdown", **kept),
        by=by,
        title=by.capitalize(),
        tabs=tuple(
            Link(
                name.capitalize(),
                ask.link("/breakdown", by="" if name == BREAKDOWNS[0] else name),
                name == by,
            )
            for name in BREAKDOWNS
        ),
        lines=lines_of(ask, found.groups[:LINES], by),
        columns=tuple(name or NONE for name in columns),
        rows=_rows(ask, found, columns),
        groups={"values": len(found.groups), "tools": len(found.tools)},
        minimum=MINIMUM_CALLS,
        csv=ask.export("/breakdown.csv", by=kept.get("by", "")),
    )
    return ask.render("breakdown.html", context, title="Break down")


def chosen_key(ask: Ask) -> BreakdownKey:
    """Return what the address breaks down by."""
    wanted = ask.request.query_params.get("by", "")
    return next((each for each in BREAKDOWNS if each == wanted), BREAKDOWNS[0])


def lines_of(
    ask: Ask, groups: tuple[BreakdownGroup, ...], by: BreakdownKey
) -> tuple[BreakdownLine, ...]:
    """Return *groups* with their links and drawn intervals."""
    scale = rate_scale(group.rate for group in groups)
    return tuple(
        BreakdownLine(
            row=group,
            name=group.name or NONE,
            drawn=estimate(group.rate.value, group.rate.low, group.rate.high, scale=scale),
            href=ask.link("/failures", exactly(ask.query, by, group.name)),
        )
        for group in groups
    )


def _rows(ask: Ask, found: Breakdown, columns: tuple[str, ...]) -> tuple[BreakdownRow, ...]:
    cells = {(cell.tool, cell.name): cell for cell in found.cells}
    compared = [cell for cell in found.cells if cell.rate.n >= MINIMUM_CALLS]
    highest = max((cell.rate.value or 0.0 for cell in compared), default=0.0)
    worst = {cell.tool: cell.name for cell in found.cells if cell.worst}

    def cell(tool: str, name: str) -> RateCell:
        row = cells.get((tool, name))
        if row is None:
            return RateCell(None, rate(0, 0), "", 0, "")
        query = exactly(exactly(ask.query, "tool", tool), found.by, name)
        return RateCell(
            row=row,
            rate=row.rate,
            said=_said(row),
            level=_level(row, highest),
            href=ask.link("/failures", query) if row.failures else "",
        )

    return tuple(
        BreakdownRow(
            tool=tool,
            href=ask.link("/tool", name=tool),
            cells=tuple(cell(tool, name) for name in columns),
            worst=worst[tool] or NONE if tool in worst else "",
        )
        for tool in found.tools[:TOOLS]
    )


def _said(row: BreakdownCell) -> str:
    enough = row.rate.n >= MINIMUM_CALLS
    interval = f", 95%: {percent_interval(row.rate)}" if enough else ": not enough data"
    of_calls = f"{count(row.failures)} of {plural(row.calls, 'call')}"
    return f"{of_calls} of {row.tool} with {row.name or NONE}{interval}"


def _level(row: BreakdownCell, highest: float) -> int:
    """Return the step of the colour; a cell of few calls has none, whatever its rate."""
    if row.rate.n < MINIMUM_CALLS or not highest:
        return 0
    return heat_level(round(1_000 * (row.rate.value or 0.0)), round(1_000 * highest))
