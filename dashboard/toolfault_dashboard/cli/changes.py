"""``change``: markers that say that something was changed here."""

from __future__ import annotations

from typing import Annotated

import typer

from toolfault_dashboard.cli.coding_agents import CursorOption, print_answer
from toolfault_dashboard.cli.options import (
    DatabaseOption,
    Failed,
    ProjectOption,
    QueryArgument,
    WronglyUsed,
    open_database,
    project_to_fill,
    reading,
)

__all__ = ["register"]

_change = typer.Typer(no_args_is_help=True, help="Record changes, to compare before and after.")


def register(app: typer.Typer) -> None:
    """Add the commands to *app*."""
    app.add_typer(_change, name="change")


@_change.command("list")
def list_(
    context: typer.Context,
    query: QueryArgument = None,
    detected: Annotated[
        bool,
        typer.Option(
            "--detected/--recorded",
            help="Also models, releases, schemas and variants seen for the first time.",
        ),
    ] = True,
    format: Annotated[  # noqa: A002 - the option
        str, typer.Option("--format", help="table or agent.")
    ] = "table",
    cursor: CursorOption = "",
    project: ProjectOption = None,
    database_url: DatabaseOption = None,
) -> None:
    """List the changes, newest first."""
    if format not in ("table", "agent"):
        raise WronglyUsed("Write --format as table or agent.")
    if format == "agent":
        given = {"query": " ".join(query or ()), "detected": detected, "cursor": cursor}
        print_answer(context, database_url, project, "changes", given)
        return
    from toolfault_collector.clock import format_time
    from toolfault_dashboard import queries
    from toolfault_dashboard.cli.tables import print_table

    with reading(context, database_url, project, query) as (conn, scope):
        found = queries.all_changes(conn, scope, detected=detected)
    print_table(
        "Changes",
        ["label", "tool", "kind", "when", "recorded by", "event id"],
        [
            [
                row.label,
                row.tool,
                row.kind,
                format_time(row.occurred_at)[:19] + "Z",
                "toolfault: first seen" if row.is_detected else row.source,
                row.event_id,
            ]
            for row in found
        ],
    )


@_change.command("record")
def record(
    context: typer.Context,
    label: Annotated[str, typer.Argument(help="What was changed.")],
    project: ProjectOption = None,
    tool: Annotated[str | None, typer.Option("--tool", help="The tool it is about.")] = None,
    at: Annotated[
        str | None, typer.Option("--at", help="When, in UTC: 2026-11-01T10:00 or 2d; default now.")
    ] = None,
    database_url: DatabaseOption = None,
) -> None:
    """Record a change and print its event id."""
    import uuid_utils

    from toolfault_collector.clock import format_time, now_us
    from toolfault_collector.storage.database.engine import write_transaction
    from toolfault_collector.storage.store import store_events
    from toolfault_dashboard.search import parse_moment

    now = now_us()
    moment = parse_moment(at) if at is not None else None
    if at is not None and moment is None:
        raise WronglyUsed("Write --at as a date such as 2026-11-01T10:00 or an age such as 2d.")
    event_id = str(uuid_utils.uuid7())
    event = {
        "type": "change",
        "event_id": event_id,
        "occurred_at": format_time(moment.resolve(now) if moment is not None else now),
        "label": label,
        "tool": tool,
        "kind": "manual",
    }
    with open_database(context, database_url, create=True) as engine:
        _, number = project_to_fill(engine, project)
        with write_transaction(engine) as conn:
            receipt = store_events(
                conn, number, [event], received_at=now, time_policy="import", source="cli"
            )
    if receipt.rejected:
        refused = receipt.rejected[0]
        raise Failed(f"The change was not recorded: {refused.code} at {refused.pointer}.")
    typer.echo(event_id)
