"""``fix-next``: what to mend first, for programs, people, coding agents and prompt optimisers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated

import typer

from toolfault_dashboard.cli.coding_agents import CursorOption, print_answer
from toolfault_dashboard.cli.options import (
    DatabaseOption,
    ProjectOption,
    QueryArgument,
    WronglyUsed,
    reading,
)

__all__ = ["register"]

FORMATS = ("markdown", "json", "gepa", "agent")


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("fix-next")(fix_next)


def fix_next(
    context: typer.Context,
    query: QueryArgument = None,
    format: Annotated[  # noqa: A002 - the option
        str,
        typer.Option(
            "--format",
            help="markdown, json, gepa (a line of JSON for each chain, with score and feedback) or"
            " agent.",
        ),
    ] = "markdown",
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Most fixes.")] = 20,
    cursor: CursorOption = "",
    project: ProjectOption = None,
    database_url: DatabaseOption = None,
) -> None:
    """Rank what to mend by the calls it would have saved, with patches for each."""
    from toolfault_dashboard import queries
    from toolfault_dashboard.access.policy import KEY_AUDIENCE
    from toolfault_dashboard.exports.fixes import fixes_json, fixes_markdown, gepa_records

    if format not in FORMATS:
        raise WronglyUsed(f"Write --format as one of {', '.join(FORMATS)}.")
    if format == "agent":
        given = {"query": " ".join(query or ()), "cursor": cursor}
        print_answer(context, database_url, project, "fix_next", given)
        return
    with reading(context, database_url, project, query) as (conn, scope):
        # An optimiser hands what it reads to a model.
        seen = replace(scope, audience=KEY_AUDIENCE) if format == "gepa" else scope
        found = queries.fix_next(conn, seen, limit=limit)
        if format == "gepa":
            for record in gepa_records(conn, seen, found):
                typer.echo(json.dumps(record, ensure_ascii=False))
        else:
            failing = {row.tool for row in found.rows if row.remedy == "open"}
            first = queries.calls_before_recovery(conn, scope, failing)
            typer.echo(fixes_json(found) if format == "json" else fixes_markdown(found, first))
