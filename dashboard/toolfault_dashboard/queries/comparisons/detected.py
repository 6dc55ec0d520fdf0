"""Changes that nobody recorded: a release, a tool's schema or a variant that was not there before.

The first one of a kind is no change, since nothing came before it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select

from toolfault_collector.storage.tables import tool_call
from toolfault_dashboard.queries.conditions import calls_of
from toolfault_dashboard.queries.rows import ChangeRow
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import window
from toolfault_dashboard.search import arms_of

__all__ = ["PREFIX", "detected_changes"]

PREFIX = "detected"
"""What the ids of detected changes begin with; no event id does."""


def detected_changes(conn: Connection, scope: Scope) -> tuple[ChangeRow, ...]:
    """Return the releases, schemas and variants that first appear in the scope, newest first.

    New is what no call before had, within the window or not; this reads every call of the project.
    """
    always = replace(scope, query=scope.query.without("since", "until"))
    found = [
        *_releases(conn, always),
        *_variants(conn, always),
        *_schemas(conn, always),
    ]
    since, until = window(scope)
    shown = [
        row
        for row in found
        if (since is None or row.occurred_at >= since)
        and (until is None or row.occurred_at < until)
    ]
    return tuple(sorted(shown, key=lambda row: (-row.occurred_at, row.label)))


def _first_times(conn: Connection, scope: Scope, *columns: ColumnElement[Any]) -> list[list[Any]]:
    rows = conn.execute(
        select(*columns, func.min(tool_call.c.occurred_at))
        .where(
            calls_of(scope),
            tool_call.c.time_source != "none",
            *(column.is_not(None) for column in columns),
        )
        .group_by(*columns)
    )
    return [list(row) for row in rows]


def _variants(conn: Connection, scope: Scope) -> list[ChangeRow]:
    seen: dict[str, int] = {}
    for variant, at in _first_times(conn, scope, tool_call.c.variant):
        for arm in arms_of(variant):
            seen[arm] = min(seen.get(arm, at), at)
    first = min(seen.values(), default=0)
    return [_row("variant", arm, at) for arm, at in seen.items() if at > first]


def _releases(conn: Connection, scope: Scope) -> list[ChangeRow]:
    """Return the releases of each agent after its first: agents count theirs independently."""
    agent = func.coalesce(tool_call.c.agent, "").label("agent")
    return [
        _row("release", release, at, owner=owner)
        for owner, release, at in _after_the_first(
            _first_times(conn, scope, agent, tool_call.c.release)
        )
    ]


def _schemas(conn: Connection, scope: Scope) -> list[ChangeRow]:
    return [
        _row("schema", schema, at, tool=tool, owner=tool)
        for tool, schema, at in _after_the_first(
            _first_times(conn, scope, tool_call.c.tool, tool_call.c.schema_hash)
        )
    ]


def _after_the_first(rows: list[list[Any]]) -> list[tuple[str, str, int]]:
    """Return (owner, value, time) without the first value of each owner."""
    owners: dict[str, dict[str, int]] = {}
    for owner, value, at in rows:
        owners.setdefault(owner, {})[value] = at
    return [
        (owner, value, at)
        for owner, seen in owners.items()
        for value, at in seen.items()
        if at > min(seen.values())
    ]


def _row(kind: str, name: str, at: int, *, tool: str | None = None, owner: str = "") -> ChangeRow:
    shown = name[:12] if kind == "schema" else name
    return ChangeRow(
        event_id=f"{PREFIX}:{kind}:{owner}:{name}",
        occurred_at=at,
        label=f"new {kind} {shown}" + (f" of {owner}" if owner else ""),
        tool=tool,
        kind=kind,
        source=PREFIX,
    )
