"""``projects``: which there are, their names, and how one goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

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

__all__ = ["register"]

_projects = typer.Typer(no_args_is_help=True, help="List, make, rename, set and delete projects.")


def register(app: typer.Typer) -> None:
    """Add the commands to *app*."""
    app.add_typer(_projects, name="projects")


@_projects.command("list")
def list_(context: typer.Context, database_url: DatabaseOption = None) -> None:
    """List the names of all projects, one on each line."""
    from toolfault_collector.admin.projects import list_projects
    from toolfault_collector.storage.database.engine import read_connection

    with (
        open_database(context, database_url, create=False) as engine,
        read_connection(engine) as conn,
    ):
        for each in list_projects(conn):
            typer.echo(each.name)


@_projects.command("create")
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the project.")],
    database_url: DatabaseOption = None,
) -> None:
    """Make a project; `keys create` and `import` do it, too."""
    from toolfault_collector.admin.projects import ensure_project
    from toolfault_collector.storage.database.engine import write_transaction

    with (
        open_database(context, database_url, create=True) as engine,
        write_transaction(engine) as conn,
    ):
        try:
            ensure_project(conn, name)
        except ValueError as error:
            raise WronglyUsed(f"{error}.") from None


@_projects.command("rename")
def rename(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name it has.")],
    new_name: Annotated[str, typer.Argument(help="Name it gets.")],
    database_url: DatabaseOption = None,
) -> None:
    """Give a project another name; its keys stay valid."""
    from toolfault_collector.admin.audit import note
    from toolfault_collector.admin.projects import rename_project
    from toolfault_collector.storage.database.engine import write_transaction

    with (
        open_database(context, database_url, create=False) as engine,
        write_transaction(engine) as conn,
    ):
        number = _number(conn, name)
        try:
            rename_project(conn, number, new_name)
        except ValueError as error:
            raise WronglyUsed(f"{error}.") from None
        note(conn, "project_renamed", actor=actor(), project_id=number, before=name, after=new_name)


@_projects.command("soft-rules")
def soft_rules(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the project.")],
    off: Annotated[
        list[str] | None, typer.Option("--off", metavar="RULE", help="Switch this rule off.")
    ] = None,
    on: Annotated[
        list[str] | None, typer.Option("--on", metavar="RULE", help="Switch this rule on again.")
    ] = None,
    database_url: DatabaseOption = None,
) -> None:
    """List or switch the rules by which a result that reads like a failure counts as one.

    A change counts for what arrives after it; what is stored stays as it is.
    """
    from toolfault_collector.admin.projects import lock_project
    from toolfault_collector.clock import format_time, now_us
    from toolfault_collector.otlp.soft_rules import soft_rules_of, switch_soft_rules, switched_off
    from toolfault_collector.storage.database.engine import write_transaction

    with (
        open_database(context, database_url, create=False) as engine,
        write_transaction(engine) as conn,
    ):
        number = _number(conn, name)
        if off or on:
            lock_project(conn, number)
            wanted = (switched_off(conn, number) | set(off or ())) - set(on or ())
            unknown = set(on or ()) - {each.name for each in soft_rules_of(conn, number)}
            try:
                switch_soft_rules(conn, number, wanted | unknown, actor=actor(), now=now_us())
            except ValueError as error:
                raise WronglyUsed(str(error)) from None
        for rule in soft_rules_of(conn, number):
            since = "" if rule.since is None else f"since {format_time(rule.since)}"
            state = "on" if rule.on else "off"
            typer.echo(f"{rule.name:18} {state:3}  {since:33} {rule.meaning}".rstrip())


@_projects.command("delete")
def delete(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the project.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    database_url: DatabaseOption = None,
) -> None:
    """Delete a project with its keys and everything that is stored of it. There is no way back."""
    from toolfault_collector.admin.audit import note
    from toolfault_collector.admin.projects import delete_project
    from toolfault_collector.storage.database.engine import read_connection, write_transaction

    with open_database(context, database_url, create=False) as engine:
        with read_connection(engine) as conn:
            number = _number(conn, name)
        if not yes:
            typed = typer.prompt(f"Type the name of the project to delete it ({name})", err=True)
            if typed != name:
                raise Failed("Nothing was deleted: that is not its name.")
        removed = delete_project(engine, number)
        with write_transaction(engine) as conn:
            note(conn, "project_deleted", actor=actor(), name=name, rows=removed)
        typer.echo(f"Deleted the project {name}: {removed:,} rows.", err=True)


def _number(conn: Connection, name: str) -> int:
    from toolfault_collector.admin.projects import find_project

    found = find_project(conn, name)
    if found is None:
        raise WronglyUsed(f"There is no project {name!r}; see `toolfault projects list`.")
    return found
