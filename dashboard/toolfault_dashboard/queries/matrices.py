"""Which tool fails with which code, and on which of its arguments."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, func, select

from toolfault_collector.tables import issue, tool_call
from toolfault_dashboard.analysis.rates import Rate, rate
from toolfault_dashboard.queries import rollups
from toolfault_dashboard.queries.conditions import failures_of
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.summaries import calls_by

__all__ = ["Matrix", "MatrixCell", "MatrixTool", "matrix"]


@dataclass(frozen=True, slots=True)
class MatrixTool:
    """One line of a matrix."""

    tool: str
    calls: int
    failures: int


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """The failures of one tool with one code or on one argument; cells without any are left out."""

    tool: str
    column: str
    failures: int
    rate: Rate  # of the tool's calls


@dataclass(frozen=True, slots=True)
class Matrix:
    """Tools by codes or by arguments."""

    by: Literal["code", "field"]
    tools: tuple[MatrixTool, ...]  # most failures first
    columns: tuple[str, ...]  # most failures first
    cells: tuple[MatrixCell, ...]
    hidden: int  # failures in cells outside the shown tools and columns


def matrix(
    conn: Connection,
    scope: Scope,
    by: Literal["code", "field"],
    *,
    tools: int = 20,
    columns: int = 20,
) -> Matrix:
    """Count failures by tool and code, or by tool and argument (its root, once per failure).

    Args:
        conn: Open connection.
        scope: What to count.
        by: The columns.
        tools: Most lines.
        columns: Most columns.
    """
    counts = _counts(conn, scope, by)
    calls = calls_by(conn, scope, "tool")
    per_tool: Counter[str] = Counter()
    per_column: Counter[str] = Counter()
    for (tool, column), failures in counts.items():
        per_tool[tool] += failures
        per_column[column] += failures
    shown_tools = sorted(per_tool, key=lambda name: (-per_tool[name], name))[:tools]
    shown_columns = sorted(per_column, key=lambda name: (-per_column[name], name))[:columns]
    cells = tuple(
        MatrixCell(tool, column, failures, rate(failures, calls[tool]))
        for tool in shown_tools
        for column in shown_columns
        if (failures := counts.get((tool, column), 0))
    )
    totals = _failures_by_tool(conn, scope, counts, by)
    return Matrix(
        by=by,
        tools=tuple(MatrixTool(tool, calls[tool], totals[tool]) for tool in shown_tools),
        columns=tuple(shown_columns),
        cells=cells,
        hidden=sum(counts.values()) - sum(cell.failures for cell in cells),
    )


def _counts(
    conn: Connection, scope: Scope, by: Literal["code", "field"]
) -> dict[tuple[str, str], int]:
    if by == "code":
        if rollups.usable(conn, scope, keys=rollups.PAIR_KEYS):
            pairs = rollups.failures_by_pair(conn, scope)
            return {pair: failures for pair, (failures, _) in pairs.items()}
        statement = (
            select(tool_call.c.tool, tool_call.c.code, func.count())
            .where(failures_of(scope))
            .group_by(tool_call.c.tool, tool_call.c.code)
        )
    else:
        if rollups.usable(conn, scope):
            fields = rollups.failures_by_field(conn, scope)
            return {pair: failures for pair, failures in fields.items() if pair[1]}
        statement = (
            select(
                tool_call.c.tool,
                issue.c.root_field,
                func.count(func.distinct(tool_call.c.id)),
            )
            .select_from(issue.join(tool_call, tool_call.c.id == issue.c.tool_call_id))
            .where(failures_of(scope), issue.c.root_field != "")
            .group_by(tool_call.c.tool, issue.c.root_field)
        )
    return {(tool, column or ""): failures for tool, column, failures in conn.execute(statement)}


def _failures_by_tool(
    conn: Connection,
    scope: Scope,
    counts: dict[tuple[str, str], int],
    by: Literal["code", "field"],
) -> Counter[str]:
    found: Counter[str] = Counter()
    if by == "field" and rollups.usable(conn, scope, keys=rollups.PAIR_KEYS):
        pairs = rollups.failures_by_pair(conn, scope)
        counts = {pair: failures for pair, (failures, _) in pairs.items()}
    elif by == "field":
        rows = conn.execute(
            select(tool_call.c.tool, func.count())
            .where(failures_of(scope))
            .group_by(tool_call.c.tool)
        )
        return Counter({row[0]: row[1] for row in rows})
    for (tool, _), failures in counts.items():
        found[tool] += failures
    return found
