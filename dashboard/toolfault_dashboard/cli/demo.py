"""``demo``: a server with a simulated fleet of agents, on a fresh database."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated

import typer

from toolfault_dashboard.cli.options import DatabaseOption, Settings, WronglyUsed

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("demo")(demo)


def demo(
    context: typer.Context,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port; 0 takes a free one.")] = 8321,
    seed: Annotated[int, typer.Option("--seed", help="Same seed, same agents.")] = 7,
    days: Annotated[
        int, typer.Option("--days", min=1, max=28, help="Days of history to send first.")
    ] = 14,
    open_browser: Annotated[
        bool, typer.Option("--open", help="Open the sign-in link in a browser.")
    ] = False,
    database_url: DatabaseOption = None,
) -> None:
    """Serve a fleet of simulated agents whose tools fail; everything else is real."""
    if find_spec("toolfault_demo") is None:
        raise WronglyUsed(
            "the agents of the demo are not installed:"
            " pip install 'toolfault-server[demo]' (in a clone: pip install ./sdk ./demo)."
        )
    from toolfault_dashboard.cli.demo_server import serve_demo

    # TOOLFAULT_DATABASE_URL is for real data: only a URL on this command line is meant for a demo.
    common = context.find_object(Settings)
    explicit = common.database_url if common and common.explicit else None
    code = serve_demo(
        host=host,
        port=port,
        seed=seed,
        days=days,
        open_browser=open_browser,
        database_url=database_url or explicit,
    )
    raise typer.Exit(code)
