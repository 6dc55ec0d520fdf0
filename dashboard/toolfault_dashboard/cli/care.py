"""``doctor`` and ``prune``: is the installation sound, and what may go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolfault_dashboard.cli.options import (
    DatabaseOption,
    EventsOption,
    Failed,
    WronglyUsed,
    actor,
    database_url,
    open_database,
    open_events_of,
    project_id,
)

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from toolfault_collector.settings import Settings

__all__ = ["prune", "register"]


def register(app: typer.Typer) -> None:
    """Add the commands to *app*."""
    app.command("doctor")(doctor)
    app.command("prune")(prune)
    app.command("audit")(audit)


def doctor(
    context: typer.Context,
    recount: Annotated[
        bool,
        typer.Option("--recount", help="Also count chains, conversations and rollups again."),
    ] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="With --recount: write what was counted.")
    ] = False,
    database_url: DatabaseOption = None,
    events_url: EventsOption = None,
) -> None:
    """Look for what could hurt this installation; exit code 1 if there is a problem."""
    from toolfault_collector.doctor.checks import examine

    if repair and not recount:
        raise WronglyUsed("Give --repair together with --recount.")
    with open_database(context, database_url, create=False) as engine:
        findings = examine(_settings(context, database_url), engine)
        for finding in findings:
            typer.echo(f"{finding.level:8} {finding.name}: {finding.text}")
        right = _recount(engine, repair=repair) if recount else True
        with open_events_of(events_url) as events:
            if recount and events is not None:
                right = _compare(engine, events, repair=repair) and right
    if not right or any(finding.level == "problem" for finding in findings):
        raise Failed("There are problems; see the lines above.")


def _settings(context: typer.Context, own: str | None) -> Settings:
    from toolfault_collector.settings import Settings

    return Settings(database_url=database_url(context, own))


def _recount(engine: Engine, *, repair: bool) -> bool:
    from toolfault_collector.clock import now_us
    from toolfault_collector.doctor.recount import recount
    from toolfault_dashboard.storing import wrong_answers

    found = recount(engine, repair=repair)
    stored = wrong_answers(engine, now_us(), repair=repair)
    right = found.right and not stored
    if repair and not right:
        _note(engine, "repaired")
    wrong = {
        "chains": found.wrong_chains,
        "places of calls in chains": found.wrong_places,
        "calls of other tools that chains cost": found.wrong_other_calls,
        "conversations": found.wrong_conversations,
        "rows of rollups": found.wrong_counts,
        "keys of events": found.wrong_keys,
        "traces": found.wrong_traces,
        "stretches of days with stored answers": stored,
    }
    typer.echo(f"ok       recount: {found.calls} calls make {found.chains} chains")
    for name, number in wrong.items():
        if number:
            said = "repaired" if repair else "wrong; --repair writes them anew"
            typer.echo(f"problem  recount: {number} {name} {said}")
    return right or repair


def _compare(engine: Engine, events: Engine, *, repair: bool) -> bool:
    """Compare ClickHouse with the database, and say what differs."""
    from toolfault_collector.clickhouse.comparison import compare

    found = compare(engine, events, repair=repair)
    wrong = [each for each in found if each.different or each.more]
    rows = sum(each.rows for each in found)
    typer.echo(f"ok       ClickHouse: {rows} rows compared")
    said = "will be shipped again" if repair else "differ; --repair ships them again"
    for each in wrong:
        counts = f"{each.different} of {each.rows} rows of {each.name}, and {each.more} too many,"
        typer.echo(f"problem  ClickHouse: {counts} {said}")
    return repair or not wrong


def audit(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Most rows to list.")] = 100,
    database_url: DatabaseOption = None,
) -> None:
    """List who did what to keys, people and data, newest first."""
    from toolfault_collector.admin.audit import acts
    from toolfault_collector.clock import format_time
    from toolfault_collector.storage.database.engine import read_connection
    from toolfault_dashboard.cli.tables import print_table

    with (
        open_database(context, database_url, create=False) as engine,
        read_connection(engine) as conn,
    ):
        found = acts(conn, limit=limit)
    print_table(
        "Audit log",
        ["when", "who", "what", "project", "details"],
        [
            [
                format_time(act.occurred_at)[:19] + "Z",
                act.actor,
                act.action,
                act.project,
                ", ".join(f"{name}={value}" for name, value in act.detail.items()),
            ]
            for act in found
        ],
    )


def _note(engine: Engine, action: str, *, project_id: int | None = None, **detail: Any) -> None:
    from toolfault_collector.admin.audit import note
    from toolfault_collector.storage.database.engine import write_transaction

    with write_transaction(engine) as conn:
        note(conn, action, actor=actor(), project_id=project_id, **detail)


def prune(
    context: typer.Context,
    days: Annotated[
        int | None, typer.Option("--days", min=1, help="Keep what was received in this many days.")
    ] = None,
    max_calls: Annotated[
        int | None,
        typer.Option("--max-calls", min=1, help="Keep about this many calls per project."),
    ] = None,
    project: Annotated[str | None, typer.Option("--project", help="Only this project.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Remove although the clock is doubted.")
    ] = False,
    database_url: DatabaseOption = None,
) -> None:
    """Remove old conversations, whole, while the server runs."""
    from toolfault_collector.retention.policy import prune as remove
    from toolfault_collector.storage.database.engine import read_connection

    if days is None and max_calls is None:
        raise WronglyUsed("Say what to keep with --days or --max-calls.")
    with open_database(context, database_url, create=False) as engine:
        number = None
        if project is not None:
            with read_connection(engine) as conn:
                number = project_id(conn, project)
        gone = remove(
            engine,
            days=days,
            max_calls=max_calls,
            project_id=number,
            force=force,
            dry_run=dry_run,
        )
        if not dry_run:
            _note(engine, "pruned", project_id=number, calls=gone.calls)
    said = "Would remove" if dry_run else "Removed"
    typer.echo(f"{said} {gone.conversations} conversations with {gone.calls} calls.", err=True)
