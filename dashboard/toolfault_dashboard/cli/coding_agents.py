"""``mcp`` and ``--format agent``: what coding agents read, over MCP or as one line of JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolfault_dashboard.cli.options import (
    DatabaseOption,
    Failed,
    ProjectOption,
    QueryArgument,
    WronglyUsed,
    open_database,
    project_id,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["CursorOption", "print_answer", "register"]

CursorOption = Annotated[
    str,
    typer.Option("--cursor", help="With --format agent: next_cursor of the answer before."),
]
_AgentOption = Annotated[
    str, typer.Option("--format", help="agent: one line of JSON, as the MCP tool answers.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to *app*."""
    app.command("mcp")(mcp)
    app.command("kind")(kind)
    app.command("chain")(chain)


def mcp(
    context: typer.Context, project: ProjectOption = None, database_url: DatabaseOption = None
) -> None:
    """Answer a coding agent over MCP on standard input and output; it only reads.

    A server offers the same tools at /mcp to whoever holds a read key.
    """
    from toolfault_collector.clock import now_us
    from toolfault_collector.storage.database.engine import read_connection
    from toolfault_dashboard.mcp.stdio import serve_stdio
    from toolfault_dashboard.queries.counting.deadline import deadline

    with open_database(context, database_url, create=False) as engine:
        with read_connection(engine) as conn:
            number = project_id(conn, project)

        def ask(name: str, arguments: Mapping[str, Any]) -> str:
            with read_connection(engine) as conn, deadline(conn):
                return _answered(conn, number, name, arguments, now_us())

        serve_stdio(ask)


def kind(
    context: typer.Context,
    fingerprint: Annotated[
        str, typer.Argument(help="Signature of a row of `toolfault kinds list`.")
    ],
    query: QueryArgument = None,
    format: _AgentOption = "agent",  # noqa: A002 - the option
    project: ProjectOption = None,
    database_url: DatabaseOption = None,
) -> None:
    """Show one kind of failure: how its chains end, its newest message, its fix."""
    _only_agent(format)
    given = {"kind": fingerprint, "query": " ".join(query or ())}
    print_answer(context, database_url, project, "kind", given)


def chain(
    context: typer.Context,
    chain_id: Annotated[str, typer.Argument(metavar="CHAIN", help="Id of a chain.")],
    cursor: CursorOption = "",
    format: _AgentOption = "agent",  # noqa: A002 - the option
    project: ProjectOption = None,
    database_url: DatabaseOption = None,
) -> None:
    """Show one chain call by call."""
    _only_agent(format)
    print_answer(context, database_url, project, "chain", {"chain": chain_id, "cursor": cursor})


def print_answer(
    context: typer.Context,
    database_url: str | None,
    project: str | None,
    tool: str,
    arguments: Mapping[str, Any],
) -> None:
    """Print what the MCP tool *tool* answers.

    Args:
        context: Of the command.
        database_url: ``--database-url`` given after the subcommand.
        project: Name of the project, if one was given.
        tool: Name of the tool.
        arguments: What it takes.

    Raises:
        Failed: What is asked for is not there, or the arguments are wrong.
        QueryError: The query cannot be read.
    """
    from toolfault_collector.clock import now_us
    from toolfault_collector.storage.database.engine import read_connection
    from toolfault_dashboard.mcp.tools import Refused
    from toolfault_dashboard.queries import CursorError

    with (
        open_database(context, database_url, create=False) as engine,
        read_connection(engine) as conn,
    ):
        try:
            answer = _answered(conn, project_id(conn, project), tool, arguments, now_us())
        except Refused as error:
            raise Failed(str(error)) from None
        except CursorError as error:
            raise WronglyUsed(str(error)) from None
    typer.echo(answer)


def _answered(
    conn: Connection, project: int, tool: str, arguments: Mapping[str, Any], now: int
) -> str:
    from toolfault_dashboard.access.policy import KEY_AUDIENCE
    from toolfault_dashboard.mcp.tools import answered

    # An agent is told no more than by a server's read key, though it could open the file itself.
    return answered(conn, project, tool, arguments, now=now, audience=KEY_AUDIENCE)


def _only_agent(format: str) -> None:  # noqa: A002 - the option
    if format != "agent":
        raise WronglyUsed("Write --format as agent; `toolfault table` writes tables and files.")
