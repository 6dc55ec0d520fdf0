"""Every table that can be taken away, by name: the API, the command line and files share them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated as Doc
from typing import Any, Final, Literal, get_args

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

__all__ = ["NAMED", "TABLE_NAMES", "Rows", "TableName", "named_table"]

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

_Stream = Callable[[Connection, Scope], RowStream]


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a table that are counted before they are written."""

    kind: Doc[type, "Their class, a dataclass: the file has its fields."]
    find: Doc[Callable[[Connection, Scope], Iterable[Any]], "Returns them."]
    without: Doc[frozenset[str], "Fields that the file has not."] = frozenset()

    def __call__(self, conn: Connection, scope: Scope) -> RowStream:
        """Return them as a file."""
        return table_stream(self.find(conn, scope), self.kind, without=self.without)


def named_table(conn: Connection, scope: Scope, name: TableName) -> RowStream:
    """Return the rows of table *name* under the filter of *scope*.

    Failures, issues and chains are read while they are written; the others are counted first.

    Raises:
        QueryError: The reader may not see the table, or not filter like this.
    """
    return NAMED[name](conn, scope)


def _frequency(by: queries.Dimension) -> Rows:
    of_kinds = () if by == "signature" else ("new_since", "fields")
    return Rows(
        FrequencyRow,
        lambda conn, scope: queries.frequency(conn, scope, by).rows,
        frozenset(of_kinds),
    )


def _round_trips(by: str) -> Rows:
    return Rows(ChainGroup, lambda conn, scope: queries.chains_by(conn, scope, by))


def _costs(by: queries.CostGroup) -> Rows:
    def find(conn: Connection, scope: Scope) -> Iterable[CostRow]:
        return queries.costs(conn, scope, by, queries.prices_of(conn, scope.project_id)).rows

    return Rows(CostRow, find)


_OF_CHAINS: Final = ("chains", "calls_spent", "round_trips", "abandoned")
"""What the chains of a tool cost, beside its failures."""


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


def _messages(conn: Connection, scope: Scope) -> list[MessageRow]:
    return [row for group in queries.message_efficacy(conn, scope) for row in group.rows]


NAMED: Final[dict[str, Rows | _Stream]] = {
    "failures": queries.iter_failures,
    "issues": queries.iter_issues,
    "chains": queries.iter_chains,
    "agents": _frequency("agent"),
    "categories": _frequency("category"),
    "changes": Rows(ChangeRow, queries.all_changes),
    "codes": _frequency("code"),
    "conversation_rungs": Rows(
        RungRow, lambda conn, scope: queries.conversation_rungs(conn, scope).rows
    ),
    **{f"costs_by_{by}": _costs(by) for by in queries.COST_GROUPS},
    "environments": _frequency("environment"),
    "field_patterns": _frequency("field_pattern"),
    "fields": _frequency("field"),
    "fixes": Rows(FixRow, lambda conn, scope: queries.fix_next(conn, scope).rows),
    "frameworks": _frequency("framework"),
    "kinds": Rows(
        KindRow,
        lambda conn, scope: queries.kinds(conn, scope, drawn=False).rows,
        frozenset({"counts"}),
    ),
    "messages": Rows(MessageRow, _messages),
    "models": _frequency("model"),
    "phantom_arguments": Rows(PhantomRow, queries.phantom_arguments),
    "releases": _frequency("release"),
    "repeated_executions": Rows(RepeatRow, queries.repeated_executions),
    **{f"round_trips_by_{by}": _round_trips(by) for by in queries.COST_GROUPS},
    "signatures": _frequency("signature"),
    "silent_successes": Rows(SilentRow, queries.silent_successes),
    "tools": _tools,
    "variants": _frequency("variant"),
}
"""Table -> its rows, or the whole file where it is read while it is written."""
