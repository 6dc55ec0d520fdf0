"""``summary``, ``errors`` and ``chains``: what scripts read. No default window, no row limit."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from toolfault_dashboard.cli.coding_agents import CursorOption, print_answer
from toolfault_dashboard.cli.options import (
    DatabaseOption,
    ProjectOption,
    QueryArgument,
    WronglyUsed,
    reading,
)

if TYPE_CHECKING:
    from toolfault_dashboard.exports import Format
    from toolfault_dashboard.queries import RowStream

__all__ = ["ExcelOption", "OutputOption", "RawOption", "export", "register"]

FormatOption = Annotated[
    str,
    typer.Option("--format", help="csv, json (one array), ndjson (one object a line) or parquet."),
]
OutputOption = Annotated[
    Path | None, typer.Option("-o", "--output", help="File to write; by default standard output.")
]
RawOption = Annotated[
    bool, typer.Option("--raw", help="CSV: no guard against formulas; never for a spreadsheet.")
]
ExcelOption = Annotated[bool, typer.Option("--excel", help="CSV: begin with a byte order mark.")]


def register(app: typer.Typer) -> None:
    """Add the commands to *app*."""
    app.command("summary")(summary)
    app.command("errors")(errors)
    app.command("chains")(chains)


def summary(
    context: typer.Context,
    query: QueryArgument = None,
    project: ProjectOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    format: Annotated[  # noqa: A002 - the option
        str, typer.Option("--format", help="table, json or agent.")
    ] = "table",
    cursor: CursorOption = "",
    database_url: DatabaseOption = None,
) -> None:
    """Count calls, failures, chains and round trips."""
    from toolfault_dashboard import queries

    if format not in ("table", "json", "agent"):
        raise WronglyUsed("Write --format as one of table, json, agent.")
    if format == "agent":
        given = {"query": " ".join(query or ()), "cursor": cursor}
        print_answer(context, database_url, project, "overview", given)
        return
    with reading(context, database_url, project, query) as (conn, scope):
        if as_json or format == "json":
            found = queries.summary(conn, scope)
            typer.echo(json.dumps(asdict(found), ensure_ascii=False))
            return
        overview = queries.overview(conn, scope)
    from toolfault_dashboard.cli.tables import print_overview

    print_overview(overview)


def errors(  # noqa: PLR0913, PLR0917 - one argument per option
    context: typer.Context,
    query: QueryArgument = None,
    project: ProjectOption = None,
    format: Annotated[  # noqa: A002 - the option
        str,
        typer.Option(
            "--format",
            help="csv, json (one array), ndjson (one object a line), parquet or agent.",
        ),
    ] = "csv",
    output: OutputOption = None,
    raw: RawOption = False,
    excel: ExcelOption = False,
    cursor: CursorOption = "",
    database_url: DatabaseOption = None,
) -> None:
    """Write every failure of the query, newest first; --format agent writes a page of them."""
    from toolfault_dashboard import queries

    if format == "agent":
        given = {"query": " ".join(query or ()), "cursor": cursor}
        print_answer(context, database_url, project, "search", given)
        return
    chosen = _format(format, "agent")
    with reading(context, database_url, project, query) as (conn, scope):
        export(queries.iter_failures(conn, scope), chosen, output, raw=raw, excel=excel)


def chains(
    context: typer.Context,
    query: QueryArgument = None,
    project: ProjectOption = None,
    format: FormatOption = "csv",  # noqa: A002 - the option
    output: OutputOption = None,
    raw: RawOption = False,
    excel: ExcelOption = False,
    database_url: DatabaseOption = None,
) -> None:
    """Write every chain that a failure of the query opened, newest first."""
    from toolfault_dashboard import queries

    chosen = _format(format)
    with reading(context, database_url, project, query) as (conn, scope):
        export(queries.iter_chains(conn, scope), chosen, output, raw=raw, excel=excel)


def export(stream: RowStream, chosen: Format, output: Path | None, **how: bool) -> None:
    """Write *stream* to *output*, or to standard output where that is None."""
    from toolfault_dashboard.exports import write

    with _target(output) as target:
        for chunk in write(stream, chosen, **how):
            target.write(chunk)


def _format(name: str, *more: str) -> Format:
    from toolfault_dashboard.exports import FORMATS

    for known in FORMATS:
        if name == known:
            return known
    raise WronglyUsed(f"Write --format as one of {', '.join((*FORMATS, *more))}.")


@contextmanager
def _target(path: Path | None) -> Iterator[BinaryIO | Any]:
    """Yield where to write. A file appears under its name only when it is complete."""
    if path is None or str(path) == "-":
        try:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        except BrokenPipeError:  # the reader (head, less) has what it wanted
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        yield file
    partial.replace(path)
