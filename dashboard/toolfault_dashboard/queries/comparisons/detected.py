"""Changes that nobody recorded: a model, a release, a tool's schema or a variant seen first.

They are worked out when they are read, from the calls and counts that are stored, and kept by the
day like every count. So they are always what a recount gives, whatever came late, was imported or
was withdrawn, and storing costs nothing. The price: where retention has removed the beginning, a
name that is used rarely may appear anew at its edge.

The first of a kind is no change, since nothing came before it. Releases are counted by agent,
schemas by tool: each has a first of its own. Models and variants are counted by project.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, or_, select

from toolfault_collector.storage.tables import call_counts, tool_call
from toolfault_dashboard.queries.conditions import calls_of, counts_of
from toolfault_dashboard.queries.counting.segments import in_segments
from toolfault_dashboard.queries.rows import ChangeRow
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.visibility import check_query
from toolfault_dashboard.queries.windows import window
from toolfault_dashboard.search import Query, arms_of
from toolfault_dashboard.search.sql import matches_any, patterns_of

__all__ = ["PREFIX", "SOURCE", "detected_changes"]

PREFIX = "detected"
"""What the ids of detected changes begin with; no event id does."""

SOURCE = "toolfault"
"""Who recorded them."""


class _First(NamedTuple):
    """When a name was first seen; *owner* is the agent of a release or the tool of a schema."""

    kind: str
    owner: str
    name: str
    at: int


def detected_changes(conn: Connection, scope: Scope) -> tuple[ChangeRow, ...]:
    """Return the models, releases, schemas and variants first seen in the window, newest first.

    New is what no call of the project had before, within the window or not. As of recorded changes,
    of a query only the window and the tools matter.

    Raises:
        QueryError: The query filters on what its reader may not see.
    """
    check_query(scope)
    since, until = window(scope)
    everything = replace(scope, query=Query())
    seen = _together(in_segments(conn, everything, _first_seen, together=_together, stored=True))
    beginnings: dict[tuple[str, str], int] = {}
    for each in seen:
        group = (each.kind, each.owner)
        beginnings[group] = min(beginnings.get(group, each.at), each.at)
    tools = _tools(conn, scope)
    shown = [
        _row(each, scope.project_id)
        for each in seen
        if each.at > beginnings[each.kind, each.owner]
        and (since is None or each.at >= since)
        and (until is None or each.at < until)
        and (each.kind != "schema" or tools is None or each.owner in tools)
    ]
    return tuple(sorted(shown, key=lambda row: (-row.occurred_at, row.label)))


def _tools(conn: Connection, scope: Scope) -> frozenset[str] | None:
    """Return the tools that the query names; None where it names none."""
    clauses = scope.query.of("tool")
    if not clauses:
        return None
    statement = select(tool_call.c.tool).where(tool_call.c.project_id == scope.project_id)
    for clause in clauses:
        found = or_(*matches_any(tool_call.c.tool, patterns_of(clause)))
        statement = statement.where(~found if clause.negated else found)
    return frozenset(conn.execute(statement.distinct()).scalars())


def _first_seen(conn: Connection, scope: Scope) -> list[_First]:
    """Return when each name was first seen in *scope*, by a call or by a count of successes."""
    return _together([list(_of_calls(conn, scope)), list(_of_counts(conn, scope))])


def _together(segments: Sequence[list[_First]]) -> list[_First]:
    first: dict[tuple[str, str, str], int] = {}
    for segment in segments:
        for kind, owner, name, at in segment:
            key = (kind, owner, name)
            first[key] = min(first.get(key, at), at)
    return [_First(*key, at) for key, at in first.items()]


def _of_calls(conn: Connection, scope: Scope) -> Iterator[_First]:
    names = [tool_call.c[name] for name in ("agent", "release", "model", "variant")]
    names += [tool_call.c.tool, tool_call.c.schema_hash]
    rows: Iterable[Any] = conn.execute(
        select(*names, func.min(tool_call.c.occurred_at))
        .where(calls_of(scope), tool_call.c.time_source != "none")
        .group_by(*names)
    )
    for agent, release, model, variant, tool, schema, at in rows:
        yield from _named(agent, release, model, variant, at)
        if schema:
            yield _First("schema", tool, schema, at)


def _of_counts(conn: Connection, scope: Scope) -> Iterator[_First]:
    names = [call_counts.c[name] for name in ("agent", "release", "model", "variant")]
    rows: Iterable[Any] = conn.execute(
        select(*names, func.min(call_counts.c.minute)).where(counts_of(scope)).group_by(*names)
    )
    for agent, release, model, variant, at in rows:
        yield from _named(agent, release, model, variant, at)


def _named(
    agent: str | None, release: str | None, model: str | None, variant: str | None, at: int
) -> Iterator[_First]:
    if release:
        yield _First("release", agent or "", release, at)
    if model:
        yield _First("model", "", model, at)
    for arm in arms_of(variant) if variant else ():
        yield _First("variant", "", arm, at)


def _row(found: _First, project_id: int) -> ChangeRow:
    kind, owner, name, at = found
    # A digest, since names are a sender's and may hold what an address cannot.
    key = "\0".join((str(project_id), kind, owner, name))
    digest = sha256(key.encode()).hexdigest()[:32]
    shown = name[:12] if kind == "schema" else name
    return ChangeRow(
        event_id=f"{PREFIX}-{digest}",
        occurred_at=at,
        label=f"new {kind} {shown}" + (f" of {owner}" if owner else ""),
        tool=owner if kind == "schema" else None,
        kind=kind,
        source=SOURCE,
        name=name,
        agent=owner or None if kind == "release" else None,
    )
