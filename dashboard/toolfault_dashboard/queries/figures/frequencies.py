"""How often each code, field, tool, model, message or signature fails, with its denominator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from sqlalchemy import (
    ColumnElement,
    Connection,
    Label,
    Select,
    case,
    func,
    literal,
    select,
    union_all,
)

from toolfault_collector.storage.tables import issue, message, signature, tool_call
from toolfault_dashboard.analysis.clusters import Moments
from toolfault_dashboard.analysis.weights import Amount, Amounts, total, weighted_rate
from toolfault_dashboard.queries.comparisons.changes import changes
from toolfault_dashboard.queries.conditions import failures_of, issues_of
from toolfault_dashboard.queries.counting.memoise import memoised
from toolfault_dashboard.queries.counting.rollups import tool_of_call
from toolfault_dashboard.queries.counting.sampling_weights import (
    amount,
    counted,
    counted_once,
    sampling,
)
from toolfault_dashboard.queries.counting.segments import in_segments, is_asked_at_once
from toolfault_dashboard.queries.failures.codes import of_other_issues
from toolfault_dashboard.queries.failures.failures import count_failures
from toolfault_dashboard.queries.failures.kinds import fields_in_words
from toolfault_dashboard.queries.figures.clusters import calls_of_conversations
from toolfault_dashboard.queries.figures.totals import calls_by, pairs
from toolfault_dashboard.queries.rows import ChangeRow, FrequencyRow, FrequencyTable
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.visibility import sees
from toolfault_dashboard.queries.windows import window
from toolfault_dashboard.search import KEYS, Clause, Moment, Pattern, Query, QueryError, arms_of

__all__ = ["FREQUENCIES", "Dimension", "by_field", "frequency", "new_signatures"]

Dimension = Literal[
    "code",
    "category",
    "tool",
    "model",
    "agent",
    "release",
    "variant",
    "environment",
    "framework",
    "field",
    "field_pattern",
    "message",
    "signature",
]

_ALL: Final = "All calls of the query and its time window."
_OF_TOOL: Final = "The calls of the tool that the row names."

FREQUENCIES: Final[tuple[Dimension, ...]] = get_args(Dimension)
"""What frequencies can be counted by."""

_OWN: Final = {
    each: f"The calls of the {each}." for each in FREQUENCIES if KEYS[each].restricts_calls
}


@dataclass(frozen=True, slots=True)
class _Group:
    """One group as the database counted it."""

    name: str
    tool: str | None
    code: str | None
    query: tuple[tuple[str, str], ...]
    failures: Amount
    first_at: int | None
    last_at: int | None
    new_since: str | None = None
    fields: str | None = None


def frequency(
    conn: Connection,
    scope: Scope,
    by: Dimension,
    *,
    minimum_calls: int = 0,
    limit: int | None = None,
) -> FrequencyTable:
    """Count the failures of the scope by one dimension; every row has its calls as denominator.

    A failure is counted once per row: of several issues on one argument (as a union of types
    reports them) only the argument counts. Fields are told apart by tool. By code a failure counts
    under its own code and under the codes of its issues.

    Args:
        conn: Open connection.
        scope: What to count.
        by: Dimension of the rows.
        minimum_calls: Rows with a smaller denominator are left out: their rates say nothing.
        limit: Most rows to return; None returns all.

    Returns:
        Rows, most failures first.

    Raises:
        QueryError: There is no such dimension, or the reader may not see it.
    """
    if by not in FREQUENCIES:
        raise QueryError(f"Count by one of {', '.join(FREQUENCIES)}.")
    if by == "message" and not sees(scope, "text_llm"):
        raise QueryError("Your role may not count by message.")
    groups = _groups(conn, scope, by)
    per_tool = calls_by(conn, scope, "tool")
    calls = per_tool.total()
    own = calls_by(conn, scope, by) if by in _OWN and by != "tool" else per_tool
    if by == "variant":
        own = _calls_by_arm(own)
    moments = _moments(conn, scope, by)
    rows = [
        _row(group, own if by in _OWN else None, per_tool, calls, moments(group.name))
        for group in groups
    ]
    rows = [row for row in rows if row.rate.n >= minimum_calls]
    rows.sort(key=_most_first)
    return FrequencyTable(
        by=by,
        rows=tuple(rows if limit is None else rows[:limit]),
        failures=_failures(conn, scope).whole,
        calls=calls.whole,
        denominator=_OWN.get(by, _OF_TOOL if by in _TOLD_APART_BY_TOOL else _ALL),
        groups=len(rows),
    )


def _most_first(row: FrequencyRow) -> tuple[float, str, str]:
    return -row.failures, row.name, row.tool or ""


def _groups(conn: Connection, scope: Scope, by: str) -> list[_Group]:
    if by == "signature":
        return _by_signature(conn, scope, by)  # what is new is a matter of the whole window
    segments = in_segments(
        conn, scope, _GROUPS.get(by, _by_column), by, together=_together, stored=by in _STORED
    )
    return segments[0] if len(segments) == 1 else _together(segments, by)


def _together(segments: Sequence[list[_Group]], *_args: Hashable) -> list[_Group]:
    members: defaultdict[tuple[Any, ...], list[_Group]] = defaultdict(list)
    for segment in segments:
        for group in segment:
            members[group.name, group.tool, group.code, group.query].append(group)
    return [_added(found) for found in members.values()]


def _added(groups: list[_Group]) -> _Group:
    return replace(
        groups[0],
        failures=total(group.failures for group in groups),
        first_at=min((g.first_at for g in groups if g.first_at is not None), default=None),
        last_at=max((g.last_at for g in groups if g.last_at is not None), default=None),
    )


_STORED: Final = ("code", "field")  # few, and seen by every audience
_TOLD_APART_BY_TOOL: Final = ("field", "field_pattern", "signature")


def _failures(conn: Connection, scope: Scope) -> Amount:
    if is_asked_at_once(conn, scope):
        return total(each.failures for each in pairs(conn, scope).values())
    if not sampling(conn, scope.project_id).failures:
        return amount([count_failures(conn, scope)])
    return amount(conn.execute(select(*counted(sampled=True)).where(_where(scope))).one())


def _calls_by_arm(calls: Amounts) -> Amounts:
    found = Amounts()
    for variant, number in calls.items():
        for arm in arms_of(variant):
            found.add(arm, number)
    return found


def _moments(conn: Connection, scope: Scope, by: str) -> Callable[[str], Moments | None]:
    """Return what is known of the conversations of each row; nothing but by tool and by code."""
    if by == "tool":
        of_tools = calls_of_conversations(conn, scope, "tool")
        return lambda tool: of_tools.of_tool(tool)[0]
    if by == "code":
        return calls_of_conversations(conn, scope, "code").of_code
    return lambda _: None


def _row(
    group: _Group,
    own: Amounts | None,
    per_tool: Amounts,
    calls: Amount,
    moments: Moments | None = None,
) -> FrequencyRow:
    if own is not None:
        n = own[group.name]
    elif group.tool is not None:
        n = per_tool[group.tool]
    else:
        n = calls
    clauses = (Clause(key, (Pattern((value,)),)) for key, value in group.query)
    return FrequencyRow(
        name=group.name,
        tool=group.tool,
        code=group.code,
        query=" ".join(str(clause) for clause in clauses),
        failures=group.failures.whole,
        rate=weighted_rate(group.failures, n, moments),
        first_at=group.first_at,
        last_at=group.last_at,
        new_since=group.new_since,
        fields=group.fields,
    )


def _times() -> tuple[Label[Any], Label[Any]]:
    timed = case((tool_call.c.time_source != "none", tool_call.c.occurred_at))
    return func.min(timed).label("first_at"), func.max(timed).label("last_at")


def _where(scope: Scope) -> ColumnElement[bool]:
    return failures_of(scope)


def _numbers(conn: Connection, scope: Scope) -> list[ColumnElement[Any]]:
    return counted(sampled=sampling(conn, scope.project_id).failures)


def _amount(row: Any) -> Amount:
    return amount([getattr(row, name) for name in ("n", "weight", "squares") if hasattr(row, name)])


def _by_column(conn: Connection, scope: Scope, by: str) -> list[_Group]:
    found = [_group(by, row) for row in conn.execute(_own(conn, scope, by))]
    return _by_arm(found) if by == "variant" else found


def _own(conn: Connection, scope: Scope, by: str) -> Select[Any]:
    name = func.coalesce(tool_call.c[by], "").label("name")
    return select(name, *_numbers(conn, scope), *_times()).where(_where(scope)).group_by(name)


def _group(by: str, row: Any) -> _Group:
    return _Group(
        name=row.name,
        tool=None,
        code=None,
        query=((by, row.name),),
        failures=_amount(row),
        first_at=row.first_at,
        last_at=row.last_at,
    )


def _by_code(conn: Connection, scope: Scope, by: str) -> list[_Group]:
    """Count a failure under its own code, and under the codes of its issues."""
    sampled = sampling(conn, scope.project_id).failures
    of_issues = of_other_issues(
        failures_of(scope) & issues_of(scope), sampled=sampled, times=_times()
    )
    rows = conn.execute(union_all(_own(conn, scope, by), of_issues))
    return _together([[_group(by, row) for row in rows]])


def _by_arm(groups: list[_Group]) -> list[_Group]:
    """Count a conversation that is in several trials under each of its arms."""
    members: defaultdict[str, list[_Group]] = defaultdict(list)
    for group in groups:
        for arm in arms_of(group.name):
            members[arm].append(group)
    return [
        replace(_added(found), name=arm, query=(("variant", arm),))
        for arm, found in members.items()
    ]


@memoised
def by_field(conn: Connection, scope: Scope, by: str) -> list[_Group]:
    """Count failures by tool and argument, those without one under no name."""
    column = issue.c.root_field if by == "field" else issue.c.field_pattern
    named = counted_once(
        (column.label("name"), tool := tool_of_call()),
        issue.join(tool_call, tool_call.c.id == issue.c.tool_call_id),
        _where(scope) & issues_of(scope) & (column != ""),
        sampled=sampling(conn, scope.project_id).failures,
        times=_times(),
    )
    nameless = scope.narrowed('field:""')
    bare = (
        select(
            literal("").label("name"),
            tool,
            *_numbers(conn, scope),
            *_times(),
        )
        .where(_where(nameless))
        .group_by(tool)
    )
    return [
        _Group(
            name=row.name,
            tool=row.tool,
            code=None,
            query=(("tool", row.tool), (by if row.name else "field", row.name)),
            failures=_amount(row),
            first_at=row.first_at,
            last_at=row.last_at,
        )
        for row in conn.execute(union_all(named, bare))
    ]


def _by_message(conn: Connection, scope: Scope, _by: str) -> list[_Group]:
    rows = conn.execute(
        select(
            message.c.text,
            message.c.digest,
            *_numbers(conn, scope),
            *_times(),
        )
        .select_from(tool_call.outerjoin(message, message.c.id == tool_call.c.message_id))
        .where(_where(scope))
        .group_by(message.c.text, message.c.digest)
    )
    return [
        _Group(
            name=row.text or "",
            tool=None,
            code=None,
            query=(("message", row.digest or ""),),
            failures=_amount(row),
            first_at=row.first_at,
            last_at=row.last_at,
        )
        for row in rows
    ]


def _by_signature(conn: Connection, scope: Scope, _by: str) -> list[_Group]:
    latest = _latest_changes(conn, scope)
    return _signatures(conn, scope, latest)


def _signatures(
    conn: Connection,
    scope: Scope,
    latest: Mapping[str | None, ChangeRow],
    *only: ColumnElement[bool],
) -> list[_Group]:
    columns = (
        *(signature.c[name] for name in ("fingerprint", "tool", "code", "fields")),
        signature.c.first_at.label("appeared_at"),
    )
    rows = conn.execute(
        select(*columns, *_numbers(conn, scope), *_times())
        .select_from(tool_call.outerjoin(signature, signature.c.id == tool_call.c.signature_id))
        .where(_where(scope), *only)
        .group_by(*columns)
    )
    return [
        _Group(
            name=row.fingerprint or "",
            tool=row.tool,
            code=row.code,
            query=(("signature", row.fingerprint or ""),),
            failures=_amount(row),
            first_at=row.first_at,
            last_at=row.last_at,
            new_since=_new_since(row, latest),
            fields=fields_in_words(row.fields) if row.fields else "",
        )
        for row in rows
    ]


def _latest_changes(conn: Connection, scope: Scope) -> dict[str | None, ChangeRow]:
    """Return the latest recorded change of every tool, and under None that of all tools."""
    _, until = window(scope)
    end = min(scope.now, scope.now if until is None else until)
    everything = replace(scope, query=Query((Clause("until", (Moment(at=end + 1),)),)))
    found: dict[str | None, ChangeRow] = {}
    for each in changes(conn, everything):
        found.setdefault(each.tool, each)
    return found


def _new_since(row: Any, latest: Mapping[str | None, ChangeRow]) -> str | None:
    if row.first_at is None or row.appeared_at is None:
        return None  # what has no time came neither before nor after
    of_tool = [latest[tool] for tool in (row.tool, None) if tool in latest]
    change = max(of_tool, key=lambda each: each.occurred_at, default=None)
    if change is None or row.appeared_at < change.occurred_at:
        return None
    return change.label


def new_signatures(
    conn: Connection, scope: Scope, since: int, *, limit: int
) -> tuple[FrequencyRow, ...]:
    """Return the signatures of the scope that were never seen before a moment.

    Args:
        conn: Open connection.
        scope: Which failures.
        since: The moment, microseconds.
        limit: Most rows, those with the most failures.
    """
    if not is_asked_at_once(conn, scope):
        new = signature.c.project_id == scope.project_id, signature.c.first_at >= since
        if conn.execute(select(signature.c.id).where(*new).limit(1)).first() is None:
            return ()  # mostly: then none of many failures need be looked at
    segments = in_segments(conn, scope, _new, since, together=_together)
    groups = segments[0] if len(segments) == 1 else _together(segments, since)
    if not groups:
        return ()
    per_tool = calls_by(conn, scope, "tool")
    rows = [_row(group, None, per_tool, per_tool.total()) for group in groups]
    rows.sort(key=_most_first)
    return tuple(rows[:limit])


def _new(conn: Connection, scope: Scope, since: int) -> list[_Group]:
    return _signatures(conn, scope, {}, signature.c.first_at >= since)


_GROUPS: Final[dict[str, Callable[[Connection, Scope, str], list[_Group]]]] = {
    "code": _by_code,
    "field": by_field,
    "field_pattern": by_field,
    "message": _by_message,
}
