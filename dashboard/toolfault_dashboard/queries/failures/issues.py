"""The issues inside failures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, RowMapping, Select, select

from toolfault_collector.storage.tables import issue, tool_call
from toolfault_dashboard.queries.rows import IssueRow
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.visibility import seen

__all__ = ["issues_of", "issues_statement"]

_COLUMNS: Final = (
    "position",
    "tool",
    "field",
    "field_pattern",
    "root_field",
    "code",
    "type",
    "message",
    "expected",
    "received",
    "received_type",
)


def issues_statement(scope: Scope) -> Select[Any]:
    """Return the select of issues with the event id of their failure; hidden columns are NULL."""
    return select(
        tool_call.c.event_id,
        tool_call.c.id.label("_call"),
        *(seen(scope, issue, name) for name in (*_COLUMNS, "near_miss")),
    ).select_from(issue.join(tool_call, tool_call.c.id == issue.c.tool_call_id))


def issues_of(
    conn: Connection, scope: Scope, call_rows: Sequence[int]
) -> dict[int, tuple[IssueRow, ...]]:
    """Return the issues of the calls with these row numbers, in the order the validator gave."""
    found: defaultdict[int, list[IssueRow]] = defaultdict(list)
    if not call_rows:
        return {}
    statement = (
        issues_statement(scope)
        # Of the call, not of the issue: SQLite would rather read all issues of the project.
        .where(tool_call.c.project_id == scope.project_id, issue.c.tool_call_id.in_(call_rows))
        .order_by(issue.c.tool_call_id, issue.c.position)
    )
    for row in conn.execute(statement).mappings():
        found[row["_call"]].append(_issue(row))
    return {call: tuple(rows) for call, rows in found.items()}


def _issue(values: RowMapping) -> IssueRow:
    return IssueRow(
        event_id=values["event_id"],
        near_miss=tuple(values["near_miss"] or ()),
        **{name: values[name] for name in _COLUMNS},
    )
