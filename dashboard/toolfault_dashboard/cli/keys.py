"""``keys``: ingest keys for agents, read keys for scripts."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from toolfault_dashboard.cli.options import DatabaseOption, Failed, WronglyUsed, open_database

__all__ = ["register"]

_keys = typer.Typer(no_args_is_help=True, help="Make, list and revoke API keys.")


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
    from toolfault_collector.engine import write_transaction
    from toolfault_collector.keys import create_key
    from toolfault_collector.projects import ensure_project

    chosen = _kind(kind)
    with open_database(context, database_url, create=True) as engine:
        with write_transaction(engine) as conn:
            try:
                token = create_key(conn, ensure_project(conn, project), chosen, label=label)
            except ValueError as error:
                raise WronglyUsed(f"{error}.") from None
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
    from toolfault_collector.clock import format_time
    from toolfault_collector.engine import read_connection
    from toolfault_collector.keys import list_keys
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
        "Keys",
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
    from toolfault_collector.engine import write_transaction
    from toolfault_collector.keys import list_keys, revoke_key

    with open_database(context, database_url, create=False) as engine:
        with write_transaction(engine) as conn:
            found = [
                each
                for each in list_keys(conn)
                if str(each.id) == key
                or (len(key) >= len(each.prefix) and key.startswith(each.prefix))
            ]
            if not found:
                raise Failed("There is no such key; see `toolfault keys list`.")
            if len(found) > 1:
                raise Failed("Several keys begin so; name one by its id.")
            changed = revoke_key(conn, found[0].id)
        said = "Revoked" if changed else "Was already revoked:"
        typer.echo(f"{said} key {found[0].id} ({found[0].prefix}…).", err=True)
