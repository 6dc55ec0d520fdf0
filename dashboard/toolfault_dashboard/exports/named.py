"""Every table that can be taken away, by name: the API, the command line and files share them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, get_args

from sqlalchemy import Connection

from toolfault_dashboard import queries
from toolfault_dashboard.exports.tables import table_stream
from toolfault_dashboard.queries import (
    CostRow,
    FixRow,
    KindRow,
    MessageRow,
    PhantomRow,
    RepeatRow,
    RowStream,
    RungRow,
    Scope,
    SilentRow,
)
from toolfault_dashboard.queries.rows import ChainGroup, ChangeRow, FrequencyRow

__all__ = ["TABLE_NAMES", "TableName", "named_table"]

TableName = Literal[
    "failures",
    "issues",
    "chains",
    "agents",
    "categories",
    "changes",
    "codes",
    "conversation_rungs",
    "costs_by_agent",
    "costs_by_code",
    "costs_by_field",
    "costs_by_model",
    "costs_by_release",
    "costs_by_tool",
    "costs_by_variant",
    "environments",
    "field_patterns",
    "fields",
    "fixes",
    "frameworks",
    "kinds",
    "messages",
    "models",
    "phantom_arguments",
    "releases",
    "repeated_executions",
    "round_trips_by_agent",
    "round_trips_by_code",
    "round_trips_by_field",
    "round_trips_by_model",
    "round_trips_by_release",
    "round_trips_by_tool",
    "round_trips_by_variant",
    "signatures",
    "silent_successes",
    "tools",
    "variants",
]

TABLE_NAMES: Final[tuple[TableName, ...]] = get_args(TableName)

_Rows = Callable[[Connection, Scope], RowStream]

_OF_CHAINS: Final = ("chains", "calls_spent", "round_trips", "abandoned")
"""What the chains of a tool cost, beside its failures."""


def named_table(conn: Connection, scope: Scope, name: TableName) -> RowStream:
    """Return the rows of table *name* under the filter of *scope*.

    Failures, issues and chains are read while they are written; the others are counted first.

    Raises:
        QueryError: The reader may not see the table, or not filter like this.
    """
    return _TABLES[name](conn, scope)


def _frequency(by: queries.Dimension) -> _Rows:
    def rows(conn: Connection, scope: Scope) -> RowStream:
        own = frozenset() if by == "signature" else frozenset({"new_since", "fields"})
        return table_stream(queries.frequency(conn, scope, by).rows, FrequencyRow, without=own)

    return rows


def _round_trips(by: str) -> _Rows:
    def rows(conn: Connection, scope: Scope) -> RowStream:
        return table_stream(queries.chains_by(conn, scope, by), ChainGroup)

    return rows


def _tools(conn: Connection, scope: Scope) -> RowStream:
    """Return the tools that failed, and what their chains cost."""
    found = _frequency("tool")(conn, scope)
    chains = {group.name: group for group in queries.chains_by(conn, scope, "tool")}
    rows = (
        (*row, *(getattr(chains.get(row[0]), column, 0) for column in _OF_CHAINS))
        for row in found.rows
    )
    kinds = {**found.kinds, **dict.fromkeys(_OF_CHAINS, "integer")}
    return RowStream((*found.columns, *_OF_CHAINS), found.times, rows, kinds)


def _costs(by: queries.CostGroup) -> _Rows:
    def rows(conn: Connection, scope: Scope) -> RowStream:
        prices = queries.prices_of(conn, scope.project_id)
        return table_stream(queries.costs(conn, scope, by, prices).rows, CostRow)

    return rows


def _messages(conn: Connection, scope: Scope) -> RowStream:
    groups = queries.message_efficacy(conn, scope)
    return table_stream([row for group in groups for row in group.rows], MessageRow)


def _fixes(conn: Connection, scope: Scope) -> RowStream:
    return table_stream(queries.fix_next(conn, scope).rows, FixRow)


def _kinds(conn: Connection, scope: Scope) -> RowStream:
    found = queries.kinds(conn, scope, drawn=False)
    return table_stream(found.rows, KindRow, without=frozenset({"counts"}))


def _changes(conn: Connection, scope: Scope) -> RowStream:
    return table_stream(queries.all_changes(conn, scope), ChangeRow)


def _phantoms(conn: Connection, scope: Scope) -> RowStream:
    return table_stream(queries.phantom_arguments(conn, scope), PhantomRow)


def _conversation_rungs(conn: Connection, scope: Scope) -> RowStream:
    return table_stream(queries.conversation_rungs(conn, scope).rows, RungRow)


def _repeats(conn: Connection, scope: Scope) -> RowStream:
    return table_stream(queries.repeated_executions(conn, scope), RepeatRow)


def _silent(conn: Connection, scope: Scope) -> RowStream:
    return table_stream(queries.silent_successes(conn, scope), SilentRow)


_TABLES: Final[dict[str, _Rows]] = {
    "failures": queries.iter_failures,
    "issues": queries.iter_issues,
    "chains": queries.iter_chains,
    "agents": _frequency("agent"),
    "categories": _frequency("category"),
    "changes": _changes,
    "codes": _frequency("code"),
    "conversation_rungs": _conversation_rungs,
    **{f"costs_by_{by}": _costs(by) for by in queries.COST_GROUPS},
    "environments": _frequency("environment"),
    "field_patterns": _frequency("field_pattern"),
    "fields": _frequency("field"),
    "fixes": _fixes,
    "frameworks": _frequency("framework"),
    "kinds": _kinds,
    "messages": _messages,
    "models": _frequency("model"),
    "phantom_arguments": _phantoms,
    "releases": _frequency("release"),
    "repeated_executions": _repeats,
    "round_trips_by_agent": _round_trips("agent"),
    "round_trips_by_code": _round_trips("code"),
    "round_trips_by_field": _round_trips("field"),
    "round_trips_by_model": _round_trips("model"),
    "round_trips_by_release": _round_trips("release"),
    "round_trips_by_tool": _round_trips("tool"),
    "round_trips_by_variant": _round_trips("variant"),
    "signatures": _frequency("signature"),
    "silent_successes": _silent,
    "tools": _tools,
    "variants": _frequency("variant"),
}
