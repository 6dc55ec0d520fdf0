"""``report``: the week as a file one can mail."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolfault_dashboard.cli.options import (
    DatabaseOption,
    ProjectOption,
    QueryArgument,
    WronglyUsed,
    reading,
)

__all__ = ["register"]

_report = typer.Typer(no_args_is_help=True, help="Write reports that can be mailed.")


def register(app: typer.Typer) -> None:
    """Add the commands to *app*."""
    app.add_typer(_report, name="report")


@_report.callback()
def _reports() -> None:
    """Write reports that can be mailed."""


@_report.command("weekly")
def weekly(
    context: typer.Context,
    query: QueryArgument = None,
    format: Annotated[  # noqa: A002 - the option
        str, typer.Option("--format", help="html, markdown or csv.")
    ] = "markdown",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="File to write; by default standard output."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", help="End of the week: a UTC date; by default now.")
    ] = None,
    url: Annotated[
        str, typer.Option("--url", help="Address of the dashboard: rows then link to it.")
    ] = "",
    project: ProjectOption = None,
    database_url: DatabaseOption = None,
) -> None:
    """Write the last seven days beside the seven before them."""
    from toolfault_dashboard import queries
    from toolfault_dashboard.exports.weekly import REPORT_FORMATS, empty_week, weekly_report

    chosen = next((known for known in REPORT_FORMATS if known == format), None)
    if chosen is None:
        raise WronglyUsed(f"Write --format as one of {', '.join(REPORT_FORMATS)}.")
    with reading(context, database_url, project, query) as (conn, scope):
        end = scope.now if until is None else queries.week_end(until, scope.now)
        if end is None:
            raise WronglyUsed("Write --until as a date such as 2026-11-01.")
        week = queries.weekly(conn, scope, end=end)
        name = next(row.name for row in queries.projects(conn) if row.id == scope.project_id)
    text = weekly_report(week, name, chosen, address=url.rstrip("/"))
    if chosen == "csv" and (note := empty_week(week)):
        typer.echo(note, err=True)
    if output is None:
        typer.echo(text, nl=False)
    else:
        # newline="": the line ends of CSV are part of its format.
        with output.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
