"""How a query restricts failures by their issues, which are rows of another table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from sqlalchemy import ColumnElement, FromClause, and_, exists, literal, not_, or_, select, true

from toolfault_collector.storage.tables import issue
from toolfault_dashboard.search.ast import Clause, Pattern
from toolfault_dashboard.search.sql import by_storage, json_list_holds, matches_any, patterns_of

__all__ = [
    "KEYS",
    "carries",
    "condition",
    "is_about_one",
    "is_one_of_none",
    "none_of",
    "one_of_all",
]

_Condition = ColumnElement[bool]


def condition(table: FromClause, key: str, patterns: tuple[Pattern, ...]) -> _Condition:
    """Return the condition for failures in *table* with an issue whose *key* matches a pattern."""
    named = tuple(pattern for pattern in patterns if key != "field" or pattern.exact != "")
    found: list[_Condition] = []
    if named:
        found.append(_any_issue(table, _MATCHING[key](named)))
    if len(named) < len(patterns):
        found.append(not_(carries(table, "field")))
    return or_(*found)


def carries(table: FromClause, key: str) -> _Condition:
    """Return the condition for failures in *table* that have an issue with a *key*."""
    return _any_issue(table, _CARRYING[key]())


def is_about_one(clause: Clause) -> bool:
    """Say whether *clause* asks for an issue of a kind: with others of these for the same one."""
    if clause.negated or clause.key not in KEYS:
        return False
    return all(pattern.exact != "" for pattern in patterns_of(clause))


def one_of_all(table: FromClause, clauses: Iterable[Clause]) -> _Condition:
    """Return the condition for failures in *table* with one issue that all of *clauses* are about.

    Args:
        table: ``tool_call`` or an alias of it.
        clauses: Those that `is_about_one` is true of.
    """
    wanted = [or_(*_MATCHING[clause.key](patterns_of(clause))) for clause in clauses]
    return _any_issue(table, [and_(*wanted)])


def is_one_of_none(clause: Clause) -> bool:
    """Say whether *clause* asks for failures that have no issue of a kind."""
    if not clause.negated:
        return False
    if clause.key == "field":
        return all(pattern.exact != "" for pattern in patterns_of(clause))
    if clause.key == "has":
        return all(pattern.exact in KEYS for pattern in patterns_of(clause))
    return clause.key in KEYS


def none_of(table: FromClause, clauses: Iterable[Clause]) -> _Condition:
    """Return the condition for failures in *table* that every one of *clauses* holds for.

    Who has no issue of this kind and none of that kind has none of either: one look at the issues
    of a failure answers for all of them, and most failures have to be looked at.

    Args:
        table: ``tool_call`` or an alias of it.
        clauses: Those that `is_one_of_none` is true of.
    """
    unwanted: list[_Condition] = []
    for clause in clauses:
        patterns = patterns_of(clause)
        if clause.key == "has":
            unwanted += [each for name in patterns for each in _CARRYING[name.exact or ""]()]
        else:
            unwanted += _MATCHING[clause.key](patterns)
    return not_(_any_issue(table, unwanted))


def _any_issue(table: FromClause, conditions: Sequence[_Condition]) -> _Condition:
    found = or_(*conditions)
    return by_storage(
        exists(
            select(literal(1))
            .select_from(issue)
            .where(issue.c.tool_call_id == table.c.id, found)
            .correlate(table)
        ),
        table.c.id.in_(select(issue.c.tool_call_id).where(found).correlate(None)),
    )


def _field(patterns: tuple[Pattern, ...]) -> list[_Condition]:
    # A link from a table asks for the root of an argument; a person types its path or pattern.
    columns = (issue.c.root_field, issue.c.field_pattern, issue.c.field)
    return [each for column in columns for each in matches_any(column, patterns)]


def _near_miss(patterns: tuple[Pattern, ...]) -> list[_Condition]:
    anything = Pattern(("", ""))
    return [
        json_list_holds(issue.c.near_miss, anything if pattern.exact == "any" else pattern)
        for pattern in patterns
    ]


_MATCHING: Final[dict[str, Callable[[tuple[Pattern, ...]], list[_Condition]]]] = {
    "field": _field,
    "field_pattern": lambda patterns: matches_any(issue.c.field_pattern, patterns),
    "issue": lambda patterns: matches_any(issue.c.code, patterns),
    "near_miss": _near_miss,
}
"""What an issue must be like for each key."""

_CARRYING: Final[dict[str, Callable[[], list[_Condition]]]] = {
    "field": lambda: [issue.c.root_field != ""],
    "field_pattern": lambda: [issue.c.root_field != ""],
    "issue": lambda: [true()],
    "near_miss": lambda: _near_miss((Pattern(("any",)),)),
}

KEYS: Final = frozenset(_MATCHING)
"""Keys whose values are those of the issues of a failure."""
