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
MOST_RECOGNISED = 10
"""Problems and recognised files that are told one by one; the rest is counted."""


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("import")(import_)


def import_(
    context: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Files, archives, directories read recursively; - is standard input.",
        ),
    ],
    format: Annotated[  # noqa: A002 - the option
        str, typer.Option("--format", help="Format of the files; auto recognises it.")
    ] = "auto",
    project: ProjectOption = None,
    database_url: DatabaseOption = None,
) -> None:
    """Import transcripts; importing the same file again changes nothing."""
    from toolfault_collector.admin.projects import list_projects, remove_unused_project
    from toolfault_collector.importers import AUTO, FORMATS, STDIN, import_paths
    from toolfault_collector.storage.database.engine import read_connection, write_transaction
    from toolfault_dashboard.formats import plural

    known = [AUTO, *(each.name for each in FORMATS)]
    if format not in known:
        raise WronglyUsed(f"Write --format as one of {', '.join(known)}.")
    for path in paths:
        if not path.exists() and path != STDIN:
            raise Failed(f"There is no file or directory {path}; nothing was imported.")
    with open_database(context, database_url, create=True) as engine:
        with read_connection(engine) as conn:
            before = {each.id for each in list_projects(conn)}
        name, number = project_to_fill(engine, project)
        with _progress() as on_progress:
            report = import_paths(engine, number, paths, format=format, on_progress=on_progress)
        if not report.files and number not in before:
            with write_transaction(engine) as conn:
                remove_unused_project(conn, number)
    _say(report, name)
    if not report.files:
        raise Failed(
            "Nothing was imported: no file is a transcript that toolfault recognises. If you know"
            " their format, name it: toolfault import --format NAME PATH, where NAME is one of"
            f" {', '.join(known[1:])}."
        )
    if report.errors:
        raise Failed(
            f"{plural(len(report.errors), 'part')} could not be imported; all others were."
        )


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
    console = Console(stderr=True)
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
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
    from toolfault_dashboard.formats import count, plural

    for file in report.recognised[:MOST_RECOGNISED]:
        held = f"{plural(file.calls, 'call')}, {plural(file.failures, 'failure')}"
        text = f"{file.path}: recognised as {file.title}: {file.why}; {held}"
        typer.echo(cell(text).plain, err=True)
    _say_more(len(report.recognised) - MOST_RECOGNISED, "file")
    for problem in report.problems[:MOST_PROBLEMS]:
        where = f"{problem.path}{f': {problem.position}' if problem.position else ''}"
        typer.echo(cell(f"{problem.severity}: {where}: {problem.message}").plain, err=True)
    _say_more(len(report.problems) - MOST_PROBLEMS, "problem")
    if not report.files:
        return
    read = ", ".join(
        plural(number, noun)
        for number, noun in (
            (report.files, "file"),
            (report.conversations, "conversation"),
            (report.calls, "call"),
            (report.failures, "failure"),
        )
    )
    typer.echo(
        f"Read {read}. Project {project}: {plural(report.accepted, 'new event')},"
        f" {count(report.duplicate)} stored before.",
        err=True,
    )


def _say_more(more: int, noun: str) -> None:
    from toolfault_dashboard.formats import plural

    if more > 0:
        typer.echo(f"and {plural(more, noun)} more", err=True)
