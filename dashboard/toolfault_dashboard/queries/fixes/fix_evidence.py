"""The failures of a window as evidence for fixes, read part by part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Connection, Text, and_, case, cast, func, or_, select

from toolfault_collector.chains.fold import LOOK_BACK, ROUND_TRIP
from toolfault_collector.storage.tables import chain, issue, message, tool_call
from toolfault_dashboard.analysis.fixes.fixes import Tallied, Tally, tallied, tallies
from toolfault_dashboard.analysis.fixes.inference import inferred_remedies
from toolfault_dashboard.analysis.fixes.opportunities import (
    FixFailure,
    FixIssue,
    FixKey,
    Opportunity,
    opportunities,
)
from toolfault_dashboard.queries.conditions import failures_of
from toolfault_dashboard.queries.counting.parts import in_parts, is_asked_at_once
from toolfault_dashboard.queries.failures.failures import count_failures
from toolfault_dashboard.queries.fixes.messages import next_calls
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import window
from toolfault_dashboard.search.outcomes import outcome_in

__all__ = ["MOST_FAILURES", "Evidence", "WordingKey", "answers", "evidence"]

WordingKey = tuple[str, str, str]
"""Tool, code and digest of a message."""

MOST_FAILURES: Final = 200_000
"""Newest failures that are looked at."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """What failures of ignored kinds come to."""

    kinds: frozenset[int] = frozenset()  # those that were seen, by the number of their signature
    failures: int = 0
    cost: float = 0.0  # calls spent that belong to them

    def and_(self, other: Ignored) -> Ignored:
        """Return both together."""
        return Ignored(
            self.kinds | other.kinds, self.failures + other.failures, self.cost + other.cost
        )


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the failures of a scope could have been spared by.

    Attributes:
        groups: What was found, added up by fix, in one or several parts.
        found: The opportunities themselves, of the tools that were asked for.
        ignored: What belongs to failures of kinds that are ignored, which no group has.
        failures: How many were looked at, those of ignored kinds among them.
        first_at: When the first of them ended; None where none has a time.
        complete: Whether they are all failures of the scope, or only its newest.
    """

    groups: Mapping[FixKey, list[Tallied]]
    found: Mapping[FixKey, list[Opportunity]]
    ignored: Ignored
    failures: int
    first_at: int | None
    complete: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """The evidence of a part, but for chains that go beyond it: their failures as they are."""

    tallied: Mapping[FixKey, Tallied]
    found: Mapping[FixKey, list[Opportunity]]
    ignored: Ignored
    beyond: list[FixFailure] = field(default_factory=list)
    failures: int = 0
    first_at: int | None = None

    def __len__(self) -> int:
        return self.failures


def evidence(
    conn: Connection, scope: Scope, tools: Collection[str], ignored: frozenset[int] = frozenset()
) -> Evidence:
    """Read the failures of *scope*, or the newest of them.

    What a failure cost is worked out among all of them, then those of ignored kinds are set apart:
    so the costs of both add up to those of all.

    Args:
        conn: Open connection.
        scope: Which failures.
        tools: Whose opportunities are wanted one by one.
        ignored: Kinds to set apart, by the number of their signature.
    """
    wanted = tuple(sorted(tools))
    # Of few days nothing is kept, and so nothing needs counting before.
    if is_asked_at_once(conn, scope) or count_failures(conn, scope) > MOST_FAILURES:
        parts = [_read(conn, scope, wanted, ignored, most=MOST_FAILURES)]
    else:
        parts = in_parts(conn, scope, _read, wanted, ignored, outcomes=True)
    if any(part.beyond for part in parts):
        parts.append(_of([each for part in parts for each in part.beyond], wanted, ignored))
    found: defaultdict[FixKey, list[Opportunity]] = defaultdict(list)
    groups: defaultdict[FixKey, list[Tallied]] = defaultdict(list)
    for part in parts:
        for key, each in part.tallied.items():
            groups[key].append(each)
        for key, group in part.found.items():
            found[key] += group
    failures = sum(part.failures for part in parts)
    return Evidence(
        groups=groups,
        found=found,
        ignored=reduce(Ignored.and_, (part.ignored for part in parts), Ignored()),
        failures=failures,
        complete=failures < MOST_FAILURES or count_failures(conn, scope) == failures,
        first_at=min((at for part in parts if (at := part.first_at) is not None), default=None),
    )


def answers(
    conn: Connection, scope: Scope, ignored: frozenset[int] = frozenset()
) -> list[Mapping[WordingKey, Tallied]]:
    """Return the failures after which the model read their message, by wording.

    In one or several parts; each of them as if it saved one call. Those of the kinds *ignored* are
    left out.
    """
    return in_parts(conn, scope, _answers, ignored, outcomes=True)


def _answers(
    conn: Connection, scope: Scope, ignored: frozenset[int]
) -> Mapping[WordingKey, Tallied]:
    each = next_calls(scope).c
    read = (
        select(
            each.tool,
            func.coalesce(each.code, "").label("code"),
            message.c.digest,
            each.session_id,
            each.chain_id,
            each.at,
            each.signature_id,
        )
        .join_from(each.id.table, message, message.c.id == each.message_id)
        .where(each.answered == 1)
    )
    found: defaultdict[WordingKey, Tally] = defaultdict(Tally)
    for tool, code, digest, conversation, chain_id, at, kind in conn.execute(read):
        if kind in ignored:
            continue
        key = FixKey(tool, "", "reword", digest)
        one = Opportunity(key, conversation, chain_id, 1.0, at, kind=kind)
        found[tool, code, digest].count(one)
    return {key: tallied(tally) for key, tally in found.items()}


def _of(failures: Iterable[FixFailure], tools: Collection[str], ignored: frozenset[int]) -> _Part:
    """Return the opportunities of *failures*, which are counted elsewhere."""
    everything = opportunities(failures)
    found = [each for each in everything if each.kind not in ignored] if ignored else everything
    left_out = [each for each in everything if each.kind in ignored] if ignored else []
    apart: defaultdict[FixKey, list[Opportunity]] = defaultdict(list)
    for each in found:
        if each.key.tool in tools:
            apart[each.key].append(each)
    of_ignored = Ignored(
        frozenset(each.kind for each in left_out if each.kind is not None),
        len(left_out),
        sum(each.cost for each in left_out),
    )
    return _Part(tallies(found), apart, of_ignored)


class _Row(NamedTuple):
    """A failure with its chain, in the order in which `_rows` selects."""

    id: int
    started_at: int | None
    failed_until: int
    calls_after: int
    round_trip: bool
    tool: str
    code: str | None
    reason: str | None
    conversation: str
    chain_id: str | None
    attempt: int
    occurred_at: int | None
    other_calls: int
    abandoned: bool | None
    kind: int | None
    said: int | None


def _read(
    conn: Connection,
    scope: Scope,
    tools: tuple[str, ...],
    ignored: frozenset[int],
    *,
    most: int | None = None,
) -> _Part:
    since, until = window(scope)
    inside: list[FixFailure] = []
    beyond: list[FixFailure] = []
    issues = _issues(conn, scope, most)
    rows = [_Row(*row) for row in conn.execute(_rows(conn, scope, most))]
    for row in rows:
        failure = _failure(row, tuple(issues.get(row.id, ())))
        # A chain's failures end between its start and the latest of their ends.
        goes_beyond = row.started_at is not None and (
            (since is not None and row.started_at < since)
            or (until is not None and row.failed_until >= until)
        )
        (beyond if goes_beyond and most is None else inside).append(failure)
    first_at = min((row.occurred_at for row in rows if row.occurred_at is not None), default=None)
    found = _of(inside, tools, ignored)
    return replace(found, beyond=beyond, failures=len(rows), first_at=first_at)


def _which(scope: Scope, most: int | None) -> ColumnElement[bool]:
    """Return the condition for the failures that are looked at."""
    if most is None:
        return failures_of(scope)
    newest = (
        select(tool_call.c.id)
        .where(failures_of(scope))
        .order_by(tool_call.c.occurred_at.desc(), tool_call.c.id.desc())
        .limit(most)
    )
    return and_(tool_call.c.project_id == scope.project_id, tool_call.c.id.in_(newest))


def _issues(conn: Connection, scope: Scope, most: int | None) -> Mapping[int, list[FixIssue]]:
    found: defaultdict[int, list[FixIssue]] = defaultdict(list)
    # As text: read once for each way in which it is written.
    near_miss = cast(issue.c.near_miss, Text)
    for call_id, *about in conn.execute(
        select(
            *(issue.c[name] for name in ("tool_call_id", "field_pattern", "field", "code")),
            near_miss,
            *(issue.c[name] for name in ("expected", "received", "received_type")),
        )
        .select_from(issue.join(tool_call, tool_call.c.id == issue.c.tool_call_id))
        .where(_which(scope, most))
        .order_by(tool_call.c.id, issue.c.position)
    ):
        found[call_id].append(_issue(*about))
    return found


@lru_cache(maxsize=8_192)
def _issue(
    pattern: str,
    name: str,
    code: str,
    near_miss: str | None,
    expected: str | None,
    received: str | None,
    received_type: str | None,
) -> FixIssue:
    known = msgspec.json.decode(near_miss) if near_miss else None
    remedies = tuple(known or ()) or inferred_remedies(expected, received, received_type)
    return FixIssue(pattern, name, code, remedies, expected or "")


def _rows(conn: Connection, scope: Scope, most: int | None) -> Any:
    source = tool_call.outerjoin(
        chain,
        and_(
            chain.c.project_id == tool_call.c.project_id,
            chain.c.chain_id == tool_call.c.chain_id,
        ),
    )
    return (
        select(
            tool_call.c.id,
            *(chain.c[name] for name in ("started_at", "failed_until")),
            _trips_after().label("calls_after"),
            (tool_call.c.chain_marks.op("&")(ROUND_TRIP) == ROUND_TRIP).label("round_trip"),
            *(tool_call.c[name] for name in ("tool", "code", "reason")),
            func.coalesce(tool_call.c.session_id, tool_call.c.event_id).label("conversation"),
            tool_call.c.chain_id,
            func.coalesce(tool_call.c.attempt, 1).label("attempt"),
            case((tool_call.c.time_source != "none", tool_call.c.occurred_at)).label("at"),
            case((chain.c.chain_id == tool_call.c.event_id, chain.c.other_calls), else_=0).label(
                "other_calls"
            ),
            outcome_in(scope.now, ("abandoned",)).label("abandoned"),
            tool_call.c.signature_id,
            # Where the call was wrong as it was made the text is about the cause.
            case((tool_call.c.category == "parameter", tool_call.c.message_id)).label("said"),
        )
        .select_from(source)
        .where(_which(scope, most))
    )


def _trips_after() -> ColumnElement[int]:
    """Return the round trips of its chain after a failure; 0 after those that are not numbered."""
    member = tool_call.alias("member")
    so_far = (
        select(func.count())
        .where(
            member.c.project_id == chain.c.project_id,
            member.c.chain_id == chain.c.chain_id,
            member.c.attempt <= tool_call.c.attempt,
            member.c.chain_marks.op("&")(ROUND_TRIP) == ROUND_TRIP,
        )
        .correlate(chain, tool_call)
        .scalar_subquery()
    )
    # Its row tells, unless any of its calls was issued beside another.
    alone = chain.c.calls == chain.c.round_trips + 1
    return case(
        (or_(chain.c.id.is_(None), tool_call.c.attempt > LOOK_BACK), 0),
        (alone, chain.c.calls - tool_call.c.attempt),
        else_=chain.c.round_trips - so_far,
    )


def _failure(row: _Row, issues: tuple[FixIssue, ...]) -> FixFailure:
    return FixFailure(
        tool=row.tool,
        code=row.code or "",
        reason=row.reason,
        conversation=row.conversation,
        chain_id=row.chain_id,
        attempt=row.attempt,
        calls_after=row.calls_after,
        other_calls=row.other_calls,
        abandoned=bool(row.abandoned),
        occurred_at=row.occurred_at,
        issues=issues,
        round_trip=bool(row.round_trip),
        kind=row.kind,
        said=row.said,
    )
