"""``db``: the schema of the database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolfault_dashboard.cli.care import prune
from toolfault_dashboard.cli.options import (
    DatabaseOption,
    EventsOption,
    Failed,
    WronglyUsed,
    actor,
    database_url,
    open_events_of,
)

if TYPE_CHECKING:
    from sqlalchemy import Engine

__all__ = ["register"]

_db = typer.Typer(no_args_is_help=True, help="Upgrade, check, back up and prune the database.")


def register(app: typer.Typer) -> None:
    """Add the commands to *app*."""
    _db.command("prune")(prune)
    app.add_typer(_db, name="db")


def _engine(context: typer.Context, own: str | None) -> Engine:
    import toolfault_migrations as migrations
    from toolfault_collector.storage.database.engine import open_engine
    from toolfault_collector.storage.database.schema import refuse_foreign

    engine = open_engine(database_url(context, own))
    context.call_on_close(engine.dispose)  # else `restore` would find it in use
    refuse_foreign(migrations.current(engine))
    return engine


def _note(engine: Engine, action: str, **detail: Any) -> None:
    from toolfault_collector.admin.audit import note
    from toolfault_collector.storage.database.engine import write_transaction

    with write_transaction(engine) as conn:
        note(conn, action, actor=actor(), **detail)


@_db.command("upgrade")
def upgrade(
    context: typer.Context,
    sql: Annotated[
        bool, typer.Option("--sql", help="Only print the SQL, for somebody else to run.")
    ] = False,
    database_url: DatabaseOption = None,
    events_url: EventsOption = None,
) -> None:
    """Bring the database to the schema of this version (an SQLite file is copied first)."""
    import toolfault_migrations as migrations
    from toolfault_collector.storage.database.schema import prepare

    engine = _engine(context, database_url)
    if sql:
        migrations.print_upgrade(engine)
        return
    before = migrations.current(engine)
    prepare(engine, migrate=True)
    after = migrations.current(engine)
    if before == after:
        typer.echo(f"The schema is {after} already.", err=True)
    else:
        _note(engine, "database_upgraded", schema=after)
        typer.echo(f"Upgraded the schema from {before or 'none'} to {after}.", err=True)
    with open_events_of(events_url) as events:
        if events is not None:
            from toolfault_collector.clickhouse.database import prepare_events

            prepare_events(events)
            typer.echo("ClickHouse has the schema of this version.", err=True)


@_db.command("downgrade")
def downgrade(
    context: typer.Context,
    revision: Annotated[str, typer.Argument(help="Revision to go back to.")],
    database_url: DatabaseOption = None,
) -> None:
    """Take the database back to an older schema; columns that it lacks are lost."""
    import toolfault_migrations as migrations

    engine = _engine(context, database_url)
    if revision != "base" and not migrations.knows(revision):
        raise Failed(f"There is no schema {revision!r}; see `toolfault db current`.")
    migrations.downgrade(engine, revision)
    typer.echo(f"The schema is {migrations.current(engine) or 'none'} now.", err=True)


@_db.command("current")
def current(
    context: typer.Context,
    database_url: DatabaseOption = None,
    events_url: EventsOption = None,
) -> None:
    """Print the schema of the database and the one this version needs."""
    import toolfault_migrations as migrations

    found = migrations.current(_engine(context, database_url))
    typer.echo(f"{found or 'none'} (this version needs {migrations.HEAD})")
    with open_events_of(events_url) as events:
        if events is not None:
            from toolfault_collector.clickhouse.database import schema_of_events
            from toolfault_collector.clickhouse.tables import DDL

            with events.connect() as conn:
                there = schema_of_events(conn)
            typer.echo(f"ClickHouse: {there or 'none'} (this version needs {len(DDL)})")


@_db.command("backup")
def backup(
    context: typer.Context,
    target: Annotated[Path, typer.Argument(metavar="FILE", help="New file to write.")],
    database_url: DatabaseOption = None,
) -> None:
    """Copy the SQLite database while it is in use, and check the copy."""
    from toolfault_collector.admin.backup import backup as copy

    made = copy(_engine(context, database_url), target)
    typer.echo(
        f"Wrote {made.path}: {made.calls} calls, schema {made.schema}, {made.size} bytes.", err=True
    )


@_db.command("restore")
def restore(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(metavar="FILE", help="Backup to put back.")],
    database_url: DatabaseOption = None,
) -> None:
    """Put a backup in the place of the SQLite database; stop the server first."""
    import toolfault_migrations as migrations
    from toolfault_collector.admin.backup import restore as put_back
    from toolfault_dashboard.cli.options import database_url as chosen

    made = put_back(source, chosen(context, database_url))
    if made.schema == migrations.HEAD:
        _note(_engine(context, database_url), "database_restored", calls=made.calls)
    typer.echo(f"Restored {made.path}: {made.calls} calls, schema {made.schema}.", err=True)


@_db.command("check")
def check(
    context: typer.Context,
    database_url: DatabaseOption = None,
    events_url: EventsOption = None,
) -> None:
    """Say whether the database has exactly the tables this version needs; exit code 1 if not."""
    import toolfault_migrations as migrations
    from toolfault_collector.clickhouse.outbox import TABLES
    from toolfault_collector.storage.tables import metadata

    engine = _engine(context, database_url)
    found, wanted = migrations.current(engine), migrations.HEAD
    if found != wanted:
        raise Failed(
            f"The database has schema {found or 'none'}, this version needs {wanted};"
            " run `toolfault db upgrade`."
        )
    differences = migrations.check(engine, metadata, beside=TABLES)
    if differences:
        raise Failed(f"The database differs from its schema: {'; '.join(differences)}.")
    typer.echo(f"The database has schema {found} and differs in nothing.", err=True)
    with open_events_of(events_url) as events:
        if events is not None:
            from toolfault_collector.clickhouse.database import missing_columns

            with events.connect() as conn:
                missing = missing_columns(conn)
            if missing:
                raise Failed(
                    f"ClickHouse lacks {', '.join(missing[:5])}; run `toolfault db upgrade`."
                )
            typer.echo("ClickHouse has every column.", err=True)


@_db.command("copy-events")
def copy_events(
    context: typer.Context,
    database_url: DatabaseOption = None,
    events_url: EventsOption = None,
) -> None:
    """Copy what is stored to ClickHouse; a running server does that too, beside what arrives.

    Stopped and started again, it goes on where it was.
    """
    from toolfault_collector.clickhouse import outbox
    from toolfault_collector.clickhouse.database import prepare_events
    from toolfault_collector.clickhouse.shipper import Shipper

    engine = _engine(context, database_url)
    with open_events_of(events_url) as events:
        if events is None:
            raise WronglyUsed("Say where to with --events-url.")
        prepare_events(events)
        outbox.install_beside_writers(engine)
        shipper, rows = Shipper(engine, events), 0
        while part := shipper.ship():
            rows += part
            typer.echo(f"{rows:,} rows copied", err=True)
    typer.echo("Nothing is left to copy.", err=True)


@_db.command("forget-events")
def forget_events(context: typer.Context, database_url: DatabaseOption = None) -> None:
    """Go back to one database: note nothing for ClickHouse any more. Its tables stay there."""
    from toolfault_collector.clickhouse import outbox
    from toolfault_collector.storage.database.engine import write_transaction

    engine = _engine(context, database_url)
    with write_transaction(engine) as conn:
        if not outbox.is_installed(conn):
            raise Failed("Nothing is noted for ClickHouse.")
        outbox.remove(conn)
    _note(engine, "events_forgotten")
    typer.echo("Start the server without TOOLFAULT_EVENTS_URL now.", err=True)
