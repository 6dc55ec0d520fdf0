"""Which tool fails with which code, and on which of its arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection

from toolfault_collector.storage.tables import issue, tool_call
from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.analysis.weights import Amount, Amounts, total, weighted_rate
from toolfault_dashboard.queries.conditions import failures_of, issues_of
from toolfault_dashboard.queries.counting import rollups
from toolfault_dashboard.queries.counting.sampling_weights import amount, counted_once, sampling
from toolfault_dashboard.queries.counting.segments import is_asked_at_once
from toolfault_dashboard.queries.failures.codes import failures_by_issue_code
from toolfault_dashboard.queries.figures.frequencies import by_field
from toolfault_dashboard.queries.figures.totals import calls_by, pairs
from toolfault_dashboard.queries.scope import Scope

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
    """Count failures by tool and each of their codes, or by tool and argument (its root, once).

    Args:
        conn: Open connection.
        scope: What to count.
        by: The columns.
        tools: Most lines.
        columns: Most columns.
    """
    counts = _counts(conn, scope, by)
    calls = calls_by(conn, scope, "tool")
    per_tool, per_column = Amounts(), Amounts()
    for (tool, column), failures in counts.items():
        per_tool.add(tool, failures)
        per_column.add(column, failures)
    totals = _failures_by_tool(conn, scope)
    # By what a line says of its tool: a failure with two codes is in two cells, and counts once.
    shown_tools = _most(Amounts({tool: totals[tool] for tool in per_tool}))[:tools]
    shown_columns = _most(per_column)[:columns]
    cells = tuple(
        MatrixCell(tool, column, failures.whole, weighted_rate(failures, calls[tool]))
        for tool in shown_tools
        for column in shown_columns
        if (failures := counts.get((tool, column), Amount())).rows
    )
    shown = total(
        failures
        for (tool, column), failures in counts.items()
        if tool in shown_tools and column in shown_columns
    )
    return Matrix(
        by=by,
        tools=tuple(
            MatrixTool(tool, calls[tool].whole, totals[tool].whole) for tool in shown_tools
        ),
        columns=tuple(shown_columns),
        cells=cells,
        hidden=(total(counts.values()) - shown).whole,
    )


def _most(amounts: Amounts) -> list[str]:
    return sorted(amounts, key=lambda name: (-amounts[name].weight, name))


def _counts(
    conn: Connection, scope: Scope, by: Literal["code", "field"]
) -> dict[tuple[str, str], Amount]:
    if by == "code":
        return _by_code(conn, scope)
    sampled = sampling(conn, scope.project_id).failures
    if not sampled and rollups.usable(conn, scope):
        fields = rollups.failures_by_field(conn, scope)
        return {pair: amount([failures]) for pair, failures in fields.items() if pair[1]}
    if is_asked_at_once(conn, scope):  # a page shows them beside, with more of each
        groups = by_field(conn, scope, "field")
        return {(each.tool or "", each.name): each.failures for each in groups if each.name}
    statement = counted_once(
        (tool_call.c.tool, issue.c.root_field),
        issue.join(tool_call, tool_call.c.id == issue.c.tool_call_id),
        failures_of(scope) & issues_of(scope) & (issue.c.root_field != ""),
        sampled=sampled,
    )
    return {
        (tool, column or ""): amount(numbers) for tool, column, *numbers in conn.execute(statement)
    }


def _by_code(conn: Connection, scope: Scope) -> dict[tuple[str, str], Amount]:
    """Count a failure under its own code, and under the codes of its issues."""
    found = _by_own_code(conn, scope)
    for pair, failures in failures_by_issue_code(conn, scope).items():
        found[pair] = found.get(pair, Amount()) + failures
    return found


def _by_own_code(conn: Connection, scope: Scope) -> dict[tuple[str, str], Amount]:
    return {pair: each.failures for pair, each in pairs(conn, scope).items()}


def _failures_by_tool(conn: Connection, scope: Scope) -> Amounts:
    found = Amounts()
    for (tool, _), failures in _by_own_code(conn, scope).items():
        found.add(tool, failures)
    return found
