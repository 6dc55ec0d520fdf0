"""Fix next: the failures of a scope as evidence, ranked by the round trips a fix would save."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, and_, select

from toolfault_collector.clock import DAY_US
from toolfault_collector.tables import chain, issue, tool_call
from toolfault_dashboard.analysis.fixes import (
    Fix,
    FixFailure,
    FixIssue,
    FixKey,
    Opportunity,
    Since,
    add_up,
    opportunities,
    saved_since,
)
from toolfault_dashboard.analysis.inference import inferred_remedies
from toolfault_dashboard.analysis.remedies import advice
from toolfault_dashboard.queries.changes import changes
from toolfault_dashboard.queries.conditions import failures_of
from toolfault_dashboard.queries.effects import sides_of_change
from toolfault_dashboard.queries.messages import MessageRow, message_efficacy, next_calls
from toolfault_dashboard.queries.rows import ChangeRow
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.summaries import calls_by, chain_totals
from toolfault_dashboard.queries.visibility import sees
from toolfault_dashboard.queries.weighing import sampling
from toolfault_dashboard.queries.windows import window
from toolfault_dashboard.search import Clause, Pattern, QueryError
from toolfault_dashboard.search.outcomes import outcome_at

__all__ = ["FixList", "FixRow", "fix_next"]

MOST_FAILURES: Final = 200_000
"""Newest failures that are looked at."""

FEWEST_ASKED: Final = 10
"""Failures with a message below which nothing is said about its wording."""

WEEK: Final = 7 * DAY_US


@dataclass(frozen=True, slots=True)
class FixRow:
    """One thing to mend, with what it would save and where the evidence is."""

    tool: str
    field: str  # "" where the tool itself is meant
    remedy: str
    detail: str
    title: str  # what to do, one sentence
    code: str  # how, as code for the SDK
    round_trips: float  # saved in the window
    failures: int  # avoided in the window; where ``estimated``, those after which it was read
    chains: int
    per_week: float | None
    low: float | None
    high: float | None
    estimated: bool  # assumes something beyond the counts (a better wording)
    query: str  # clauses that lead to the failures behind it
    last_at: int | None
    mended_by: str | None  # label of a change of the tool after which it did not come back
    changed_by: str | None  # label of the latest change of the tool in the window
    saved_since: float | None  # round trips spared since then, against going on as before
    saved_since_low: float | None
    saved_since_high: float | None


@dataclass(frozen=True, slots=True)
class FixList:
    """What to fix next, most round trips saved first; what is mended already comes last."""

    rows: tuple[FixRow, ...]
    weeks: float | None
    failures: int  # looked at
    complete: bool  # all failures of the scope were looked at
    unweighed: bool = False  # calls were sampled: figures are of rows, not of what they stand for


def fix_next(conn: Connection, scope: Scope, *, limit: int | None = None) -> FixList:
    """Rank what to mend by the round trips it would have saved.

    Raises:
        QueryError: The reader may not see which remedies would have helped.
    """
    if not sees(scope, "near_miss"):
        raise QueryError("Your role may not see what would have been accepted.")
    failures = _failures(conn, scope)
    weeks = _weeks(scope, failures)
    found = opportunities(failures)
    changed = _changed(conn, scope)
    since = _savings(conn, scope, found, changed)
    rows = [_row(fix, changed, since.get(fix.key)) for fix in add_up(found, weeks=weeks)]
    rows += [
        _row(fix, changed, None, estimated=True)
        for fix in add_up(_rewordings(conn, scope), weeks=weeks)
    ]
    rows.sort(key=lambda row: (row.mended_by is not None, -row.round_trips, -row.failures,
                               row.tool, row.field, row.remedy, row.detail))  # fmt: skip
    return FixList(
        rows=tuple(rows if limit is None else rows[:limit]),
        weeks=weeks,
        failures=len(failures),
        complete=len(failures) < MOST_FAILURES,
        unweighed=sampling(conn, scope.project_id).calls,
    )


def _failures(conn: Connection, scope: Scope) -> list[FixFailure]:
    newest = (
        select(tool_call.c.id)
        .where(failures_of(scope))
        .order_by(tool_call.c.occurred_at.desc(), tool_call.c.id.desc())
        .limit(MOST_FAILURES)
    )
    issues: defaultdict[int, list[FixIssue]] = defaultdict(list)
    for row in conn.execute(
        select(
            *(issue.c[name] for name in ("tool_call_id", "field_pattern", "field", "code")),
            *(issue.c[name] for name in ("near_miss", "expected", "received", "received_type")),
        )
        .where(issue.c.project_id == scope.project_id, issue.c.tool_call_id.in_(newest))
        .order_by(issue.c.tool_call_id, issue.c.position)
    ):
        near_miss = tuple(row.near_miss or ()) or inferred_remedies(
            row.expected, row.received, row.received_type
        )
        issues[row.tool_call_id].append(FixIssue(row.field_pattern, row.field, row.code, near_miss))
    source = tool_call.outerjoin(
        chain,
        and_(
            chain.c.project_id == tool_call.c.project_id,
            chain.c.chain_id == tool_call.c.chain_id,
        ),
    )
    rows = conn.execute(
        select(
            *(
                tool_call.c[name]
                for name in ("id", "event_id", "tool", "code", "reason", "session_id")
            ),
            *(tool_call.c[name] for name in ("chain_id", "attempt", "occurred_at", "time_source")),
            chain.c.calls,
            chain.c.round_trips,
            outcome_at(scope.now).label("outcome"),
        )
        .select_from(source)
        .where(tool_call.c.project_id == scope.project_id, tool_call.c.id.in_(newest))
    )
    return [_failure(row, tuple(issues.get(row.id, ()))) for row in rows]


def _failure(row: Any, issues: tuple[FixIssue, ...]) -> FixFailure:
    attempt = row.attempt or 1
    # Calls issued beside a failure are no round trips, so neither number alone is the rest.
    after = min(row.round_trips, row.calls - attempt) if row.calls is not None else 0
    return FixFailure(
        tool=row.tool,
        code=row.code or "",
        reason=row.reason,
        conversation=row.session_id or row.event_id,
        chain_id=row.chain_id,
        attempt=attempt,
        calls_after=max(0, after),
        switched=row.outcome == "switched",
        occurred_at=row.occurred_at if row.time_source != "none" else None,
        issues=issues,
    )


def _weeks(scope: Scope, failures: Sequence[FixFailure]) -> float | None:
    """Return the length of the window: what the query says, else from the first failure on."""
    times = [each.occurred_at for each in failures if each.occurred_at is not None]
    since, until = window(scope)
    begin = since if since is not None else min(times, default=None)
    end = until if until is not None else (scope.now if times else None)
    if begin is None or end is None or end <= begin:
        return None
    # What happened within hours says little about a week.
    return max((min(end, scope.now) - begin) / WEEK, 1 / 7)


def _rewordings(conn: Connection, scope: Scope) -> list[Opportunity]:
    """Messages after which the model fails again more often than after the others.

    What a better wording would save is estimated: as many of its failures would have been fixed
    by the next call as of all other failures that the model can fix.
    """
    scope = scope.narrowed("category:parameter")
    rows = [
        row
        for group in message_efficacy(conn, scope, minimum=FEWEST_ASKED)
        for row in group.rows
        if row.answered
    ]
    # Rows, not what they stand for: a fix is about what was sent.
    answered = sum(row.when_answered.n for row in rows)
    fixed = sum(row.when_answered.count for row in rows)
    found: list[Opportunity] = []
    for row in rows:
        own = row.when_answered
        others = answered - own.n
        if own.n < FEWEST_ASKED or others < FEWEST_ASKED:
            continue
        usual = (fixed - own.count) / others
        if own.high is None or own.high >= usual:
            continue  # its own interval reaches what is usual: chance
        found += _spread(conn, scope, row, usual - own.count / own.n)
    return found


def _spread(conn: Connection, scope: Scope, row: MessageRow, part: float) -> list[Opportunity]:
    """Return *part* of a round trip for every failure after which the model read the message."""
    key = FixKey(row.tool, "", "reword", row.message)
    each = next_calls(scope.narrowed(row.query)).c
    read = select(each.session_id, each.chain_id, each.at).where(each.answered == 1)
    return [Opportunity(key, session, chain, part, at) for session, chain, at in conn.execute(read)]


def _changed(conn: Connection, scope: Scope) -> dict[str, ChangeRow]:
    """Return the latest change of every tool that has one."""
    found: dict[str, ChangeRow] = {}
    for each in changes(conn, scope):
        if each.tool is not None:
            found.setdefault(each.tool, each)
    return found


def _savings(
    conn: Connection,
    scope: Scope,
    found: Sequence[Opportunity],
    changed: Mapping[str, ChangeRow],
) -> dict[FixKey, Since]:
    """Return what the fixes of changed tools have saved since."""
    groups: defaultdict[FixKey, list[Opportunity]] = defaultdict(list)
    for each in found:
        if each.key.tool in changed:
            groups[each.key].append(each)
    operations = {
        tool: [_operations(conn, side) for side in sides_of_change(scope, changed[tool])]
        for tool in {key.tool for key in groups}
    }
    sums = {
        key: saved_since(
            group, changed[key.tool].occurred_at, (operations[key.tool][0], operations[key.tool][1])
        )
        for key, group in groups.items()
    }
    return {key: since for key, since in sums.items() if since is not None}


def _operations(conn: Connection, scope: Scope) -> int:
    """Return the calls that are no retries: a fix does away with retries, not with these."""
    return (calls_by(conn, scope, "tool").total() - chain_totals(conn, scope).round_trips).whole


def _row(
    fix: Fix, changed: Mapping[str, ChangeRow], since: Since | None, *, estimated: bool = False
) -> FixRow:
    key = fix.key
    said = advice(key)
    change = changed.get(key.tool)
    gone = change is not None and fix.last_at is not None and fix.last_at < change.occurred_at
    return FixRow(
        tool=key.tool,
        field=key.field,
        remedy=key.remedy,
        detail=key.detail,
        title=said.title,
        code=said.code,
        round_trips=fix.round_trips,
        failures=fix.failures,
        chains=fix.chains,
        per_week=fix.per_week,
        low=fix.low,
        high=fix.high,
        estimated=estimated,
        query=_evidence(key),
        last_at=fix.last_at,
        mended_by=change.label if gone and change is not None else None,
        changed_by=None if change is None else change.label,
        saved_since=since.round_trips if since else None,
        saved_since_low=since.low if since else None,
        saved_since_high=since.high if since else None,
    )


def _evidence(key: FixKey) -> str:
    clauses = [("tool", key.tool)]
    if key.remedy == "expose":
        clauses.append(("code", "not_available"))
    elif key.remedy == "reword":
        clauses.append(("message", key.detail))
    elif key.remedy == "all_at_once":
        clauses += [("has", "issue"), ("chain", "recovered")]
    elif key.remedy == "alias":
        clauses += [("field", key.detail), ("issue", "unknown_field")]
    elif key.remedy == "default":
        clauses += [("field_pattern", key.field), ("issue", "missing_field")]
    else:
        # Without the remedy: a sender that names none is believed by what it received.
        clauses.append(("field_pattern", key.field))
    return " ".join(str(Clause(name, (Pattern((value,)),))) for name, value in clauses)
