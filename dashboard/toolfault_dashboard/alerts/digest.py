"""The digest: the weekly report, or a day's, when there is something to tell."""

from __future__ import annotations

from sqlalchemy import Connection

from toolfault_dashboard import queries
from toolfault_dashboard.alerts.rules import DIGEST_PERIODS, Rule
from toolfault_dashboard.alerts.wording import Text
from toolfault_dashboard.exports.weekly import weekly_report
from toolfault_dashboard.queries import Scope, Week
from toolfault_dashboard.search import parse

__all__ = ["digest", "is_worth_telling"]


def digest(conn: Connection, rule: Rule, project: str, due: int) -> Text | None:
    """Return the report of the days before *due* (microseconds); None where it tells nothing.

    Raises:
        QueryError: The query cannot be read any more.
        TooSlow: It takes longer than the connection's deadline.
    """
    days = DIGEST_PERIODS[rule.window]
    scope = Scope(rule.project_id, parse(rule.query), due, rule.audience)
    week = queries.weekly(conn, scope, end=due, days=days)
    if not is_worth_telling(week):
        return None
    period = f"{'Weekly' if days == 7 else 'Daily'} digest"
    query = " ".join(filter(None, (rule.query, f"since:{rule.window}")))
    return Text(
        "digest",
        "digest",
        f"{period}: {rule.name} [{project}]",
        weekly_report(week, project, "markdown"),
        query,
    )


def is_worth_telling(week: Week) -> bool:
    """Say whether *week* has news: a new kind, a recorded change, or a metric that changed.

    A metric has changed when its verdict against the days before says so; a number that went up
    or down by chance is no news.
    """
    verdicts = {metric.verdict for metric in week.against_last.metrics}
    return bool(week.new or week.changes or verdicts & {"improved", "worse"})
