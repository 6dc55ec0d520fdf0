"""How often each code, field, tool, model, message or signature fails, with its denominator."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from sqlalchemy import ColumnElement, Connection, case, func, literal, select, union_all

from toolfault_collector.tables import issue, message, signature, tool_call
from toolfault_dashboard.analysis.rates import rate
from toolfault_dashboard.queries.conditions import failures_of
from toolfault_dashboard.queries.failures import count_failures
from toolfault_dashboard.queries.rows import FrequencyRow, FrequencyTable
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.summaries import calls_by
from toolfault_dashboard.queries.visibility import sees
from toolfault_dashboard.search import Clause, Pattern, QueryError, arms_of

__all__ = ["FREQUENCIES", "Dimension", "frequency"]

Dimension = Literal[
    "code",
    "category",
    "tool",
    "model",
    "agent",
    "release",
    "variant",
    "environment",
    "field",
    "field_pattern",
    "message",
    "signature",
]

_ALL: Final = "All calls of the scope."
_OWN: Final = {
    "tool": "The calls of the tool.",
    "model": "The calls of the model.",
    "agent": "The calls of the agent.",
    "release": "The calls of the release.",
    "variant": "The calls of the variant.",
    "environment": "The calls of the environment.",
}
_OF_TOOL: Final = "The calls of the tool that the row names."

FREQUENCIES: Final[tuple[Dimension, ...]] = get_args(Dimension)
"""What frequencies can be counted by."""


@dataclass(frozen=True, slots=True)
class _Group:
    """One group as the database counted it."""

    name: str
    tool: str | None
    code: str | None
    query: tuple[tuple[str, str], ...]
    failures: int
    first_at: int | None
    last_at: int | None


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
    reports them) only the argument counts. Fields are told apart by tool.

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
    groups = _GROUPS.get(by, _by_column)(conn, scope, by)
    per_tool = calls_by(conn, scope, "tool")
    calls = per_tool.total()
    own = calls_by(conn, scope, by) if by in _OWN and by != "tool" else per_tool
    if by == "variant":
        own = _calls_by_arm(own)
    rows = [_row(group, own if by in _OWN else None, per_tool, calls) for group in groups]
    rows = [row for row in rows if row.rate.n >= minimum_calls]
    rows.sort(key=lambda row: (-row.failures, row.name, row.tool or ""))
    return FrequencyTable(
        by=by,
        rows=tuple(rows if limit is None else rows[:limit]),
        failures=count_failures(conn, scope),
        calls=calls,
        denominator=_OWN.get(by, _OF_TOOL if by in _TOLD_APART_BY_TOOL else _ALL),
        groups=len(rows),
    )


_TOLD_APART_BY_TOOL: Final = ("field", "field_pattern", "signature")


def _calls_by_arm(calls: Counter[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for variant, number in calls.items():
        for arm in arms_of(variant):
            found[arm] += number
    return found


def _row(
    group: _Group, own: Counter[str] | None, per_tool: Counter[str], calls: int
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
        failures=group.failures,
        rate=rate(group.failures, n),
        first_at=group.first_at,
        last_at=group.last_at,
    )


def _times() -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    timed = case((tool_call.c.time_source != "none", tool_call.c.occurred_at))
    return func.min(timed).label("first_at"), func.max(timed).label("last_at")


def _where(scope: Scope) -> ColumnElement[bool]:
    return failures_of(scope)


def _by_column(conn: Connection, scope: Scope, by: str) -> list[_Group]:
    name = func.coalesce(tool_call.c[by], "").label("name")
    rows = conn.execute(
        select(name, func.count().label("failures"), *_times()).where(_where(scope)).group_by(name)
    )
    found = [
        _Group(
            name=row.name,
            tool=None,
            code=None,
            query=((by, row.name),),
            failures=row.failures,
            first_at=row.first_at,
            last_at=row.last_at,
        )
        for row in rows
    ]
    return _by_arm(found) if by == "variant" else found


def _by_arm(groups: list[_Group]) -> list[_Group]:
    """Count a conversation that is in several trials under each of its arms."""
    members: defaultdict[str, list[_Group]] = defaultdict(list)
    for group in groups:
        for arm in arms_of(group.name):
            members[arm].append(group)
    return [
        _Group(
            name=arm,
            tool=None,
            code=None,
            query=(("variant", arm),),
            failures=sum(group.failures for group in found),
            first_at=min((g.first_at for g in found if g.first_at is not None), default=None),
            last_at=max((g.last_at for g in found if g.last_at is not None), default=None),
        )
        for arm, found in members.items()
    ]


def _by_field(conn: Connection, scope: Scope, by: str) -> list[_Group]:
    column = issue.c.root_field if by == "field" else issue.c.field_pattern
    named = (
        select(
            column.label("name"),
            tool_call.c.tool,
            func.count(func.distinct(tool_call.c.id)).label("failures"),
            *_times(),
        )
        .select_from(issue.join(tool_call, tool_call.c.id == issue.c.tool_call_id))
        .where(_where(scope), column != "")
        .group_by(column, tool_call.c.tool)
    )
    nameless = scope.narrowed('field:""')
    bare = (
        select(
            literal("").label("name"),
            tool_call.c.tool,
            func.count().label("failures"),
            *_times(),
        )
        .where(_where(nameless))
        .group_by(tool_call.c.tool)
    )
    return [
        _Group(
            name=row.name,
            tool=row.tool,
            code=None,
            query=(("tool", row.tool), (by if row.name else "field", row.name)),
            failures=row.failures,
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
            func.count().label("failures"),
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
            failures=row.failures,
            first_at=row.first_at,
            last_at=row.last_at,
        )
        for row in rows
    ]


def _by_signature(conn: Connection, scope: Scope, _by: str) -> list[_Group]:
    columns = (signature.c.fingerprint, signature.c.tool, signature.c.code)
    rows = conn.execute(
        select(*columns, func.count().label("failures"), *_times())
        .select_from(tool_call.outerjoin(signature, signature.c.id == tool_call.c.signature_id))
        .where(_where(scope))
        .group_by(*columns)
    )
    return [
        _Group(
            name=row.fingerprint or "",
            tool=row.tool,
            code=row.code,
            query=(("signature", row.fingerprint or ""),),
            failures=row.failures,
            first_at=row.first_at,
            last_at=row.last_at,
        )
        for row in rows
    ]


_GROUPS: Final[dict[str, Callable[[Connection, Scope, str], list[_Group]]]] = {
    "field": _by_field,
    "field_pattern": _by_field,
    "message": _by_message,
    "signature": _by_signature,
}
