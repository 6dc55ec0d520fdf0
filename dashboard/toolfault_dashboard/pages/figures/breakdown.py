"""Break down: which model (agent, release ...) fails at which tool; failures by what they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated as Doc
from typing import ClassVar, Final

from fastapi import APIRouter
from starlette.responses import Response

from toolfault_dashboard import queries
from toolfault_dashboard.analysis.rates import Rate, rate
from toolfault_dashboard.charts import Estimate, estimate, heat_level
from toolfault_dashboard.exports.tables import rate_columns
from toolfault_dashboard.formats import count, percent_interval, plural
from toolfault_dashboard.glossary import CODES
from toolfault_dashboard.pages.shared.ask import Ask, Asked
from toolfault_dashboard.pages.shared.frame import Context, Link, View
from toolfault_dashboard.pages.shared.lines import (
    BY_CODE,
    NONE,
    exactly,
    frequency_lines,
    rate_scale,
)
from toolfault_dashboard.pages.shared.numbered import Number, one_page
from toolfault_dashboard.pages.shared.table import Column, Drawn, Table
from toolfault_dashboard.queries.figures.breakdown import (
    BREAKDOWNS,
    MINIMUM_CALLS,
    Breakdown,
    BreakdownCell,
    BreakdownGroup,
    BreakdownKey,
    breakdown,
)
from toolfault_dashboard.queries.lists.streams import RowStream
from toolfault_dashboard.queries.visibility import sees

__all__ = ["BY_TOOL", "PROPERTIES", "RATES", "lines_of", "router"]


@dataclass(frozen=True, slots=True)
class BreakdownLine:
    """The calls that carry one value."""

    row: Doc[BreakdownGroup, "What was counted."]
    name: Doc[str, "The value; words for none."]
    drawn: Doc[Estimate | None, "The interval of the failure rate, drawn."]
    href: Doc[str, "The failures behind it."]


@dataclass(frozen=True, slots=True)
class RateCell:
    """One tool and one value; nothing where the tool was not called so."""

    row: Doc[BreakdownCell | None, "What was counted; None without a call."]
    rate: Doc[Rate, "Failures of the calls."]
    said: Doc[str, "What was counted, in words."]
    level: Doc[int, "Step of the colour, 0 to 5."]
    href: Doc[str, "The failures behind it; empty for none."]


@dataclass(frozen=True, slots=True)
class BreakdownRow:
    """One tool."""

    tool: Doc[str, "The tool."]
    href: Doc[str, "Its page."]
    cells: Doc[tuple[RateCell, ...], "One per column."]
    worst: Doc[str, "The value at which it fails most; empty where nothing can be compared."]


@dataclass(frozen=True, slots=True)
class BreakdownContext(Context):
    """What `breakdown.html` shows."""

    template: ClassVar[str] = "breakdown.html"

    view: Doc[View, "The query bar."]
    by: Doc[str, "What calls or failures are told apart by, in words."]
    tabs: Doc[tuple[Link, ...], "What they can be told apart by."]
    lines: Doc[Drawn, "The values that calls carry, most failures first."]
    kinds: Doc[Drawn, "Those that failures alone have, most failures first."]
    denominator: Doc[str, "What the rates of `kinds` are of."]
    columns: Doc[tuple[str, ...], "The values with a column of their own."]
    rows: Doc[tuple[BreakdownRow, ...], "The tools with most failures."]
    groups: Doc[dict[str, int], "How many values and tools there are in all."]
    pages: Doc[dict[str, dict[str, str]], "Addresses of the pages beside, of values and tools."]
    minimum: Doc[int, "Calls below which a cell is not compared."]
    csv: Doc[str, "The matrix, or the values that failures alone have, as a file."]


router = APIRouter()

LINES: Final = 30
TOOLS: Final = 30
COLUMNS: Final = 8
KINDS: Final[Mapping[str, queries.Dimension]] = {
    "code": "code",
    "category": "category",
    "framework": "framework",
    "field": "field",
    "field pattern": "field_pattern",
    "message": "message",
}
"""What failures alone have; a success has none of it to divide by. Kinds have their own page."""

PROPERTIES: Final = frozenset((*BREAKDOWNS, *KINDS.values()))
"""Everything that the address may break down by."""


RATES: Final = Table(
    Column("name", "Value", "code_link", term=""),
    Column("calls", "Calls", "count", "row.calls"),
    Column("failures", "Failures", "count", "row.failures"),
    Column("rate", "Failure rate", "rate", "row.rate"),
    *(
        Column(name, title, "of_chains", lambda row: row.chains, number=True, quiet=True)
        for name, title in (
            ("calls_spent", "Calls spent"),
            ("round_trips", "Round trips"),
            ("abandoned", "Abandoned"),
        )
    ),
)  # fmt: skip
"""Failure rates by a property of calls, with what the chains of each value cost."""


def _all_rates(ask: Ask) -> RowStream:
    """Return what the page shows: rates by tool and property, or what failures alone have."""
    if (kind := chosen_kind(ask)) is not None:
        return BY_CODE.stream(queries.frequency(ask.conn, ask.scope, kind[1]).rows)
    by = chosen_key(ask)
    columns = (
        Column("tool", file={"tool": ""}),
        Column("name", file={by: ""}),
        Column("calls", file={"calls": "integer"}),
        Column("failures", file={"failures": "integer"}),
        Column("rate", file=rate_columns("failure_rate")),
        Column("worst", file={"worst": "boolean"}),
    )
    return Table(*columns).stream(breakdown(ask.conn, ask.scope, by).cells)


BY_TOOL: Final = Table(file="breakdown", rows=_all_rates)
"""The matrix of the page, as a file: its columns on the page are values."""
_WORDINGS: Final = Table(replace(BY_CODE.columns[0], cell="sentence_behind"), *BY_CODE.columns[1:])


@router.get("/breakdown", name="breakdown")
def breakdown_page(ask: Asked, page: Number = 1, tools: Number = 1) -> Response:
    """Render one page of the values, and one of the tools by them."""
    kind = chosen_kind(ask)
    if kind is not None:
        return _page(ask, _of_failures(ask, *kind, page))
    by = chosen_key(ask)
    found = breakdown(ask.conn, ask.scope, by)
    columns = tuple(group.name for group in found.groups[:COLUMNS])
    groups, of_groups = one_page(ask, page, found.groups, LINES)
    named, of_tools = one_page(ask, tools, found.tools, TOOLS, name="tools", at="matrix-title")
    context = replace(
        _empty(ask, by, "" if by == BREAKDOWNS[0] else by),
        lines=RATES.drawn(lines_of(ask, groups, by), titles={"name": by.capitalize()}),
        columns=tuple(name or NONE for name in columns),
        rows=_rows(ask, found, named, columns),
        groups={"values": len(found.groups), "tools": len(found.tools)},
        pages={"values": of_groups, "tools": of_tools},
    )
    return _page(ask, context)


def _page(ask: Ask, context: BreakdownContext) -> Response:
    return ask.render(context, title="Break down")


def _of_failures(ask: Ask, name: str, kind: queries.Dimension, page: int) -> BreakdownContext:
    """Return the page of what failures alone have."""
    found = queries.frequency(ask.conn, ask.scope, kind)
    rows, pages = one_page(ask, page, found.rows, LINES)
    return replace(
        _empty(ask, name, kind),
        kinds=(_WORDINGS if kind == "message" else BY_CODE).drawn(
            frequency_lines(ask, replace(found, rows=rows), CODES if kind == "code" else None),
            tuple(BY_CODE.titles),
            titles={"name": name.capitalize()},
        ),
        denominator=found.denominator,
        groups={"values": found.groups, "tools": 0},
        pages={"values": pages, "tools": {}},
    )


def _empty(ask: Ask, name: str, wanted: str) -> BreakdownContext:
    """Return the page of what is called *name* and *wanted* by the address, without its rows."""
    tabs: dict[str, str] = {each: "" if each == BREAKDOWNS[0] else each for each in BREAKDOWNS}
    tabs |= _kinds(ask)
    return BreakdownContext(
        view=ask.view("/breakdown", **({"by": wanted} if wanted else {})),
        by=name,
        tabs=tuple(
            Link(each.capitalize(), ask.link("/breakdown", by=by), each == name)
            for each, by in tabs.items()
        ),
        lines=RATES.drawn(()),
        kinds=BY_CODE.drawn(()),
        denominator="",
        columns=(),
        rows=(),
        groups={},
        pages={},
        minimum=MINIMUM_CALLS,
        csv=ask.export("/breakdown.csv", by=wanted),
    )


def _kinds(ask: Ask) -> dict[str, queries.Dimension]:
    """Return what failures alone have, as far as the reader may see it."""
    may = sees(ask.scope, "text_llm")
    return {name: kind for name, kind in KINDS.items() if may or kind != "message"}


def chosen_kind(ask: Ask) -> tuple[str, queries.Dimension] | None:
    """Return the name and the dimension, if the address breaks down by what failures alone have."""
    wanted = ask.request.query_params.get("by", "")
    return next((each for each in _kinds(ask).items() if each[1] == wanted), None)


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


def _rows(
    ask: Ask, found: Breakdown, tools: Sequence[str], columns: Sequence[str]
) -> tuple[BreakdownRow, ...]:
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
        for tool in tools
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
