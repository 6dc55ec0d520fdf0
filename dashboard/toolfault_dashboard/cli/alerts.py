"""``alerts``: the rules, when one would have fired, and a test of a channel."""

from __future__ import annotations

from typing import Annotated

import typer

from toolfault_dashboard.cli.options import (
    DatabaseOption,
    Failed,
    ProjectOption,
    WronglyUsed,
    actor,
    open_database,
    project_id,
    reading,
)

__all__ = ["register"]

_alerts = typer.Typer(no_args_is_help=True, help="Rules that send a message, and their channels.")


def register(app: typer.Typer) -> None:
    """Add the commands to *app*."""
    app.add_typer(_alerts, name="alerts")


@_alerts.command("list")
def list_(
    context: typer.Context, project: ProjectOption = None, database_url: DatabaseOption = None
) -> None:
    """List the rules with what was measured last."""
    from toolfault_dashboard.alerts.store import rule_rows
    from toolfault_dashboard.alerts.wording import figure_in_words, rule_in_words
    from toolfault_dashboard.cli.tables import print_table

    with reading(context, database_url, project, None) as (conn, scope):
        rows = rule_rows(conn, scope.project_id)
    print_table(
        "Alerts",
        ["rule", "watches", "state", "measured last"],
        [
            [
                row.rule.name,
                " ".join(filter(None, (rule_in_words(row.rule), row.rule.query))),
                "snoozed"
                if row.rule.snoozed_until > scope.now
                else "firing"
                if row.firing
                else "pending"
                if row.pending
                else "quiet",
                row.problem or figure_in_words(row.rule, row.figure),
            ]
            for row in rows
        ],
    )


@_alerts.command("preview")
def preview(
    context: typer.Context,
    rule: Annotated[str, typer.Argument(help="Name of the rule.")],
    days: Annotated[int, typer.Option("--days", min=1, max=365, help="Days to look back.")] = 30,
    project: ProjectOption = None,
    database_url: DatabaseOption = None,
) -> None:
    """Say when a rule would have fired."""
    from toolfault_collector.clock import format_time
    from toolfault_dashboard.alerts.preview import preview as looked_at
    from toolfault_dashboard.alerts.store import rule_rows
    from toolfault_dashboard.alerts.wording import figure_in_words, notice_text
    from toolfault_dashboard.cli.tables import print_table

    with reading(context, database_url, project, None) as (conn, scope):
        rows = {row.rule.name: row for row in rule_rows(conn, scope.project_id)}
        row = rows.get(rule)
        if row is None:
            raise Failed(f"There is no rule {rule!r}; `toolfault alerts list` names them all.")
        found = looked_at(conn, row.rule, scope.now, days=days, seconds=float("inf"))
    print_table(
        f"{rule}: would have fired {len(found.firings)} times in the last {days} days",
        ["when", "until", "message", "measured then"],
        [
            [
                format_time(each.began_at)[:16] + "Z",
                "" if each.ended_at is None else format_time(each.ended_at)[:16] + "Z",
                notice_text(row.rule, each.notice, row.project).title,
                "" if each.notice.figure is None else figure_in_words(row.rule, each.notice.figure),
            ]
            for each in found.firings
        ],
    )


@_alerts.command("test")
def send_a_test(
    context: typer.Context,
    channel: Annotated[str, typer.Argument(help="Name of the channel.")],
    project: ProjectOption = None,
    database_url: DatabaseOption = None,
) -> None:
    """Send a test message to a channel now; exit code 1 if it is not taken."""
    from pydantic import ValidationError

    from toolfault_collector.clock import now_us
    from toolfault_collector.settings import Settings
    from toolfault_collector.storage.database.engine import read_connection
    from toolfault_dashboard.alerts.service import send_test
    from toolfault_dashboard.alerts.store import channel_rows

    try:
        settings = Settings()
    except ValidationError:
        raise WronglyUsed(
            "Correct the settings of the environment; see docs/configuration.md."
        ) from None
    with open_database(context, database_url, create=False) as engine:
        with read_connection(engine) as conn:
            number = project_id(conn, project)
            known = {row.name: row.id for row in channel_rows(conn, number)}
        if channel not in known:
            raise Failed(f"There is no channel {channel!r}; Settings lists them.")
        problem = send_test(engine, settings, number, known[channel], actor=actor(), now=now_us())
    if problem is not None:
        raise Failed(f"The test was not sent. {problem}")
    typer.echo("The test is sent.")
