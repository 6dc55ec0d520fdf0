"""``rejects``: events that were refused, and another try for them."""

from __future__ import annotations

from typing import Annotated

import typer

from toolfault_dashboard.cli.options import (
    DatabaseOption,
    ProjectOption,
    actor,
    open_database,
    project_id,
)

__all__ = ["register"]

_rejects = typer.Typer(no_args_is_help=True, help="See refused events, and try them again.")

CodeOption = Annotated[
    str | None, typer.Option("--code", help="Only those that were refused with this code.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to *app*."""
    app.add_typer(_rejects, name="rejects")


@_rejects.command("list")
def list_(
    context: typer.Context,
    code: CodeOption = None,
    project: ProjectOption = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Most events to list.")] = 50,
    database_url: DatabaseOption = None,
) -> None:
    """List refused events, oldest first, as they were kept: redacted and cut."""
    from toolfault_collector.clock import format_time
    from toolfault_collector.storage.database.engine import read_connection
    from toolfault_collector.storage.rejects import kept_rejects
    from toolfault_dashboard.cli.tables import print_table

    with open_database(context, database_url, create=False) as engine:
        with read_connection(engine) as conn:
            number = project_id(conn, project)
        kept = kept_rejects(engine, project_id=number, code=code, after=0, limit=limit)
    print_table(
        "Rejected",
        ["received", "code", "event"],
        [[format_time(each.received_at)[:19] + "Z", each.code, each.body] for each in kept],
    )


@_rejects.command("retry")
def retry(
    context: typer.Context,
    code: CodeOption = None,
    project: Annotated[str | None, typer.Option("--project", help="Only this project.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what could be stored.")
    ] = False,
    database_url: DatabaseOption = None,
) -> None:
    """Store the refused events that this version understands; run it after an upgrade."""
    from toolfault_collector.admin.audit import note
    from toolfault_collector.admin.reingest import retry_rejects
    from toolfault_collector.storage.database.engine import read_connection, write_transaction

    with open_database(context, database_url, create=False) as engine:
        number = None
        if project is not None:
            with read_connection(engine) as conn:
                number = project_id(conn, project)
        done = retry_rejects(engine, project_id=number, code=code, dry_run=dry_run)
        if done.accepted and not dry_run:
            with write_transaction(engine) as conn:
                note(
                    conn,
                    "rejects_retried",
                    actor=actor(),
                    project_id=number,
                    events=done.accepted,
                )
    said = "Would store" if dry_run else "Stored"
    typer.echo(
        f"{said} {done.accepted} events; {done.duplicate} were stored already,"
        f" {done.refused} are refused as before.",
        err=True,
    )
