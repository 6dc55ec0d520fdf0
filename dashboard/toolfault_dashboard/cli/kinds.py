"""``kinds``: kinds of failure with their state, and what is decided about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from toolfault_dashboard.cli.coding_agents import CursorOption, print_answer
from toolfault_dashboard.cli.options import (
    DatabaseOption,
    Failed,
    ProjectOption,
    QueryArgument,
    WronglyUsed,
    actor,
    open_database,
    project_id,
    reading,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from toolfault_dashboard.queries import Scope
    from toolfault_dashboard.writes.kind_states import Decision

__all__ = ["register"]

_kinds = typer.Typer(
    no_args_is_help=True, help="Kinds of failure: acknowledge, fix, ignore, give them an owner."
)


def register(app: typer.Typer) -> None:
    """Add the commands to *app*."""
    app.add_typer(_kinds, name="kinds")


@_kinds.command("list")
def list_(
    context: typer.Context,
    query: QueryArgument = None,
    order: Annotated[
        str, typer.Option("--order", help="failures, calls (spent), first or last (seen).")
    ] = "failures",
    limit: Annotated[int, typer.Option("--limit", min=1, help="Most rows.")] = 50,
    cursor: CursorOption = "",
    format: Annotated[  # noqa: A002 - the option
        str, typer.Option("--format", help="table, or agent: JSON as the MCP tool answers.")
    ] = "table",
    project: ProjectOption = None,
    database_url: DatabaseOption = None,
) -> None:
    """List kinds of failure; `toolfault table kinds` writes all of them as a file."""
    from toolfault_collector.clock import format_time
    from toolfault_dashboard import queries
    from toolfault_dashboard.cli.tables import print_table

    if format == "agent":
        asked = {"query": " ".join(query or ()), "order": order, "cursor": cursor}
        print_answer(context, database_url, project, "kinds", asked)
        return
    if format != "table":
        raise WronglyUsed("Write --format as table or agent; `toolfault table kinds` writes files.")
    if order not in queries.KIND_ORDERS:
        raise WronglyUsed(f"Write --order as one of {', '.join(queries.KIND_ORDERS)}.")
    with reading(context, database_url, project, query) as (conn, scope):
        found = queries.kinds(conn, scope, order=order, limit=limit, drawn=False)
    print_table(
        "Kinds of failure",
        ["state", "owner", "tool", "code", "fields", "failures", "calls spent", "last seen",
         "signature"],
        [
            [
                row.state, row.owner, row.tool, row.code, row.fields, row.failures,
                row.calls_spent,
                None if row.last_at is None else format_time(row.last_at)[:19] + "Z",
                row.fingerprint,
            ]
            for row in found.rows
        ],
    )  # fmt: skip
    if found.groups > len(found.rows):
        typer.echo(f"{len(found.rows)} of {found.groups}; --limit shows more.", err=True)


@_kinds.command("set")
def set_(  # noqa: PLR0913, PLR0917 - one argument per option
    context: typer.Context,
    query: QueryArgument = None,
    state: Annotated[
        str | None, typer.Option("--state", help="open, acknowledged, fixed or ignored.")
    ] = None,
    owner: Annotated[
        str | None, typer.Option("--owner", help="Who looks after them; '' for nobody.")
    ] = None,
    note: Annotated[
        str | None, typer.Option("--note", help="Why, in words; '' removes it.")
    ] = None,
    change: Annotated[
        str | None, typer.Option("--change", help="fixed: event id of the change that did it.")
    ] = None,
    release: Annotated[
        str | None, typer.Option("--release", help="fixed: the release that has the fix.")
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", help="fixed: since when, in UTC; default now.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", help="ignored: until this date, in UTC.")
    ] = None,
    failures: Annotated[
        int | None, typer.Option("--failures", help="ignored: until this many further failures.")
    ] = None,
    project: ProjectOption = None,
    database_url: DatabaseOption = None,
) -> None:
    """Decide about every kind that QUERY finds, such as signature:9f3c*."""
    from toolfault_collector.clock import now_us
    from toolfault_collector.storage.database.engine import read_connection
    from toolfault_dashboard import queries
    from toolfault_dashboard.queries import Scope
    from toolfault_dashboard.search import parse
    from toolfault_dashboard.writes.kind_states import decide

    parsed = parse(" ".join(query or ()))
    if not parsed.clauses:
        raise WronglyUsed("Write which kinds, such as signature:9f3c* or tool:search.")
    now = now_us()
    with open_database(context, database_url, create=False) as engine:
        with read_connection(engine) as conn:
            scope = Scope(project_id(conn, project), parsed, now)
            rows = queries.kinds(conn, scope, drawn=False).rows
            wanted = _decision(
                conn, scope, state=state, owner=owner, note=note, change=change, release=release,
                at=at, until=until, failures=failures,
            )  # fmt: skip
        chosen = [row.fingerprint for row in rows if row.fingerprint]
        if not chosen:
            raise Failed("The query finds no kind of failure.")
        try:
            changed = decide(engine, scope.project_id, chosen, wanted, actor=actor(), now=now)
        except ValueError as error:
            raise WronglyUsed(str(error)) from None
    typer.echo(f"{changed} of {len(chosen)} kinds changed.")


def _decision(  # noqa: PLR0913 - one argument per option
    conn: Connection,
    scope: Scope,
    *,
    state: str | None,
    owner: str | None,
    note: str | None,
    change: str | None,
    release: str | None,
    at: str | None,
    until: str | None,
    failures: int | None,
) -> Decision:
    from dataclasses import replace

    from toolfault_dashboard import queries
    from toolfault_dashboard.writes.kind_states import DECISIONS, Decision, fixed_by

    if state is not None and state not in DECISIONS:
        raise WronglyUsed(f"Write --state as one of {', '.join(DECISIONS)}.")
    wanted = Decision(
        state=state,
        owner=owner,
        note=note,
        fixed_at=_moment(at, "--at", scope.now),
        fixed_release=release,
        ignored_until=_moment(until, "--until", scope.now),
        ignored_count=failures,
    )
    if change is None:
        return wanted
    found = queries.change(conn, scope, change)
    if found is None:
        raise Failed("There is no change with this id in this project; `toolfault change list`.")
    by = fixed_by(found, release)
    moment = by.fixed_at if wanted.fixed_at is None else wanted.fixed_at
    return replace(by, state=wanted.state, owner=owner, note=note, fixed_at=moment)


def _moment(text: str | None, option: str, now: int) -> int | None:
    from toolfault_dashboard.search import parse_moment

    if text is None:
        return None
    found = parse_moment(text)
    if found is None:
        raise WronglyUsed(f"Write {option} as a date such as 2026-11-01T10:00.")
    return found.resolve(now)
