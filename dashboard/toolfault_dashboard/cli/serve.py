"""``serve``: collector and dashboard in one process; ``sign-in-link``: the way in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolfault_dashboard.cli.options import (
    DatabaseOption,
    Failed,
    WronglyUsed,
    actor,
    database_url,
    open_database,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from toolfault_collector.settings import Settings

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands to *app*."""
    app.command("serve")(serve)
    app.command("sign-in-link")(sign_in_link)


def serve(
    context: typer.Context,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            help="Address to listen on; by default 127.0.0.1. One that other machines reach is"
            " refused as long as nobody has an account or an unused sign-in link.",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=0, max=65_535, help="Port; by default 8321, 0 takes a free one."
        ),
    ] = None,
    migrate: Annotated[
        bool, typer.Option("--migrate", help="Migrate an older PostgreSQL schema at start.")
    ] = False,
    allow_public: Annotated[
        bool,
        typer.Option(
            "--allow-public",
            envvar="TOOLFAULT_ALLOW_PUBLIC",
            help="Make a sign-in link if nobody has an account, so that a --host that other"
            " machines reach is not refused. It has no effect once somebody has one.",
        ),
    ] = False,
    database_url: DatabaseOption = None,
) -> None:
    """Take events in and show them, in the foreground, until SIGTERM or Ctrl-C."""
    from toolfault_collector import log
    from toolfault_collector.clock import now_us
    from toolfault_collector.http.server import serve as run
    from toolfault_collector.runtime import Collector
    from toolfault_collector.storage.database.schema import prepare
    from toolfault_collector.storage.database.server_lock import only_server
    from toolfault_dashboard.access.signin import create_link, has_account, link_command, own_name
    from toolfault_dashboard.app import create_app, sign_in_url

    settings = _settings(context, database_url, host=host, port=port, migrate=migrate)
    log.configure(settings.log_level)
    collector = Collector(settings)
    engine = collector.engine

    def say(url: str) -> None:
        address = _reachable(url)
        link = sign_in_url(settings, engine, address, now=now_us())
        typer.echo(f"toolfault listens on {url}")
        if link is not None:
            typer.echo(f"Sign in here (works once): {link}")
        else:
            typer.echo(f"`{link_command(address, program=own_name())}` prints a new sign-in link.")

    with only_server(engine):
        # Before the port is taken, so that a database that cannot be used is told at once.
        prepare(engine, migrate=settings.migrate)
        if allow_public and not _asks(engine, has_account):
            # An invitation is what the server asks for before it listens on a public address.
            create_link(engine, now=now_us())
        app = create_app(settings, collector=collector, ahead=True, alerting=True)
        try:
            run(app, settings, on_bound=say)
        except OSError as error:
            raise Failed(
                f"Cannot listen on {settings.host}:{settings.port}: {error.strerror};"
                " choose another --port."
            ) from None


def _asks(engine: Engine, question: Callable[[Connection], bool]) -> bool:
    from toolfault_collector.storage.database.engine import read_connection

    with read_connection(engine) as conn:
        return question(conn)


def _settings(context: typer.Context, own: str | None, **given: Any) -> Settings:
    from pydantic import ValidationError

    from toolfault_collector.settings import Settings

    chosen = {
        name: value for name, value in given.items() if value is not None and value is not False
    }
    try:
        return Settings(database_url=database_url(context, own), **chosen)
    except ValidationError as error:
        # Only the names: a value may be a secret.
        names = sorted({f"TOOLFAULT_{str(each['loc'][0]).upper()}" for each in error.errors()})
        raise WronglyUsed(f"Correct {', '.join(names)}; see docs/configuration.md.") from None


def _reachable(url: str) -> str:
    """Return *url* with an address that a browser on this machine can open."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//:::", "//[::1]:")


def sign_in_link(
    context: typer.Context,
    name: Annotated[
        str, typer.Option("--name", help="Name of the account; a new one is invited.")
    ] = "admin",
    role: Annotated[
        str,
        typer.Option("--role", help="Role of a new account: viewer, developer, operator or admin."),
    ] = "admin",
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            help="Address at which the dashboard is reached; by default http://127.0.0.1:8321.",
        ),
    ] = None,
    database_url: DatabaseOption = None,
) -> None:
    """Print a new one-time sign-in link to a server's database, valid for 24 hours."""
    from toolfault_collector.clock import now_us
    from toolfault_dashboard.access.policy import ROLES
    from toolfault_dashboard.access.signin import DEFAULT_ADDRESS, create_link

    chosen = next((known for known in ROLES if known == role), None)
    if chosen is None:
        raise WronglyUsed(f"Write --role as one of {', '.join(ROLES)}.")
    # A link to a database that no server uses would lead nowhere.
    with open_database(context, database_url, create=False) as engine:
        try:
            token = create_link(engine, now=now_us(), name=name, role=chosen, actor=actor())
        except ValueError as error:
            raise WronglyUsed(str(error)) from None
    typer.echo(f"{(url or DEFAULT_ADDRESS).rstrip('/')}/sign-in?token={token}")
