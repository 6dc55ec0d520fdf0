"""The week in figures: what a team reads on Monday."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlalchemy import Connection

from toolfault_collector.clock import DAY_US
from toolfault_dashboard.analysis.comparisons.effect import Effect
from toolfault_dashboard.queries.comparisons.changes import changes
from toolfault_dashboard.queries.comparisons.effects import effect
from toolfault_dashboard.queries.figures.frequencies import frequency, new_signatures
from toolfault_dashboard.queries.figures.summaries import overview
from toolfault_dashboard.queries.fixes.fix_next import FixRow, fix_next
from toolfault_dashboard.queries.projects import has_untimed, projects
from toolfault_dashboard.queries.rows import ChangeRow, FrequencyRow, Overview
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.search import Clause, Moment, Pattern, Query, parse_moment

__all__ = ["Week", "week_end", "weekly"]

TOP = 10


@dataclass(frozen=True, slots=True)
class Week:
    """So many days and as many before them: a week, or one day."""

    begin: int
    end: int
    this: Overview
    last: Overview
    against_last: Effect
    codes: tuple[FrequencyRow, ...]  # most frequent first
    tools: tuple[FrequencyRow, ...]
    new: tuple[FrequencyRow, ...]  # signatures first seen this week
    fixes: tuple[FixRow, ...]
    fixes_of: int | None  # failures that they are of, the newest, where not all were looked at
    changes: tuple[ChangeRow, ...]
    days: int = 7
    newest_at: int | None = None  # where nothing was called: the newest failure of the project
    untimed: bool = False  # the same: whether calls of the project have no times
    query: str = ""  # what is reported, without its window

    @property
    def period(self) -> str:
        """What it is called: this week, or this day."""
        return "week" if self.days == 7 else "day"


def week_end(text: str, now: int) -> int | None:
    """Return where the week ends that *text* names, in microseconds.

    Args:
        text: A date, a time or an age, as `since:` takes them.
        now: What an age counts from, microseconds.

    Returns:
        None if it names none, or one before 1970, when there were no calls.
    """
    moment = parse_moment(text)
    end = -1 if moment is None else moment.resolve(now)
    return end if end >= 0 else None


def weekly(conn: Connection, scope: Scope, *, end: int | None = None, days: int = 7) -> Week:
    """Return the *days* that end at *end* (microseconds; by default now) for *scope*.

    Args:
        conn: Open connection.
        scope: What to report; its own window is left out.
        end: Where they end.
        days: 7, or 1 for a daily report.
    """
    end = scope.now if end is None else end
    begin = end - days * DAY_US
    this, last = _between(scope, begin, end), _between(scope, begin - days * DAY_US, begin)
    period = "week" if days == 7 else "day"
    fixes = fix_next(conn, this, limit=TOP)
    now, before = overview(conn, this), overview(conn, last)
    # What a filter does not find may be called all the same.
    filtered = bool(scope.query.without("since", "until").clauses)
    empty = not filtered and not now.summary.calls and not before.summary.calls
    newest = [row.last_failure_at for row in projects(conn) if row.id == scope.project_id]
    return Week(
        begin=begin,
        end=end,
        this=now,
        last=before,
        against_last=effect(conn, last, this, labels=(f"the {period} before", f"this {period}")),
        codes=frequency(conn, this, "code", limit=TOP).rows,
        tools=frequency(conn, this, "tool", limit=TOP).rows,
        new=new_signatures(conn, this, begin, limit=TOP),
        fixes=fixes.rows,
        fixes_of=None if fixes.complete else fixes.failures,
        changes=changes(conn, this),
        days=days,
        newest_at=newest[0] if newest and empty else None,
        untimed=empty and has_untimed(conn, scope.project_id),
        query=str(scope.query.without("since", "until")),
    )


def _between(scope: Scope, begin: int, end: int) -> Scope:
    clauses = (
        Clause("since", (Moment(at=begin),)),
        Clause("until", (Moment(at=end),)),
        # What has no time is in no week.
        Clause("time", (Pattern(("none",)),), negated=True),
    )
    return replace(scope, query=scope.query.without("since", "until").and_(Query(clauses)))
