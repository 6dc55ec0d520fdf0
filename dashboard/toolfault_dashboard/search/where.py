"""From the tree to bound SQL: how a query restricts failures, chains, calls and folded calls.

Each function returns one condition that binds ``project_id`` first, so that no statement built from
it can read another project. Every value is a bound parameter; nothing of a query becomes SQL text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    FromClause,
    and_,
    exists,
    false,
    func,
    literal,
    not_,
    or_,
    select,
    true,
)

from toolfault_collector.clock import MINUTE_US
from toolfault_collector.tables import call_counts, chain, issue, message, signature, tool_call
from toolfault_dashboard.search.ast import TEXT, Clause, NumberRange, Pattern, Query
from toolfault_dashboard.search.keys import KEYS, TAG_PREFIX
from toolfault_dashboard.search.outcomes import outcome_at
from toolfault_dashboard.search.sql import (
    arms_match,
    contains_folded,
    json_list_holds,
    matches_any,
    patterns_of,
)
from toolfault_dashboard.search.times import Moment

__all__ = ["calls_where", "chains_where", "counts_where", "failures_where"]

_Condition = ColumnElement[bool]

_CALL_COLUMNS: Final = {
    "tool": "tool",
    "agent": "agent",
    "model": "model",
    "release": "release",
    "environment": "environment",
    "variant": "variant",
    "conversation": "session_id",
    "time": "time_source",
    "code": "code",
    "category": "category",
    "audience": "audience",
    "reason": "reason",
    "phase": "phase",
    "detection": "detection",
    "exception": "exception_type",
    "user": "user",
    "event": "event_id",
}
"""Keys that are one column of ``tool_call``."""

_CHAIN_COLUMNS: Final = {
    "tool": "tool",
    "agent": "agent",
    "model": "model",
    "release": "release",
    "environment": "environment",
    "variant": "variant",
    "conversation": "session_id",
    "time": "time_source",
    "code": "first_code",
    "category": "first_category",
    "event": "chain_id",
}
"""Keys whose value for the opening failure the chain repeats, so that no join is needed."""

_COUNT_COLUMNS: Final = ("tool", "agent", "model", "release", "environment", "variant")
"""Keys that folded successes are counted by."""


def failures_where(
    project_id: int, query: Query, now: int, *, table: FromClause = tool_call
) -> _Condition:
    """Return the condition for failures of the scope on ``tool_call`` or an alias of it."""
    return and_(
        table.c.project_id == project_id,
        table.c.success == false(),
        *(
            _call_clause(clause, table, project_id, now)
            for clause in sorted(query.clauses, key=_cost)
        ),
    )


def calls_where(project_id: int, query: Query, now: int) -> _Condition:
    """Return the condition for individually reported calls, failed or not, of the denominator."""
    return and_(
        tool_call.c.project_id == project_id,
        *(
            _call_clause(clause, tool_call, project_id, now)
            for clause in query.clauses
            if clause.key in KEYS and KEYS[clause.key].restricts_calls
        ),
    )


def counts_where(project_id: int, query: Query, now: int) -> _Condition:
    """Return the condition for folded successes of the denominator.

    They know no conversation: a query for one leaves them out.
    """
    conditions = [call_counts.c.project_id == project_id]
    for clause in query.clauses:
        if clause.key in _COUNT_COLUMNS:
            found = _column_matches(clause, call_counts.c[clause.key])
            conditions.append(_signed(clause, found))
        elif clause.key in {"since", "until"}:
            conditions.append(_minute(clause, now))
        elif clause.key == "time":
            # Folded successes come from a sender's own clock.
            conditions.append(true() if ("client" in _names(clause)) != clause.negated else false())
        elif clause.key == "conversation":
            conditions.append(false())
    return and_(*conditions)


def chains_where(project_id: int, query: Query, now: int) -> _Condition:
    """Return the condition for chains whose opening failure is in the scope."""
    conditions: list[_Condition] = [chain.c.project_id == project_id]
    of_opening: list[Clause] = []
    for clause in query.clauses:
        if clause.key in _CHAIN_COLUMNS:
            column = chain.c[_CHAIN_COLUMNS[clause.key]]
            conditions.append(_signed(clause, _column_matches(clause, column)))
        elif clause.key in {"since", "until"}:
            conditions.append(_moment(clause, chain.c.first_failed_at, now))
        elif clause.key == "chain":
            conditions.append(_signed(clause, _outcome(clause, now)))
        else:
            of_opening.append(clause)
    if of_opening:
        opening = tool_call.alias("opening")
        conditions.append(
            exists(
                select(literal(1))
                .select_from(opening)
                .where(
                    opening.c.project_id == project_id,
                    opening.c.event_id == chain.c.chain_id,
                    *(_call_clause(clause, opening, project_id, now) for clause in of_opening),
                )
                .correlate(chain)
            )
        )
    return and_(*conditions)


def _cost(clause: Clause) -> int:
    """Return a number that is higher the more it costs to look whether a row matches.

    An engine looks at conditions in the order in which they are written, as far as it knows no
    better: who is out by a column needs no look into another table.
    """
    if clause.key == "chain":
        return 3
    if clause.key in _OF_ISSUES or (clause.key == "has" and _OF_ISSUES & {*_names(clause)}):
        return 2
    return 1 if clause.key == TEXT else 0


_OF_ISSUES: Final = frozenset({"field", "field_pattern", "issue", "near_miss"})
"""Keys whose values are those of the issues of a failure."""


def _signed(clause: Clause, condition: _Condition) -> _Condition:
    # A row that carries nothing is no match, so its negation is one: unknown must become false.
    return not_(func.coalesce(condition, false())) if clause.negated else condition


def _column_matches(clause: Clause, column: ColumnElement[Any]) -> _Condition:
    matching = arms_match if clause.key == "variant" else matches_any
    return or_(*matching(column, patterns_of(clause)))


def _names(clause: Clause) -> list[str]:
    return [pattern.exact or "" for pattern in patterns_of(clause)]


def _call_clause(clause: Clause, table: FromClause, project_id: int, now: int) -> _Condition:
    if clause.key in {"since", "until"}:
        return _moment(clause, table.c.occurred_at, now)
    return _signed(clause, _call_condition(clause, table, project_id, now))


def _call_condition(clause: Clause, table: FromClause, project_id: int, now: int) -> _Condition:
    key = clause.key
    if key in _CALL_COLUMNS:
        return _column_matches(clause, table.c[_CALL_COLUMNS[key]])
    if key == TEXT:
        (pattern,) = patterns_of(clause)
        return contains_folded(table.c.text_llm, pattern.parts[0])
    if key.startswith(TAG_PREFIX):
        tag = table.c.tags[key.removeprefix(TAG_PREFIX)].as_string()
        return or_(*matches_any(tag, patterns_of(clause)))
    if key == "attempt":
        return _in_range(clause, table.c.attempt)
    if key == "duration":
        return _in_range(clause, table.c.duration_ms)
    if key == "chain":
        return _outcome_of_call(clause, table, now)
    if key == "has":
        return or_(*(_carries(name, table) for name in _names(clause)))
    if key in _KEPT_APART:
        return _KEPT_APART[key](table, patterns_of(clause), project_id)
    return _RELATED[key](table, patterns_of(clause))


def _field(table: FromClause, patterns: tuple[Pattern, ...]) -> _Condition:
    # A link from a table asks for the root of an argument; a person types its path or pattern.
    columns = (issue.c.root_field, issue.c.field_pattern, issue.c.field)
    named = tuple(pattern for pattern in patterns if pattern.exact != "")
    found: list[_Condition] = []
    if named:
        found.append(_issues(table, [c for col in columns for c in matches_any(col, named)]))
    if len(named) < len(patterns):
        found.append(not_(_carries("field", table)))
    return or_(*found)


def _field_pattern(table: FromClause, patterns: tuple[Pattern, ...]) -> _Condition:
    return _issues(table, matches_any(issue.c.field_pattern, patterns))


def _issue_code(table: FromClause, patterns: tuple[Pattern, ...]) -> _Condition:
    return _issues(table, matches_any(issue.c.code, patterns))


def _near_miss(table: FromClause, patterns: tuple[Pattern, ...]) -> _Condition:
    return _issues(
        table,
        [
            json_list_holds(
                issue.c.near_miss, Pattern(("", "")) if pattern.exact == "any" else pattern
            )
            for pattern in patterns
        ],
    )


def _issues(table: FromClause, conditions: Sequence[_Condition]) -> _Condition:
    return exists(
        select(literal(1))
        .select_from(issue)
        .where(issue.c.tool_call_id == table.c.id, or_(*conditions))
        .correlate(table)
    )


def _signature(table: FromClause, patterns: tuple[Pattern, ...], project_id: int) -> _Condition:
    # The project by its number, not by that of the row: the subquery is made once, not per row.
    found = select(signature.c.id).where(
        signature.c.project_id == project_id,
        or_(*matches_any(signature.c.fingerprint, patterns)),
    )
    return _or_nothing(table.c.signature_id, table.c.signature_id.in_(found), patterns)


def _message(table: FromClause, patterns: tuple[Pattern, ...], project_id: int) -> _Condition:
    found = select(message.c.id).where(
        message.c.project_id == project_id,
        or_(*matches_any(message.c.digest, patterns), *matches_any(message.c.text, patterns)),
    )
    return _or_nothing(table.c.message_id, table.c.message_id.in_(found), patterns)


def _or_nothing(
    column: ColumnElement[Any], condition: _Condition, patterns: tuple[Pattern, ...]
) -> _Condition:
    if any(pattern.exact == "" for pattern in patterns):
        return or_(column.is_(None), condition)
    return condition


_RELATED: Final[dict[str, Callable[[FromClause, tuple[Pattern, ...]], _Condition]]] = {
    "field": _field,
    "field_pattern": _field_pattern,
    "issue": _issue_code,
    "near_miss": _near_miss,
}

_KEPT_APART: Final[dict[str, Callable[[FromClause, tuple[Pattern, ...], int], _Condition]]] = {
    "signature": _signature,
    "message": _message,
}
"""Keys of tables that hold each value once per project."""


def _carries(name: str, table: FromClause) -> _Condition:
    if name in _CALL_COLUMNS:
        column = table.c[_CALL_COLUMNS[name]]
        return and_(column.is_not(None), column != "")
    if name in {"field", "field_pattern"}:
        return _issues(table, [issue.c.root_field != ""])
    if name == "issue":
        return _issues(table, [true()])
    if name == "near_miss":
        return _near_miss(table, (Pattern(("any",)),))
    column = {
        "chain": table.c.chain_id,
        "attempt": table.c.attempt,
        "duration": table.c.duration_ms,
        "signature": table.c.signature_id,
        "message": table.c.message_id,
    }[name]
    return column.is_not(None)


def _in_range(clause: Clause, column: ColumnElement[Any]) -> _Condition:
    found: list[_Condition] = []
    for value in clause.values:
        assert isinstance(value, NumberRange), "the parser reads these keys as ranges"
        ends: list[_Condition] = []
        if value.low is not None:
            ends.append(column >= value.low if value.low_included else column > value.low)
        if value.high is not None:
            ends.append(column <= value.high if value.high_included else column < value.high)
        found.append(and_(*ends))
    return or_(*found)


def _resolved(clause: Clause, now: int) -> int:
    (value,) = clause.values
    assert isinstance(value, Moment), "the parser reads these keys as moments"
    return value.resolve(now)


def _moment(clause: Clause, column: ColumnElement[Any], now: int) -> _Condition:
    at = _resolved(clause, now)
    return column >= at if clause.key == "since" else column < at


def _minute(clause: Clause, now: int) -> _Condition:
    # A folded minute cannot be cut. It lies on the side of its middle, so that "until X" and
    # "since X" share no minute and miss none.
    at = _resolved(clause, now) - MINUTE_US // 2
    return call_counts.c.minute >= at if clause.key == "since" else call_counts.c.minute < at


def _outcome(clause: Clause, now: int) -> _Condition:
    return outcome_at(now).in_([name for name in _names(clause) if name != "none"])


def _outcome_of_call(clause: Clause, table: FromClause, now: int) -> _Condition:
    names = _names(clause)
    found: list[_Condition] = []
    if "none" in names:
        found.append(table.c.chain_id.is_(None))
    wanted = [name for name in names if name != "none"]
    if wanted:
        found.append(
            exists(
                select(literal(1))
                .select_from(chain)
                .where(
                    chain.c.project_id == table.c.project_id,
                    chain.c.chain_id == table.c.chain_id,
                    outcome_at(now).in_(wanted),
                )
                .correlate(table)
            )
        )
    return or_(*found)
