"""What a rule measures: the figures of the pages, over the window that ends at a moment.

No metric has a second formula here: rates are those of `queries.overview`, round trips those of a
comparison's cohort, kinds those of the list of kinds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sqlalchemy import Connection

from toolfault_collector.clock import DAY_US
from toolfault_dashboard import queries
from toolfault_dashboard.alerts.evaluation import Figure, Measured, Sighting
from toolfault_dashboard.alerts.rules import Rule
from toolfault_dashboard.analysis.comparisons.estimates import Estimate
from toolfault_dashboard.analysis.rates import Rate, critical_t
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.failures.kinds import KindRow
from toolfault_dashboard.queries.figures.alerting import (
    came_back,
    decided_states,
    dropped,
    newest_beginnings,
    round_trips_of,
)
from toolfault_dashboard.queries.figures.totals import calls_by
from toolfault_dashboard.queries.projects import has_untimed
from toolfault_dashboard.queries.rows import Overview
from toolfault_dashboard.queries.windows import between
from toolfault_dashboard.search import parse

__all__ = ["BEFORE_US", "MOST_KINDS", "measure", "scope_of"]

BEFORE_US: Final = 7 * DAY_US
"""A rule about data that stopped asks for calls in so long before its window: where none came in
that time either, nothing has stopped."""

MOST_KINDS: Final = 200
"""Kinds that are looked at, those with the most failures first."""

_CONFIDENCE: Final = 0.95


def scope_of(conn: Connection, rule: Rule, begin: int, end: int) -> Scope:
    """Return the rows that *rule* is about from *begin* to *end* (microseconds).

    What has no time, as in some transcripts, is in no window: it stands where it was imported.

    Raises:
        QueryError: The query cannot be read any more, or names what its maker may not see.
    """
    whole = Scope(rule.project_id, parse(rule.query), end, rule.audience)
    if has_untimed(conn, rule.project_id):
        whole = whole.narrowed("-time:none")
    return between(whole, begin, end)


def measure(conn: Connection, rule: Rule, now: int) -> Measured:
    """Measure what *rule* asks for at *now* (microseconds).

    Args:
        conn: An open connection, in one read transaction.
        rule: Of any condition but ``digest``.
        now: End of the window.

    Raises:
        QueryError: As `scope_of`.
        TooSlow: It takes longer than the connection's deadline.
    """
    scope = scope_of(conn, rule, now - rule.window_us, now)
    if rule.asks.kind == "kinds":
        return Measured(sightings=_kinds(conn, rule, scope))
    if rule.condition == "no_data":
        begin = now - rule.window_us
        earlier = scope_of(conn, rule, begin - BEFORE_US, begin)
        return Measured(_count(_calls(conn, scope), _calls(conn, earlier)))
    if rule.condition == "sender_drops":
        lost = dropped(conn, rule.project_id, now - rule.window_us, now)
        return Measured(_count(lost, lost))
    if rule.condition == "round_trips_per_operation":
        return Measured(_of_estimate(round_trips_of(conn, scope)))
    return Measured(_of_rate(_rate(queries.overview(conn, scope), rule)))


def _rate(found: Overview, rule: Rule) -> Rate:
    if rule.condition == "failure_rate":
        return found.failure_rate
    return found.first_try if rule.condition == "first_try_success" else found.recovery_rate


def _of_rate(found: Rate) -> Figure:
    return Figure(found.value, found.low, found.high, found.n)


def _of_estimate(found: Estimate) -> Figure:
    """Give an estimate its interval: Student's t over conversations, as for every ratio."""
    error = found.standard_error
    if found.value is None or error is None:
        return Figure(None, None, None, found.counted)
    spread = critical_t(found.clusters - 1, _CONFIDENCE) * error
    return Figure(found.value, max(0.0, found.value - spread), found.value + spread, found.counted)


def _count(value: int, n: int) -> Figure:
    return Figure(value, value, value, n)


def _calls(conn: Connection, scope: Scope) -> int:
    return calls_by(conn, scope, "tool").total().whole


def _kinds(conn: Connection, rule: Rule, scope: Scope) -> tuple[Sighting, ...]:
    """Return the kinds that *rule* is about, but for those that a person set aside."""
    decided = decided_states(conn, rule.project_id)
    if "ignored" in decided:
        scope = scope.narrowed("-state:ignored")
    if rule.condition == "new_kind":
        return _new_kinds(conn, scope) + (_regressed(conn, scope) if "fixed" in decided else ())
    scope = scope.narrowed("audience:user")
    began = newest_beginnings(conn, scope)
    rows = queries.kinds(conn, scope, limit=MOST_KINDS, drawn=False).rows
    return tuple(_sighting(row, began[row.fingerprint]) for row in rows if row.fingerprint in began)


def _new_kinds(conn: Connection, scope: Scope) -> tuple[Sighting, ...]:
    """Return the kinds that were never seen before the window."""
    begin = scope.query.of("since")[0]
    fresh = scope.narrowed(f"first_seen:{begin.values[0]}")
    rows = queries.kinds(conn, fresh, order="first", limit=MOST_KINDS, drawn=False).rows
    return tuple(_sighting(row, row.first_at) for row in rows if row.first_at is not None)


def _regressed(conn: Connection, scope: Scope) -> tuple[Sighting, ...]:
    """Return the kinds that were seen again after their fix, and in the window."""
    known = came_back(conn, scope.project_id)
    if not known:
        return ()
    regressed = scope.narrowed("state:regressed")
    rows = queries.kinds(conn, regressed, limit=MOST_KINDS, drawn=False).rows
    return tuple(
        replace(_sighting(row, back.seen_at), fixed_at=back.fixed_at)
        for row in rows
        if (back := known.get(row.fingerprint)) is not None
    )


def _sighting(row: KindRow, began_at: int) -> Sighting:
    title = f"{row.tool} fails with {row.code or 'no code'}"
    if row.fields:
        title += f" ({row.fields})"
    return Sighting(row.fingerprint, title, row.query, began_at, row.failures)
