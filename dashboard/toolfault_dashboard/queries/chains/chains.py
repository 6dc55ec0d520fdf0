"""Chains: the list, and one chain with its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, RowMapping, Select, func, select

from toolfault_collector.chains.fold import IDENTICAL_REPEAT, ROUND_TRIP
from toolfault_collector.storage.tables import chain, tool_call
from toolfault_dashboard.queries.chains.spent import calls_spent
from toolfault_dashboard.queries.conditions import chains_of
from toolfault_dashboard.queries.counting.segments import in_segments
from toolfault_dashboard.queries.failures.issues import issues_of
from toolfault_dashboard.queries.lists.pages import read_page
from toolfault_dashboard.queries.rows import Attempt, ChainDetail, ChainPage, ChainRow, IssueRow
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.visibility import seen, sees
from toolfault_dashboard.search.outcomes import outcome_at

__all__ = ["chain_detail", "chain_list", "chains_statement"]

_COLUMNS: Final = (
    "chain_id",
    "tool",
    "failures",
    "round_trips",
    "other_calls",
    "calls",
    "first_code",
    "first_category",
    "first_field",
    "agent",
    "model",
    "release",
    "environment",
    "variant",
    "time_source",
    "first_retry_fix",
    "identical_repeats",
    "serial_discovery",
    "repeat_confusion",
    "time_lost_ms",
    "tokens_lost",
)
_TIMES: Final = ("started_at", "last_at", "recovered_at")


def chains_statement(scope: Scope) -> Select[Any]:
    """Return the select of chain rows, unordered, with ``_at`` and ``_row`` as its sort key."""
    return _select_chains(scope).where(chains_of(scope))


def _select_chains(scope: Scope) -> Select[Any]:
    return select(
        chain.c.first_failed_at.label("_at"),
        chain.c.id.label("_row"),
        *(chain.c[name] for name in (*_COLUMNS, *_TIMES)),
        calls_spent().label("calls_spent"),
        chain.c.session_id.label("conversation"),
        outcome_at(scope.now).label("outcome"),
    )


def chain_list(
    conn: Connection, scope: Scope, *, cursor: str | None = None, limit: int = 50
) -> ChainPage:
    """Return one page of the chains of the scope, and the total of the list.

    The chain that failed first most lately comes first: a window is about that moment, too.

    Raises:
        CursorError: The cursor belongs to another list.
    """
    page = read_page(
        conn,
        scope,
        kind="chains",
        statement=chains_statement(scope),
        key=(chain.c.first_failed_at, chain.c.id),
        cursor=cursor,
        limit=limit,
    )
    return ChainPage(
        rows=tuple(_chain(row) for row in page.rows),
        total=sum(
            number for (number,) in in_segments(conn, scope, _number, together=_all_together)
        ),
        next_cursor=page.next_cursor,
        previous_cursor=page.previous_cursor,
    )


def _number(conn: Connection, scope: Scope) -> tuple[int]:
    counted = select(func.count()).select_from(chain).where(chains_of(scope))
    return (conn.execute(counted).scalar_one(),)


def _all_together(numbers: Sequence[tuple[int]]) -> tuple[int]:
    return (sum(number for (number,) in numbers),)


def _chain(values: RowMapping) -> ChainRow:
    timed = values["time_source"] != "none"
    times: dict[str, Any] = {name: values[name] if timed else None for name in _TIMES}
    own: dict[str, Any] = {name: values[name] for name in _COLUMNS}
    return ChainRow(
        conversation=values["conversation"],
        outcome=values["outcome"],
        calls_spent=values["calls_spent"],
        **own,
        **times,
    )


def chain_detail(conn: Connection, scope: Scope, chain_id: str) -> ChainDetail | None:
    """Return the chain *chain_id* of the project with its calls in order, or None."""
    if "\0" in chain_id:  # PostgreSQL cannot be asked for it, and nothing stored has it
        return None
    row = (
        conn.execute(
            _select_chains(scope).where(
                chain.c.project_id == scope.project_id, chain.c.chain_id == chain_id
            )
        )
        .mappings()
        .one_or_none()
    )
    if row is None:
        return None
    text = "text_llm" if sees(scope, "text_llm") else "text_user"
    calls = (
        conn.execute(
            select(
                *(
                    tool_call.c[name]
                    for name in (
                        "id",
                        "event_id",
                        "occurred_at",
                        "time_source",
                        "duration_ms",
                        "success",
                        "code",
                        "field",
                        "chain_marks",
                        "args_fingerprint",
                    )
                ),
                tool_call.c[text].label("text"),
                seen(scope, tool_call, "args_diff"),
            )
            .where(tool_call.c.project_id == scope.project_id, tool_call.c.chain_id == chain_id)
            .order_by(tool_call.c.started_at, tool_call.c.seq, tool_call.c.event_id)
        )
        .mappings()
        .all()
    )
    issues = issues_of(conn, scope, [call["id"] for call in calls])
    return ChainDetail(chain=_chain(row), attempts=_attempts(calls, issues))


def _attempts(
    calls: Sequence[RowMapping], issues: Mapping[int, tuple[IssueRow, ...]]
) -> tuple[Attempt, ...]:
    """Return the calls of one chain, in order, with what each is to the chain."""
    return tuple(
        Attempt(
            event_id=row["event_id"],
            attempt=position,
            occurred_at=row["occurred_at"] if row["time_source"] != "none" else None,
            duration_ms=row["duration_ms"],
            success=row["success"],
            parallel=position > 1 and not row["chain_marks"] & ROUND_TRIP,
            code=row["code"],
            field=row["field"],
            text=row["text"],
            args_fingerprint=row["args_fingerprint"],
            identical=bool(row["chain_marks"] & IDENTICAL_REPEAT),
            args_diff=tuple(row["args_diff"] or ()),
            issues=issues.get(row["id"], ()),
        )
        for position, row in enumerate(calls, 1)
    )
