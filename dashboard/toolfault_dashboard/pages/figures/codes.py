"""Codes and fields: what fails, how often, and in which tool."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated as Doc
from typing import ClassVar, Final, Literal

from fastapi import APIRouter
from starlette.responses import Response

from toolfault_dashboard import queries
from toolfault_dashboard.charts import heat_level
from toolfault_dashboard.glossary import CODES
from toolfault_dashboard.pages.shared.ask import Ask, Asked
from toolfault_dashboard.pages.shared.columns import (
    ColumnChoice,
    choice,
    kept_columns,
    redirected,
)
from toolfault_dashboard.pages.shared.frame import Context, View
from toolfault_dashboard.pages.shared.lines import BY_CODE, BY_FIELD, exactly, frequency_lines
from toolfault_dashboard.pages.shared.numbered import Number, one_page
from toolfault_dashboard.pages.shared.over_time import TOP_CODES, TimeChart, time_chart
from toolfault_dashboard.pages.shared.table import Drawn
from toolfault_dashboard.queries.figures.matrices import matrix
from toolfault_dashboard.queries.figures.totals import totals

__all__ = ["router"]


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One cell of a heat map."""

    failures: Doc[int, "Failures."]
    level: Doc[int, "Step of the colour, 0 to 5."]
    href: Doc[str, "The failures behind it; empty for none."]


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One row of a heat map."""

    name: Doc[str, "The tool."]
    cells: Doc[tuple[HeatCell, ...], "One per column."]
    total: Doc[int, "Failures of the row."]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Failures by tool and code, or by tool and field."""

    by: Doc[str, "What the columns are: `code` or `field`."]
    columns: Doc[tuple[str, ...], "The codes or fields."]
    rows: Doc[tuple[HeatRow, ...], "The tools that have one of them."]
    hidden: Doc[int, "Failures in cells that are not shown."]
    csv: Doc[str, "All cells as CSV."]


@dataclass(frozen=True, slots=True)
class CodesContext(Context):
    """What `codes.html` shows."""

    template: ClassVar[str] = "codes.html"

    view: Doc[View, "The query bar."]
    failures: Doc[int, "Failures of the view."]
    codes: Doc[Drawn, "Codes, most failures first."]
    fields: Doc[Drawn, "Fields, most failures first."]
    denominator: Doc[str, "Which calls the rates are of."]
    fields_denominator: Doc[str, "Which calls the rates of the fields are of."]
    time: Doc[TimeChart | None, "Failures over time; None when no failure has a time."]
    heats: Doc[tuple[HeatMap, ...], "Tool by code and by field, where there are two of each."]
    groups: Doc[dict[str, int], "How many codes and fields there are in all."]
    pages: Doc[dict[str, dict[str, str]], "Addresses of the pages beside, of codes and fields."]
    columns: Doc[ColumnChoice, "Columns of both tables."]
    links: Doc[dict[str, str], "Addresses: csv, fields_csv."]


router = APIRouter()

ROWS: Final = 30
HEAT_TOOLS: Final = 12
HEAT_COLUMNS: Final = 8
_MAPS: Final[dict[Literal["code", "field"], str]] = {
    "code": "/matrix.csv",
    "field": "/field-matrix.csv",
}


@router.get("/codes", name="codes")
def codes(ask: Asked, page: Number = 1, fields: Number = 1) -> Response:
    """Render one page of the codes, and one of the fields."""
    if (answer := redirected(ask, "/codes", {"": BY_CODE})) is not None:
        return answer
    totals(ask.conn, ask.scope)  # by one statement what the tables, maps and chart below share
    by_code = queries.frequency(ask.conn, ask.scope, "code")
    by_field = queries.frequency(ask.conn, ask.scope, "field")
    code_rows, of_codes = one_page(ask, page, by_code.rows, ROWS, at="codes-title")
    field_rows, of_fields = one_page(
        ask, fields, by_field.rows, ROWS, name="fields", at="fields-title"
    )
    columns = choice(ask, BY_CODE)
    context = CodesContext(
        view=ask.view("/codes", **kept_columns(ask, BY_CODE)),
        failures=by_code.failures,
        codes=BY_CODE.drawn(
            frequency_lines(ask, replace(by_code, rows=code_rows), CODES), columns.shown
        ),
        fields=BY_FIELD.drawn(
            frequency_lines(ask, replace(by_field, rows=field_rows)),
            columns.shown,
        ),
        denominator=by_code.denominator,
        fields_denominator=by_field.denominator,
        time=time_chart(
            ask,
            queries.failures_over_time(ask.conn, ask.scope, top=TOP_CODES),
            queries.changes(ask.conn, ask.scope),
        ),
        heats=tuple(map_ for by in _MAPS if (map_ := _heat(ask, by)) is not None),
        groups={"codes": by_code.groups, "fields": by_field.groups},
        pages={"codes": of_codes, "fields": of_fields},
        columns=columns,
        links={
            "csv": ask.export("/codes.csv"),
            "fields_csv": ask.export("/fields.csv"),
        },
    )
    return ask.render(context, title="Codes and fields")


def _heat(ask: Ask, by: Literal["code", "field"]) -> HeatMap | None:
    """Return failures by tool and *by*, or None where one of either makes a map pointless."""
    found = matrix(ask.conn, ask.scope, by, tools=HEAT_TOOLS, columns=HEAT_COLUMNS)
    if len(found.tools) < 2 or len(found.columns) < 2:
        return None
    cells = {(cell.tool, cell.column): cell.failures for cell in found.cells}
    highest = max(cells.values())

    def cell(tool: str, column: str) -> HeatCell:
        failures = cells.get((tool, column), 0)
        query = exactly(exactly(ask.query, "tool", tool), by, column)
        href = ask.link("/failures", query) if failures else ""
        return HeatCell(failures, heat_level(failures, highest), href)

    return HeatMap(
        by=by,
        columns=found.columns,
        rows=tuple(
            HeatRow(
                line.tool, tuple(cell(line.tool, each) for each in found.columns), line.failures
            )
            for line in found.tools
            if any(cell.tool == line.tool for cell in found.cells)
        ),
        hidden=found.hidden,
        csv=ask.export(_MAPS[by]),
    )
