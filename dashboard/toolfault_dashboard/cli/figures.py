"""``table``: every table of the dashboard, on the terminal or as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolfault_dashboard.cli.options import (
    DatabaseOption,
    ProjectOption,
    QueryArgument,
    WronglyUsed,
    reading,
)
from toolfault_dashboard.cli.reports import ExcelOption, OutputOption, RawOption, export

if TYPE_CHECKING:
    from toolfault_dashboard.exports import TableName
    from toolfault_dashboard.queries import RowStream

__all__ = ["register"]

MOST_ROWS = 50
"""Rows that a terminal shows; files have all."""

_FIRST: dict[str, tuple[str, ...]] = {
    "failures": ("occurred_at", "tool", "code", "field", "chain_outcome"),
    "issues": ("occurred_at", "tool", "field", "code", "expected", "received_type"),
    "chains": ("started_at", "tool", "outcome", "failures", "calls_spent", "first_code"),
    "changes": ("occurred_at", "tool", "label", "kind"),
    "kinds": ("state", "owner", "tool", "code", "fields", "failures", "calls_spent"),
    "fixes": ("title", "saved", "cost", "failures", "abandoned", "mended_by"),
    "tools": ("name", "failures", "calls_spent", "round_trips", "abandoned", "rate"),
    "messages": ("tool", "code", "failures", "recovery", "message"),
}
"""Columns that a narrow terminal shows first, where these are not the first ones of the file."""


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("table")(table)


def table(  # noqa: PLR0913, PLR0917 - one argument per option
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Its name, such as codes, fixes or messages.")],
    query: QueryArgument = None,
    project: ProjectOption = None,
    format: Annotated[  # noqa: A002 - the option
        str, typer.Option("--format", help="table, csv, json, ndjson or parquet.")
    ] = "table",
    output: OutputOption = None,
    raw: RawOption = False,
    excel: ExcelOption = False,
    wide: Annotated[
        bool, typer.Option("--wide", help="All columns, also where the terminal is narrow.")
    ] = False,
    database_url: DatabaseOption = None,
) -> None:
    """Write one table: frequencies, messages, fixes, round trips, changes, lists.

    Rows are those of the dashboard, the API and its exports for the same query.
    """
    from toolfault_dashboard.exports import FORMATS, named_table

    chosen = _named(name)
    form = next((known for known in FORMATS if known == format), None)
    if form is None and format != "table":
        raise WronglyUsed(f"Write --format as one of table, {', '.join(FORMATS)}.")
    with reading(context, database_url, project, query) as (conn, scope):
        rows = named_table(conn, scope, chosen)
        if form is None:
            _show(chosen, rows, wide=wide)
        else:
            export(rows, form, output, raw=raw, excel=excel)


def _named(name: str) -> TableName:
    from toolfault_dashboard.exports import TABLE_NAMES

    for known in TABLE_NAMES:
        if name.replace("-", "_") == known:
            return known
    raise WronglyUsed(f"There is no such table; tables are {', '.join(TABLE_NAMES)}.")


def _show(name: str, stream: RowStream, *, wide: bool) -> None:
    from itertools import islice

    from toolfault_collector.clock import format_time
    from toolfault_dashboard.cli.tables import fitting, print_table

    rates = {column for column in stream.columns if f"{column}_high" in stream.columns}
    parts = {f"{rate}_{part}" for rate in rates for part in ("low", "high", "n")}
    rows = [dict(zip(stream.columns, each, strict=True)) for each in islice(stream.rows, MOST_ROWS)]

    def cell(row: dict[str, Any], column: str) -> object:
        value = row[column]
        if value is None:
            return None
        if column in stream.times:
            return f"{format_time(value)[:19]}Z"
        if column in rates:
            return _interval(value, *(row.get(f"{column}_{part}") for part in ("low", "high", "n")))
        return value

    columns = [
        column
        for column in dict.fromkeys((*_FIRST.get(name, ()), *stream.columns))
        if column not in parts | {"query"}
        and (not rows or any(row[column] is not None and row[column] != "" for row in rows))
    ]
    shown = [[cell(row, column) for column in columns] for row in rows]
    fit = len(columns) if wide else fitting(columns, shown)
    print_table(name, columns[:fit], [row[:fit] for row in shown])
    if fit < len(columns):
        typer.echo(f"{len(columns) - fit} more columns; --wide shows them.", err=True)
    if len(rows) == MOST_ROWS:
        typer.echo(f"The first {MOST_ROWS} rows; --format csv writes all.", err=True)


def _interval(value: float, low: float | None, high: float | None, n: int | None) -> str:
    if low is None or high is None:
        return f"{value:.2f}"
    if n is None:
        return f"{value:.1f} ({low:.1f} to {high:.1f})"
    return f"{value:.1%} ({low:.1%} to {high:.1%} of {n})"
