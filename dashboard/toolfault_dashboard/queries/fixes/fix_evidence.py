"""The failures of a window as evidence for fixes, read segment by segment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Text,
    and_,
    case,
    cast,
    func,
    not_,
    or_,
    select,
    true,
)

from toolfault_collector.chains.fold import LOOK_BACK, ROUND_TRIP
from toolfault_collector.storage.cache_versions import QUARTER_US
from toolfault_collector.storage.database.engine import is_columnar
from toolfault_collector.storage.tables import chain, issue, tool_call
from toolfault_dashboard.analysis.fixes.inference import inferred_remedies
from toolfault_dashboard.analysis.fixes.opportunities import (
    FixFailure,
    FixIssue,
    opportunities,
)
from toolfault_dashboard.analysis.fixes.opportunity_arrays import (
    ByFix,
    OpportunityArrays,
    Wording,
    arrays_of,
    joined,
)
from toolfault_dashboard.analysis.fixes.wordings import Answers
from toolfault_dashboard.queries.conditions import failures_of, issues_of
from toolfault_dashboard.queries.counting.segments import in_segments, is_asked_at_once
from toolfault_dashboard.queries.failures.failures import count_failures
from toolfault_dashboard.queries.figures.clusters import hull, lies_within, reaching_out
from toolfault_dashboard.queries.fixes.messages import next_call
from toolfault_dashboard.queries.projects import written
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import between, window
from toolfault_dashboard.search.outcomes import outcome_in
from toolfault_dashboard.search.sql import by_storage

__all__ = ["MOST_FAILURES", "Evidence", "evidence"]

MOST_FAILURES: Final = 1_000_000
"""Failures that are looked at, the newest: what is kept of a day takes little."""

MOST_AT_ONCE: Final = 200_000
"""The same where nothing is kept, so that all are read for each reader."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """What failures of ignored kinds come to."""

    kinds: frozenset[int] = frozenset()  # those that were seen, by the number of their signature
    failures: int = 0
    cost: float = 0.0  # calls spent that belong to them


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the failures of a scope could have been spared by.

    Attributes:
        fixes: What was found, by fix.
        wordings: What came of the failures with each text, those of ignored kinds among them.
        ignored: What belongs to failures of kinds that are ignored, which no fix has.
        failures: How many were looked at, those of ignored kinds among them.
        first_at: When the first of them ended; None where none has a time.
        complete: Whether they are all failures of the scope, or only its newest.
    """

    fixes: ByFix
    wordings: Mapping[Wording, Answers]
    ignored: Ignored
    failures: int
    first_at: int | None
    complete: bool


@dataclass(frozen=True, slots=True)
class _Segment:
    """The evidence of a segment of a window.

    A chain is of one conversation. So are the sums of which an interval is made: of conversations
    that lie within the segment the opportunities are known, of others the failures are kept as they
    are, until the segments are together in which they lie.

    Attributes:
        window: The segment.
        found: The opportunities of the conversations that lie within it.
        beyond: The failures of the others.
        spans: From when to when each of those goes on.
    """

    window: tuple[int | None, int | None]
    found: OpportunityArrays
    beyond: Sequence[FixFailure]
    spans: Mapping[str, tuple[int, int]]

    def __len__(self) -> int:
        return len(self.found) // _OF_A_ROW + len(self.found.keys) + len(self.beyond)


_OF_A_ROW: Final = 4  # opportunities in arrays that take as much memory as a row of other answers


def evidence(
    conn: Connection,
    scope: Scope,
    ignored: frozenset[int] = frozenset(),
    *,
    most: int | None = MOST_FAILURES,
) -> Evidence:
    """Read the failures of *scope*, or the newest of them.

    What a failure cost is worked out among all of them, then those of ignored kinds are set apart:
    so the costs of both add up to those of all.

    Args:
        conn: Open connection.
        scope: Which failures.
        ignored: Kinds to set apart, by the number of their signature.
        most: How many failures are looked at; None for all.
    """
    if most is not None:
        most = min(most, MOST_AT_ONCE) if is_asked_at_once(conn, scope) else most
    looked_at = scope if most is None else _newest(conn, scope, most)
    if is_asked_at_once(conn, looked_at):
        found = arrays_of(opportunities(_failures(conn, looked_at)))
    else:
        segments = in_segments(
            conn, looked_at, _read, outcomes=True, together=_together, stored=True
        )
        whole = _together(segments)
        found = joined([whole.found, arrays_of(opportunities(whole.beyond))])
    left_out, others = found.of_kinds(ignored)
    return Evidence(
        fixes=ByFix(others),
        wordings=found.wordings(),
        ignored=Ignored(left_out.kinds, len(left_out), float(left_out.cost.sum())),
        failures=len(found),
        first_at=found.first_at,
        complete=looked_at is scope,
    )


def _newest(conn: Connection, scope: Scope, most: int) -> Scope:
    """Return *scope* from the quarter of a day on after which it has at most *most* failures.

    Its newest quarter stays, whatever it has. What is known of quarters need not be read again.
    The failures are not counted where the project has had no more calls and counters altogether.
    """
    if written(conn, scope.project_id) <= most or count_failures(conn, scope) <= most:
        return scope
    quarter = (tool_call.c.occurred_at // QUARTER_US).label("quarter")
    counts = select(quarter, func.count()).where(failures_of(scope)).group_by(quarter)
    newest_first = sorted(conn.execute(counts).all(), reverse=True)
    sums = accumulate(int(number) for _, number in newest_first)
    kept = max(1, sum(1 for each in sums if each <= most))
    return between(scope, int(newest_first[kept - 1][0]) * QUARTER_US, window(scope)[1])


def _read(conn: Connection, scope: Scope) -> _Segment:
    failures = _failures(conn, scope)
    talks = {each.conversation for each in failures}
    reaching = reaching_out(conn, scope, sorted(talks))
    spans = {name: span for name, span in reaching.items() if name in talks}
    return _Segment(
        window(scope),
        arrays_of(opportunities(each for each in failures if each.conversation not in spans)),
        [each for each in failures if each.conversation in spans],
        spans,
    )


def _together(segments: Sequence[_Segment]) -> _Segment:
    if len(segments) == 1:
        return segments[0]
    own = hull([segment.window for segment in segments])
    spans = {name: span for segment in segments for name, span in segment.spans.items()}
    left = {name: span for name, span in spans.items() if not lies_within(own, span)}
    beyond = [each for segment in segments for each in segment.beyond]
    within = arrays_of(opportunities(each for each in beyond if each.conversation not in left))
    return _Segment(
        own,
        joined([*(segment.found for segment in segments), within]),
        [each for each in beyond if each.conversation in left],
        left,
    )


def _failures(conn: Connection, scope: Scope) -> list[FixFailure]:
    issues = _issues(conn, scope)
    none: Sequence[FixIssue] = ()
    return [
        FixFailure(
            *(tool, code, reason, talk, chain_id, attempt, after, other_calls, bool(abandoned), at),
            *(tuple(issues.get(number, none)), bool(round_trip), kind, said, answer),
        )
        for (
            number, tool, code, reason, talk, chain_id, attempt, after, other_calls, abandoned,
            at, round_trip, kind, said, answer,
        ) in conn.execute(_rows(conn, scope)).all()
    ]  # fmt: skip


def _issues(conn: Connection, scope: Scope) -> Mapping[int, list[FixIssue]]:
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
        .where(failures_of(scope), issues_of(scope))
        .order_by(tool_call.c.id, issue.c.position)
    ).all():
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


def _rows(conn: Connection, scope: Scope) -> Any:
    which = failures_of(scope)
    following, beside, joins = next_call(which)
    their_chains = select(tool_call.c.chain_id).where(which).correlate(None)
    answered = following.c.id.is_not(None) & not_(beside)
    source: FromClause = tool_call.outerjoin(
        chain,
        and_(
            chain.c.project_id == tool_call.c.project_id,
            chain.c.chain_id == tool_call.c.chain_id,
            by_storage(true(), chain.c.chain_id.in_(their_chains)),
        ),
    ).outerjoin(following, joins)
    source, so_far = _trips_so_far(conn, scope, source)
    # Behind its id in the order of a `FixFailure`, without its issues.
    return (
        select(
            tool_call.c.id,
            tool_call.c.tool,
            func.coalesce(tool_call.c.code, "").label("code"),
            tool_call.c.reason,
            func.coalesce(tool_call.c.session_id, tool_call.c.event_id).label("conversation"),
            tool_call.c.chain_id,
            func.coalesce(tool_call.c.attempt, 1).label("attempt"),
            _trips_after(so_far).label("calls_after"),
            case((chain.c.chain_id == tool_call.c.event_id, chain.c.other_calls), else_=0).label(
                "other_calls"
            ),
            outcome_in(scope.now, ("abandoned",)).label("abandoned"),
            case((tool_call.c.time_source != "none", tool_call.c.occurred_at)).label("at"),
            (tool_call.c.chain_marks.op("&")(ROUND_TRIP) == ROUND_TRIP).label("round_trip"),
            tool_call.c.signature_id,
            # Where the call was wrong as it was made the text is about the cause.
            case((tool_call.c.category == "parameter", tool_call.c.message_id)).label("said"),
            case((answered & following.c.success.is_(True), 2), (answered, 1), else_=0).label(
                "answer"
            ),
        )
        .select_from(source)
        .where(which)
    )


def _trips_so_far(
    conn: Connection, scope: Scope, source: FromClause
) -> tuple[FromClause, ColumnElement[int]]:
    """Return *source* and the round trips of its chain up to a failure, if that is numbered."""
    member = tool_call.alias("member")
    own = member.c
    is_trip = own.chain_marks.op("&")(ROUND_TRIP) == ROUND_TRIP
    if is_columnar(conn):
        trips = func.sum(case((is_trip, 1), else_=0))
        so_far = trips.over(partition_by=own.chain_id, order_by=own.attempt).label("so_far")
        unclear = select(chain.c.chain_id).where(
            chain.c.project_id == scope.project_id, not_(_is_alone())
        )
        of_these = (own.project_id == scope.project_id, own.chain_id.in_(unclear))
        numbered = select(own.id, so_far).where(*of_these).subquery()
        return source.outerjoin(numbered, numbered.c.id == tool_call.c.id), numbered.c.so_far
    looked_up = select(func.count()).where(
        own.project_id == chain.c.project_id,
        own.chain_id == chain.c.chain_id,
        own.attempt <= tool_call.c.attempt,
        is_trip,
    )
    return source, looked_up.correlate(chain, tool_call).scalar_subquery()


def _trips_after(so_far: ColumnElement[int]) -> ColumnElement[int]:
    """Return the round trips of its chain after a failure; 0 after those that are not numbered."""
    return case(
        (or_(chain.c.id.is_(None), tool_call.c.attempt > LOOK_BACK), 0),
        (_is_alone(), chain.c.calls - tool_call.c.attempt),
        else_=chain.c.round_trips - so_far,
    )


def _is_alone() -> ColumnElement[bool]:
    """Say whether the row of a chain tells its round trips: no call was issued beside another."""
    return chain.c.calls == chain.c.round_trips + 1
