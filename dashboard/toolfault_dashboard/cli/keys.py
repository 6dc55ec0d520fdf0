"""``keys``: ingest keys for agents, read keys for scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from toolfault_dashboard.cli.options import (
    DatabaseOption,
    Failed,
    WronglyUsed,
    actor,
    open_database,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from toolfault_collector.admin.keys import ApiKey

__all__ = ["register"]

_keys = typer.Typer(no_args_is_help=True, help="Make, list, rotate and revoke API keys.")


def register(app: typer.Typer) -> None:
    """Add the commands to *app*."""
    app.add_typer(_keys, name="keys")


@_keys.command("create")
def create(
    context: typer.Context,
    project: Annotated[str, typer.Option("--project", help="Project; made if it is new.")],
    kind: Annotated[str, typer.Option("--kind", help="ingest or read.")],
    label: Annotated[str, typer.Option("--label", help="A note for the list.")] = "",
    database_url: DatabaseOption = None,
) -> None:
    """Make a key and print it alone on the last line; it cannot be shown again."""
    from toolfault_collector.admin.audit import note
    from toolfault_collector.admin.keys import create_key, shown
    from toolfault_collector.admin.projects import ensure_project
    from toolfault_collector.storage.database.engine import write_transaction

    chosen = _kind(kind)
    with open_database(context, database_url, create=True) as engine:
        with write_transaction(engine) as conn:
            try:
                number = ensure_project(conn, project)
            except ValueError as error:
                raise WronglyUsed(f"{error}.") from None
            token = create_key(conn, number, chosen, label=label)
            note(
                conn,
                "key_created",
                actor=actor(),
                project_id=number,
                kind=chosen,
                key=shown(token),
            )
        typer.echo(f"New {chosen} key of project {project}; it is shown only once:", err=True)
        typer.echo(token)


def _kind(name: str) -> Literal["ingest", "read"]:
    if name == "ingest":
        return "ingest"
    if name == "read":
        return "read"
    raise typer.BadParameter("Write --kind ingest or --kind read.")


@_keys.command("list")
def list_(
    context: typer.Context,
    project: Annotated[str | None, typer.Option("--project", help="Only of this project.")] = None,
    database_url: DatabaseOption = None,
) -> None:
    """List the keys: their beginnings, never the keys."""
    from toolfault_collector.admin.keys import list_keys
    from toolfault_collector.clock import format_time
    from toolfault_collector.storage.database.engine import read_connection
    from toolfault_dashboard.cli.options import project_id
    from toolfault_dashboard.cli.tables import print_table
    from toolfault_dashboard.queries import projects

    with (
        open_database(context, database_url, create=False) as engine,
        read_connection(engine) as conn,
    ):
        names = {row.id: row.name for row in projects(conn)}
        wanted = project_id(conn, project) if project is not None else None
        keys = list_keys(conn, wanted)

    def when(at: int | None) -> str | None:
        return None if at is None else format_time(at)[:19] + "Z"

    print_table(
        "API keys",
        ["id", "project", "kind", "begins with", "label", "created", "last used", "revoked"],
        [
            [
                key.id,
                names.get(key.project_id),
                key.kind,
                key.prefix,
                key.label,
                when(key.created_at),
                when(key.last_used_at),
                when(key.revoked_at),
            ]
            for key in keys
        ],
    )


@_keys.command("revoke")
def revoke(
    context: typer.Context,
    key: Annotated[str, typer.Argument(metavar="ID", help="Number in `toolfault keys list`.")],
    database_url: DatabaseOption = None,
) -> None:
    """Revoke a key by its number, its beginning or the key itself."""
    from toolfault_collector.admin.audit import note
    from toolfault_collector.admin.keys import revoke_key
    from toolfault_collector.storage.database.engine import write_transaction

    with open_database(context, database_url, create=False) as engine:
        with write_transaction(engine) as conn:
            found = _find(conn, key)
            changed = revoke_key(conn, found.id)
            if changed:
                note(
                    conn,
                    "key_revoked",
                    actor=actor(),
                    project_id=found.project_id,
                    key_id=found.id,
                )
        said = "Revoked" if changed else "Was already revoked:"
        typer.echo(f"{said} key {found.id} ({found.prefix}…).", err=True)


@_keys.command("rotate")
def rotate(
    context: typer.Context,
    key: Annotated[str, typer.Argument(metavar="ID", help="Number in `toolfault keys list`.")],
    keep_hours: Annotated[
        int, typer.Option("--keep-hours", min=0, help="How long the old key stays valid.")
    ] = 24,
    database_url: DatabaseOption = None,
) -> None:
    """Make a key in the place of another, which ends by itself once agents had time to change."""
    from toolfault_collector.admin.audit import note
    from toolfault_collector.admin.keys import rotate_key, shown
    from toolfault_collector.clock import MINUTE_US
    from toolfault_collector.storage.database.engine import write_transaction

    with open_database(context, database_url, create=False) as engine:
        with write_transaction(engine) as conn:
            found = _find(conn, key)
            token = rotate_key(conn, found.id, keep_us=keep_hours * 60 * MINUTE_US)
            if token is None:
                raise Failed("That key is revoked; make a new one with `toolfault keys create`.")
            note(
                conn,
                "key_rotated",
                actor=actor(),
                project_id=found.project_id,
                key_id=found.id,
                key=shown(token),
            )
        typer.echo(
            f"The old key ({found.prefix}…) is valid for {keep_hours} more hours."
            " The new one is shown only once:",
            err=True,
        )
        typer.echo(token)


def _find(conn: Connection, key: str) -> ApiKey:
    """Return the key that *key* means: its number, its beginning or itself."""
    from toolfault_collector.admin.keys import list_keys

    found = [
        each
        for each in list_keys(conn)
        if str(each.id) == key or (len(key) >= len(each.prefix) and key.startswith(each.prefix))
    ]
    if not found:
        raise Failed("There is no such key; see `toolfault keys list`.")
    if len(found) > 1:
        raise Failed("Several keys begin so; name one by its id.")
    return found[0]
