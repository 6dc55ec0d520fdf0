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
    **{key.column or key.name: key.audience for key in KEYS.values()},
    # What the model saw or sent.
    **dict.fromkeys(("text_llm", "expected", "received", "received_type", "snippet"), "llm"),
    **dict.fromkeys(("retryable", "retry_hint", "retry_context"), "llm"),
    **dict.fromkeys(("args_diff", "phantom_arguments"), "llm"),
    # What only those who run the system may know.
    **dict.fromkeys(("text_system", "exception_module", "exception_message"), "system"),
    **dict.fromkeys(("traceback", "adapter_failed", "tags", "extra"), "system"),
}
"""The lowest audience a reader needs; a column not named here is for everyone. What a query can
ask for says so itself (`toolfault_dashboard.search.keys`)."""


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
