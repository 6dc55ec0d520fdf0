"""Which stored columns a reader of each audience may see: one table for pages, API and exports."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnElement, FromClause, null

from toolfault_dashboard.queries.scope import Audience, Scope
from toolfault_dashboard.search import KEYS, TEXT, Clause, Pattern, QueryError
from toolfault_dashboard.search.ast import Value

__all__ = ["check_query", "seen", "sees"]

_RANK: Final[dict[Audience, int]] = {"user": 0, "llm": 1, "system": 2}

_LOWEST: Final[dict[str, Audience]] = {
    # What the model saw or sent.
    "text_llm": "llm",
    "expected": "llm",
    "received": "llm",
    "received_type": "llm",
    "snippet": "llm",
    "retryable": "llm",
    "retry_hint": "llm",
    "retry_context": "llm",
    "message": "llm",
    "args_diff": "llm",
    "near_miss": "llm",
    "phantom_arguments": "llm",
    # What only those who run the system may know.
    "text_system": "system",
    "exception_type": "system",
    "exception_module": "system",
    "exception_message": "system",
    "traceback": "system",
    "adapter_failed": "system",
    "user": "system",
    "tags": "system",
    "extra": "system",
}
"""The lowest audience a reader needs; a column not named here is for everyone."""


def sees(scope: Scope, column: str) -> bool:
    """Say whether the reader of *scope* may see *column*."""
    return _RANK[scope.audience] >= _RANK[_LOWEST.get(column, "user")]


def seen(scope: Scope, table: FromClause, column: str) -> ColumnElement[Any]:
    """Return *column* of *table*, or NULL where the reader may not see it: it is not even read."""
    found: ColumnElement[Any] = table.c[column] if sees(scope, column) else null()
    return found.label(column)


def check_query(scope: Scope) -> None:
    """Refuse a query that filters on what its reader may not see: counting would reveal it.

    Raises:
        QueryError: The query uses such a key.
    """
    for clause in scope.query.clauses:
        for name in _asked_for(clause):
            if _RANK[scope.audience] < _RANK[_needed(name)]:
                raise QueryError(f"Your role may not filter by {name}.", clause.column)


def _asked_for(clause: Clause) -> list[str]:
    """Return the keys whose values *clause* depends on: ``has:user`` looks at users."""
    if clause.key != "has":
        return [clause.key]
    return [name for value in clause.values if (name := _name(value)) is not None]


def _name(value: Value) -> str | None:
    return value.exact if isinstance(value, Pattern) else None


def _needed(name: str) -> Audience:
    if name == TEXT:
        return "llm"
    return KEYS[name].audience if name in KEYS else "system"  # a tag
