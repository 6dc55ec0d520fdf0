"""``import``: real history out of transcripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolfault_dashboard.cli.options import (
    DatabaseOption,
    Failed,
    ProjectOption,
    WronglyUsed,
    open_database,
    project_to_fill,
)

if TYPE_CHECKING:
    from toolfault_collector.importers import ImportReport, Progress

__all__ = ["register"]

MOST_PROBLEMS = 20
"""Problems that are told one by one; the rest is counted."""


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("import")(import_)


def import_(
    context: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH...", help="Files, and directories read recursively."),
    ],
    format: Annotated[  # noqa: A002 - the option
        str, typer.Option("--format", help="Format of the files; auto recognises it.")
    ] = "auto",
    project: ProjectOption = None,
    database_url: DatabaseOption = None,
) -> None:
    """Import transcripts; importing the same file again changes nothing."""
    from toolfault_collector.importers import AUTO, FORMATS, import_paths

    known = [AUTO, *(each.name for each in FORMATS)]
    if format not in known:
        raise WronglyUsed(f"Write --format as one of {', '.join(known)}.")
    for path in paths:
        if not path.exists():
            raise Failed(f"There is no file or directory {path}; nothing was imported.")
    with open_database(context, database_url, create=True) as engine:
        name, number = project_to_fill(engine, project)
        with _progress() as on_progress:
            report = import_paths(engine, number, paths, format=format, on_progress=on_progress)
    _say(report, name)
    if report.errors:
        raise Failed(f"{len(report.errors)} parts could not be imported; all others were.")


@contextmanager
def _progress() -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[calls]} calls", markup=False),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Importing", total=None, calls=0)

        def show(progress: Progress) -> None:
            bar.update(
                task,
                description=f"File {progress.file} of {progress.files}",
                completed=progress.bytes_done,
                total=progress.bytes_total,
                calls=progress.calls,
            )

        yield show


def _say(report: ImportReport, project: str) -> None:
    from toolfault_dashboard.cli.tables import cell

    for problem in report.problems[:MOST_PROBLEMS]:
        where = f"{problem.path}{f': {problem.position}' if problem.position else ''}"
        typer.echo(cell(f"{problem.severity}: {where}: {problem.message}").plain, err=True)
    more = len(report.problems) - MOST_PROBLEMS
    if more > 0:
        typer.echo(f"and {more} more", err=True)
    typer.echo(
        f"{report.files} files, {report.conversations} conversations, {report.calls} calls,"
        f" {report.failures} failures read; {report.accepted} events new in project {project},"
        f" {report.duplicate} there already.",
        err=True,
    )
