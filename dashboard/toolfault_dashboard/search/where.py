"""From the tree to bound SQL: how a query restricts failures, chains, calls and folded calls.

Each function returns one condition that binds ``project_id`` first, so that no statement built from
it can read another project. Every value is a bound parameter; nothing of a query becomes SQL text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
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
from toolfault_collector.storage.chains.rungs import rung
from toolfault_collector.storage.tables import (
    call_counts,
    chain,
    kind_state,
    message,
    signature,
    tool_call,
)
from toolfault_dashboard.search import of_issues
from toolfault_dashboard.search.ast import TEXT, Clause, NumberRange, Pattern, Query
from toolfault_dashboard.search.keys import KEYS, TAG_PREFIX
from toolfault_dashboard.search.outcomes import outcome_in
from toolfault_dashboard.search.sql import (
    arms_match,
    by_storage,
    contains_folded,
    matches_any,
    patterns_of,
    rare,
)
from toolfault_dashboard.search.states import kinds_with_state, state_at
from toolfault_dashboard.search.times import Moment

__all__ = ["calls_where", "chains_where", "counts_where", "failures_where"]

_Condition = ColumnElement[bool]

_CALL_COLUMNS: Final = {name: key.column for name, key in KEYS.items() if key.column}
_CHAIN_COLUMNS: Final = {name: key.chain_column for name, key in KEYS.items() if key.chain_column}
"""The chain repeats these for its opening failure, so that no join is needed."""

_COUNT_COLUMNS: Final = frozenset(_CALL_COLUMNS.keys() & call_counts.c.keys())
"""Keys that folded successes are counted by."""


def failures_where(
    project_id: int, query: Query, now: int, *, table: FromClause = tool_call
) -> _Condition:
    """Return the condition for failures of the scope on ``tool_call`` or an alias of it."""
    return and_(
        table.c.project_id == project_id,
        table.c.success == false(),
        *_call_clauses(query.clauses, table, project_id, now),
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

    They know no conversation: a query for one leaves them out, a query for all but one keeps them.
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
        elif clause.key == "conversation" and not clause.negated:
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
        elif clause.key == "code":
            conditions.append(_signed(clause, _code_of_chain(clause, project_id)))
        else:
            of_opening.append(clause)
    if of_opening:
        opening = tool_call.alias("opening")
        found = (
            opening.c.project_id == project_id,
            *_call_clauses(of_opening, opening, project_id, now),
        )
        conditions.append(_of_opening(opening, found))
    return and_(*conditions)


def _call_clauses(
    clauses: Iterable[Clause], table: FromClause, project_id: int, now: int
) -> list[_Condition]:
    """Return the conditions of *clauses* on calls, in the order in which to look at them.

    An engine looks at conditions in the order in which they are written, as far as it knows no
    better. First come columns, then what costs little for each failure that it leaves out.
    """
    clauses = list(clauses)
    at_once = [clause for clause in clauses if of_issues.is_one_of_none(clause)]
    # What is asked of issues is asked of one and the same; a key that comes again asks for another.
    first: dict[str, Clause] = {}
    for clause in filter(of_issues.is_about_one, clauses):
        first.setdefault(clause.key, clause)
    of_one = list(first.values())
    found = [
        (_turn(clause), _call_clause(clause, table, project_id, now))
        for clause in clauses
        if clause not in at_once and clause not in of_one
    ]
    if of_one:
        found.append((min(map(_turn, of_one)), of_issues.one_of_all(table, of_one)))
    if at_once:
        found.append((_turn(at_once[0]), of_issues.none_of(table, at_once)))
    return [condition for _, condition in sorted(found, key=itemgetter(0))]


_TURNS: Final = {
    "code": 1,
    "field": 1,
    "field_pattern": 1,
    "issue": 1,
    TEXT: 2,  # reads the row
    "near_miss": 3,  # every third failure has one
    "chain": 7,
}
_TURNS_OF_NEGATED: Final = {TEXT: 6, "chain": 7}  # others of the table above: 5


def _turn(clause: Clause) -> int:
    """Return when to look whether a row matches: a number that is lower the earlier."""
    if clause.key == "has":
        return 0 if of_issues.KEYS.isdisjoint(_names(clause)) else 5
    if clause.key == "chain" and not clause.negated and "recovered" not in _names(clause):
        return 4  # most chains recover
    if clause.negated and clause.key in _TURNS:
        return _TURNS_OF_NEGATED.get(clause.key, 5)
    return _TURNS.get(clause.key, 0)


def _signed(clause: Clause, condition: _Condition) -> _Condition:
    # A row that carries nothing is no match, so its negation is one: unknown must become false.
    return not_(func.coalesce(condition, false())) if clause.negated else condition


def _column_matches(clause: Clause, column: ColumnElement[Any]) -> _Condition:
    matching = arms_match if clause.key == "variant" else matches_any
    found = or_(*matching(column, patterns_of(clause)))
    return rare(found) if clause.key == "conversation" and all(_names(clause)) else found


def _names(clause: Clause) -> list[str]:
    return [pattern.exact or "" for pattern in patterns_of(clause)]


def _call_clause(clause: Clause, table: FromClause, project_id: int, now: int) -> _Condition:
    if clause.key in {"since", "until"}:
        return _moment(clause, table.c.occurred_at, now)
    if clause.key == "first_seen":
        return _first_seen(clause, table, project_id, now)
    if clause.key == "state":
        in_state = state_at(now).in_(_names(clause))
        return _signed(clause, _of_kinds(table, project_id, in_state))
    return _signed(clause, _call_condition(clause, table, project_id, now))


def _call_condition(clause: Clause, table: FromClause, project_id: int, now: int) -> _Condition:
    key = clause.key
    if key in _CALL_COLUMNS:
        return _column_matches(clause, table.c[_CALL_COLUMNS[key]])
    if key == "code":
        own = or_(*matches_any(table.c.code, patterns_of(clause)))
        return or_(own, of_issues.condition(table, "issue", patterns_of(clause)))
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
        return _outcome_of_call(clause, table, project_id, now)
    if key == "has":
        return or_(*(_carries(name, table, project_id) for name in _names(clause)))
    if key in _KEPT_APART:
        return _KEPT_APART[key](table, patterns_of(clause), project_id)
    return of_issues.condition(table, key, patterns_of(clause))


def _signature(table: FromClause, patterns: tuple[Pattern, ...], project_id: int) -> _Condition:
    # The project by its number, not by that of the row: the subquery is made once, not per row.
    found = select(signature.c.id).where(
        signature.c.project_id == project_id,
        or_(*matches_any(signature.c.fingerprint, patterns)),
    )
    return _or_nothing(table.c.signature_id, found, patterns)


def _first_seen(clause: Clause, table: FromClause, project_id: int, now: int) -> _Condition:
    """Return the condition for failures of kinds that were first seen at a moment or after it.

    What its source gave no time came neither before nor after.
    """
    new = select(signature.c.id).where(
        signature.c.project_id == project_id, signature.c.first_at >= _resolved(clause, now)
    )
    return and_(table.c.time_source != "none", table.c.signature_id.in_(new))


def _of_kinds(table: FromClause, project_id: int, condition: _Condition) -> _Condition:
    """Return the condition for failures of the kinds that *condition* is true of."""
    found = select(signature.c.id).select_from(kinds_with_state())
    return table.c.signature_id.in_(found.where(signature.c.project_id == project_id, condition))


def _owner(table: FromClause, patterns: tuple[Pattern, ...], project_id: int) -> _Condition:
    found = _of_kinds(table, project_id, or_(*matches_any(kind_state.c.owner, patterns)))
    if any(pattern.exact == "" for pattern in patterns):
        return or_(table.c.signature_id.is_(None), found)
    return found


def _message(table: FromClause, patterns: tuple[Pattern, ...], project_id: int) -> _Condition:
    found = select(message.c.id).where(
        message.c.project_id == project_id,
        or_(*matches_any(message.c.digest, patterns), *matches_any(message.c.text, patterns)),
    )
    return _or_nothing(table.c.message_id, found, patterns)


def _rung(table: FromClause, patterns: tuple[Pattern, ...], _project_id: int) -> _Condition:
    return or_(*matches_any(rung(table), patterns))


def _or_nothing(
    column: ColumnElement[Any], found: Select[tuple[int]], patterns: tuple[Pattern, ...]
) -> _Condition:
    # Whether there is any is asked once: where there is none, no row has to be read to know it.
    condition = and_(exists(found), column.in_(found))
    if any(pattern.exact == "" for pattern in patterns):
        return or_(column.is_(None), condition)
    return condition


_KEPT_APART: Final[dict[str, Callable[[FromClause, tuple[Pattern, ...], int], _Condition]]] = {
    "signature": _signature,
    "owner": _owner,
    "message": _message,
    "conversation_rung": _rung,
}
"""Keys of tables that hold each value once per project, and what is told of several columns."""


def _carries(name: str, table: FromClause, project_id: int) -> _Condition:
    if name == "owner":
        return _of_kinds(table, project_id, kind_state.c.owner.is_not(None))
    if name in _CALL_COLUMNS or name == "code":
        column = table.c[_CALL_COLUMNS.get(name, name)]
        return and_(column.is_not(None), column != "")
    if name in of_issues.KEYS:
        return of_issues.carries(table, name)
    column = {
        "chain": table.c.chain_id,
        "conversation_rung": table.c.session_id,
        "attempt": table.c.attempt,
        "duration": table.c.duration_ms,
        "signature": table.c.signature_id,
        "state": table.c.signature_id,
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
    return outcome_in(now, [name for name in _names(clause) if name != "none"])


def _code_of_chain(clause: Clause, project_id: int) -> _Condition:
    """Return the condition for chains whose opening failure, or an issue of it, has a code."""
    opening = tool_call.alias("opening_code")
    of_issue = _of_opening(
        opening,
        [
            opening.c.project_id == project_id,
            of_issues.condition(opening, "issue", patterns_of(clause)),
        ],
    )
    return or_(*matches_any(chain.c.first_code, patterns_of(clause)), of_issue)


def _of_opening(opening: FromClause, found: Collection[_Condition]) -> _Condition:
    """Return the condition for chains of whose opening call, in *opening*, all of *found* holds."""
    return by_storage(
        exists(
            select(literal(1))
            .select_from(opening)
            .where(opening.c.event_id == chain.c.chain_id, *found)
            .correlate(chain)
        ),
        chain.c.chain_id.in_(select(opening.c.event_id).where(*found).correlate(None)),
    )


def _outcome_of_call(clause: Clause, table: FromClause, project_id: int, now: int) -> _Condition:
    names = _names(clause)
    found: list[_Condition] = []
    if "none" in names:
        found.append(table.c.chain_id.is_(None))
    wanted = [name for name in names if name != "none"]
    if wanted:
        in_time = (chain.c.project_id == project_id, outcome_in(now, wanted))
        found.append(
            by_storage(
                exists(
                    select(literal(1))
                    .select_from(chain)
                    .where(chain.c.chain_id == table.c.chain_id, *in_time)
                    .correlate(table)
                ),
                table.c.chain_id.in_(select(chain.c.chain_id).where(*in_time).correlate(None)),
            )
        )
    return or_(*found)
