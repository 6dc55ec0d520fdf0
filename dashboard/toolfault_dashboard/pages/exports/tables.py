"""The tables of the pages as files: exactly what the page beside it shows.

Lists stream from the database row by row; tables that were computed are written from their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from fastapi import APIRouter

from toolfault_collector.admin.audit import acts
from toolfault_collector.admin.keys import list_keys
from toolfault_dashboard import queries
from toolfault_dashboard.access import signin
from toolfault_dashboard.alerts.store import (
    AlertMessage,
    ChannelRow,
    channel_rows,
    message_history,
    rule_rows,
)
from toolfault_dashboard.alerts.wording import rule_in_words
from toolfault_dashboard.analysis.comparisons.differences import change_of_rate
from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.exports.tables import table_stream
from toolfault_dashboard.pages.chains.round_trips import BY_GROUP, CHAINS, ENDS, LENGTHS, RUNGS
from toolfault_dashboard.pages.comparisons.changes import CHANGES, EFFECT, NEW_KINDS
from toolfault_dashboard.pages.comparisons.compare import COMPARED_CODES, COMPARISON
from toolfault_dashboard.pages.comparisons.days import DAYS
from toolfault_dashboard.pages.comparisons.experiments import ARMS, COSTS, EXPERIMENTS
from toolfault_dashboard.pages.exports.download import Table, serve
from toolfault_dashboard.pages.failures.kinds_table import KINDS
from toolfault_dashboard.pages.figures.breakdown import BY_TOOL
from toolfault_dashboard.pages.figures.tools import PHANTOMS, REPEATS, TOOLS
from toolfault_dashboard.pages.fixes.messages import MESSAGES
from toolfault_dashboard.pages.shared.ask import Ask
from toolfault_dashboard.pages.shared.lines import BY_CODE, BY_FIELD, FAILURES
from toolfault_dashboard.queries.counted import CountedLine, counted_lines
from toolfault_dashboard.queries.figures.matrices import MatrixCell, matrix
from toolfault_dashboard.queries.fixes.fix_next import FixRow, fix_next
from toolfault_dashboard.queries.lists.streams import RowStream
from toolfault_dashboard.queries.received import ReceivedLine, received_lines, received_list
from toolfault_dashboard.queries.rejected import RejectedRow, rejected_list
from toolfault_dashboard.queries.rows import Series
from toolfault_dashboard.search import parse
from toolfault_dashboard.writes.picked_fixes import PickedFix, picked_fixes
from toolfault_dashboard.writes.saved_views import views_of

__all__ = ["router"]

router = APIRouter()

_KEY_TIMES: Final = ("created_at", "last_used_at", "revoked_at")
_ACTS: Final = 100_000  # years of it
_ALL: Final = 10_000  # more codes or tools than a project may have


def _serve(name: str) -> Callable[[Table], Table]:
    return serve(router, name)


def _table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    times: Iterable[str] = (),
    numbers: Iterable[str] = (),
    integers: Iterable[str] = (),
) -> RowStream:
    kinds = dict.fromkeys(numbers, "number") | dict.fromkeys(integers, "integer")
    return RowStream(tuple(columns), frozenset(times), iter(rows), kinds)


def _rate_cells(found: Rate) -> tuple[Any, ...]:
    return (found.value, found.low, found.high, found.n)


def _rate_columns(name: str) -> tuple[str, ...]:
    return (name, f"{name}_low", f"{name}_high", f"{name}_n")


_TABLES: Final = (
    *(FAILURES, KINDS, CHAINS, BY_GROUP, ENDS, LENGTHS, RUNGS, TOOLS, PHANTOMS, REPEATS),
    *(BY_CODE, BY_FIELD, BY_TOOL, MESSAGES, CHANGES, EFFECT, NEW_KINDS, COMPARISON),
    *(COMPARED_CODES, EXPERIMENTS, ARMS, COSTS, DAYS),
)
for _table_of_page in _TABLES:
    _serve(_table_of_page.name)(_table_of_page.file)


@_serve("overview")
def overview(ask: Ask) -> RowStream:
    """Write the headline figures of the overview."""
    found = queries.overview(ask.conn, ask.scope)
    period = queries.period_before(ask.conn, ask.scope)
    then = None if period is None else queries.overview(ask.conn, period.scope)
    rows: list[tuple[Any, ...]] = []
    for name in (
        "conversations",
        "calls",
        "failures",
        "chains",
        "recovered",
        "switched",
        "abandoned",
        "open",
        "round_trips",
        "calls_spent",
        "mean_failures_before_recovery",
    ):
        was = None if then is None else getattr(then.summary, name)
        rows.append((name, getattr(found.summary, name), None, None, None, was, None, None))
    for name, attribute in (
        ("failure_rate", "failure_rate"),
        ("recovery_rate", "recovery_rate"),
        ("first_try_success", "first_try"),
    ):
        now: Rate = getattr(found, attribute)
        before: Rate | None = None if then is None else getattr(then, attribute)
        ends = None if before is None else change_of_rate(before, now)
        rows.append(
            (
                name,
                *_rate_cells(now),
                None if before is None else before.value,
                None if ends is None else ends.low,
                None if ends is None else ends.high,
            )
        )
    numbers = ("before", "change_low", "change_high")
    return _table(
        ("figure", "value", "low", "high", "n", *numbers),
        rows,
        numbers=("value", "low", "high", *numbers),
        integers=("n",),
    )


@_serve("fix-next")
def fixes(ask: Ask) -> RowStream:
    """Write everything that could be mended."""
    rows = fix_next(ask.conn, ask.scope).rows
    return table_stream(rows, FixRow)


@_serve("picked-fixes")
def picked(ask: Ask) -> RowStream:
    """Write what people added to Fix next by hand."""
    rows = picked_fixes(ask.conn, ask.project.id) if ask.project else ()
    return table_stream(rows, PickedFix)


@_serve("issues")
def issues(ask: Ask) -> RowStream:
    """Stream the issues of the failures of the view."""
    return queries.iter_issues(ask.conn, ask.scope)


@_serve("over-time")
def over_time(ask: Ask) -> RowStream:
    """Write failures by bucket of time and code, and beside each code the figures of its bucket.

    A bucket without a failure is one row without a code, as its calls and its rate are worth one.
    """
    found = queries.failures_over_time(ask.conn, ask.scope, top=_ALL, most=None)
    rows = (
        (start, name, failures, each.count, found.calls[index], *_rate_cells(each))
        for index, (start, each) in enumerate(zip(found.starts, found.rates, strict=True))
        if found.calls[index] or each.count
        for name, failures in _codes_at(found.series, index) or [("", 0)]
    )
    rate_columns = _rate_columns("failure_rate")
    return _table(
        ("from_at", "code", "failures", "all_failures", "calls", *rate_columns),
        rows,
        times=("from_at",),
        numbers=rate_columns[:3],
        integers=("failures", "all_failures", "calls", rate_columns[3]),
    )


def _codes_at(series: Sequence[Series], index: int) -> list[tuple[str, int]]:
    return [(line.name, line.counts[index]) for line in series if line.counts[index]]


@_serve("matrix")
def cells(ask: Ask) -> RowStream:
    """Write the failures of the view by tool and code."""
    found = matrix(ask.conn, ask.scope, "code", tools=_ALL, columns=_ALL)
    return table_stream(found.cells, MatrixCell)


@_serve("field-matrix")
def field_cells(ask: Ask) -> RowStream:
    """Write the failures of the view by tool and field."""
    found = matrix(ask.conn, ask.scope, "field", tools=_ALL, columns=_ALL)
    return table_stream(found.cells, MatrixCell)


@_serve("views")
def views(ask: Ask) -> RowStream:
    """Write the views that the reader sees."""
    rows = views_of(ask.conn, ask.project.id, ask.viewer.user_id) if ask.project else ()
    return _table(
        ("name", "page", "query", "shared", "owner"),
        ((row.name, row.page, row.query, row.shared, row.owner) for row in rows),
    )


@_serve("keys")
def keys(ask: Ask) -> RowStream:
    """Write the keys of the project; of a key itself only its first letters are known."""
    rows = list_keys(ask.conn, ask.project.id) if ask.project else []
    return _table(
        ("key", "kind", "label", *_KEY_TIMES),
        (
            (row.prefix, row.kind, row.label, row.created_at, row.last_used_at, row.revoked_at)
            for row in rows
        ),
        times=_KEY_TIMES,
    )


@_serve("people")
def people(ask: Ask) -> RowStream:
    """Write the accounts of the server."""
    return _table(
        ("name", "role", "state", "last_sign_in_at"),
        ((row.name, row.role, row.state, row.last_sign_in) for row in signin.accounts(ask.conn)),
        times=("last_sign_in_at",),
    )


@_serve("audit")
def audit(ask: Ask) -> RowStream:
    """Write the audit log of the server, newest first."""
    return _table(
        ("id", "occurred_at", "actor", "action", "project", "detail"),
        (
            (act.id, act.occurred_at, act.actor, act.action, act.project, act.detail)
            for act in acts(ask.conn, limit=_ACTS)
        ),
        times=("occurred_at",),
        integers=("id",),
    )


@_serve("rejected")
def rejected(ask: Ask) -> RowStream:
    """Write every refused event that is kept."""

    def rows() -> Iterator[RejectedRow]:
        cursor: str | None = None
        while True:
            page = rejected_list(ask.conn, ask.scope_of(parse("")), cursor=cursor, limit=500)
            yield from page.rows
            if (cursor := page.next_cursor) is None:
                return

    return table_stream(list(rows()), RejectedRow)


@_serve("received")
def received(ask: Ask) -> RowStream:
    """Write what was made of the last requests, a row for each span that is shown."""
    page = received_list(ask.conn, ask.scope_of(parse("")), limit=500)
    return table_stream(received_lines(page.rows), ReceivedLine)


@_serve("counted")
def counted(ask: Ask) -> RowStream:
    """Write the calls that metrics counted, by metric and tool, beside those that are stored."""
    return table_stream(counted_lines(ask.conn, ask.scope_of(parse(""))), CountedLine)


@_serve("alerts")
def alerts(ask: Ask) -> RowStream:
    """Write the rules of the project with what was measured last."""
    rows = rule_rows(ask.conn, ask.project.id) if ask.project else []
    figures = ("value", "low", "high", "n")
    return _table(
        ("name", "condition", "query", "firing", "pending", *figures, "evaluated_at", "problem"),
        (
            (
                row.rule.name,
                rule_in_words(row.rule),
                row.rule.query,
                row.firing,
                row.pending,
                *(getattr(row.figure, name, None) for name in figures),
                row.evaluated_at or None,
                row.problem,
            )
            for row in rows
        ),
        times=("evaluated_at",),
        numbers=("value", "low", "high"),
        integers=("firing", "pending", "n"),
    )


@_serve("alert-history")
def alert_history(ask: Ask) -> RowStream:
    """Write what the rules of the project said, newest first."""
    rows = message_history(ask.conn, ask.project.id, limit=_ACTS) if ask.project else ()
    return table_stream(rows, AlertMessage)


@_serve("channels")
def channels(ask: Ask) -> RowStream:
    """Write the channels of the project, without their addresses and secrets."""
    rows = channel_rows(ask.conn, ask.project.id) if ask.project else ()
    return table_stream(rows, ChannelRow)
