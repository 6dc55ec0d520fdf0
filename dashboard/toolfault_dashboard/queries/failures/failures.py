"""Failures: the list, and everything about one of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    and_,
    func,
    literal,
    null,
    select,
    true,
    tuple_,
    union_all,
)

from toolfault_collector.storage.chains.rungs import rung
from toolfault_collector.storage.tables import chain, kind_state, message, signature, tool_call
from toolfault_dashboard.queries.chains.chains import chain_detail
from toolfault_dashboard.queries.conditions import failures_of
from toolfault_dashboard.queries.failures.issues import issues_of
from toolfault_dashboard.queries.failures.matches import matches
from toolfault_dashboard.queries.lists.pages import read_page
from toolfault_dashboard.queries.rows import (
    ChainDetail,
    FailureDetail,
    FailurePage,
    FailureRow,
    IssueRow,
    SignatureRow,
)
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.visibility import seen, sees
from toolfault_dashboard.search.outcomes import outcome_at
from toolfault_dashboard.search.states import kinds_with_state, state_at

__all__ = ["count_failures", "failure_detail", "failure_list", "failures_statement"]

_ROW_COLUMNS: Final = (
    "event_id",
    "time_source",
    "tool",
    "code",
    "category",
    "audience",
    "field",
    "agent",
    "model",
    "release",
    "environment",
    "variant",
    "framework",
    "chain_id",
    "attempt",
    "duration_ms",
    "detection",
)

_DETAIL_COLUMNS: Final = (
    "event_type",
    "text_user",
    "text_llm",
    "text_system",
    "reason",
    "derived_by",
    "kind",
    "phase",
    "expected",
    "received",
    "received_type",
    "snippet",
    "retryable",
    "retry_hint",
    "retry_context",
    "exception_type",
    "exception_module",
    "exception_message",
    "traceback",
    "adapter_failed",
    "tool_requested",
    "call_id",
    "run_id",
    "trace_id",
    "span_id",
    "turn",
    "provider",
    "user",
    "side",
    "validation_mode",
    "validation_version",
    "schema_hash",
    "tokens",
    "received_at",
)


def failures_statement(scope: Scope, where: ColumnElement[bool] | None = None) -> Select[Any]:
    """Return the select of failure rows, unordered, with ``_at`` and ``_row`` as its sort key.

    *where* is the condition for the failures of *scope*, if it is known in another form.
    """
    text = "text_llm" if sees(scope, "text_llm") else "text_user"
    return (
        select(
            tool_call.c.occurred_at.label("_at"),
            tool_call.c.id.label("_row"),
            *(tool_call.c[name] for name in _ROW_COLUMNS),
            tool_call.c.session_id.label("conversation"),
            func.coalesce(tool_call.c.issues_total, 0).label("issues_total"),
            outcome_at(scope.now).label("chain_outcome"),
            tool_call.c[text].label("text"),
        )
        .select_from(
            tool_call.outerjoin(
                chain,
                and_(
                    chain.c.project_id == tool_call.c.project_id,
                    chain.c.chain_id == tool_call.c.chain_id,
                ),
            )
        )
        .where(failures_of(scope) if where is None else where)
    )


def count_failures(conn: Connection, scope: Scope) -> int:
    """Return the number of failures in the scope."""
    return matches(conn, scope).number


def failure_list(
    conn: Connection,
    scope: Scope,
    *,
    cursor: str | None = None,
    limit: int = 50,
    total: int | None = None,
) -> FailurePage:
    """Return one page of the failures of the scope, newest first, and the total of the list.

    A caller that has counted the failures of the scope already passes their *total*.

    Raises:
        CursorError: The cursor belongs to another list.
    """
    where = None
    if total is None:
        counted = matches(conn, scope)
        total = counted.number
        if not total and not cursor:
            # Looking for the newest of none would read all that there is once more.
            return FailurePage(rows=(), total=0, next_cursor=None, previous_cursor=None)
        if counted.rows is not None:
            where = _is_one_of(scope, counted.rows)
    page = read_page(
        conn,
        scope,
        kind="failures",
        statement=failures_statement(scope, where),
        key=(tool_call.c.occurred_at, tool_call.c.id),
        cursor=cursor,
        limit=limit,
    )
    return FailurePage(
        rows=tuple(_failure(row) for row in page.rows),
        total=total,
        next_cursor=page.next_cursor,
        previous_cursor=page.previous_cursor,
    )


def _is_one_of(scope: Scope, rows: tuple[int, ...]) -> ColumnElement[bool]:
    # Of a sum, or SQLite, which knows no numbers of rows, goes through the project by an index.
    return and_(tool_call.c.project_id + 0 == scope.project_id, tool_call.c.id.in_(rows))


def _failure(values: RowMapping) -> FailureRow:
    timed = values["time_source"] != "none"
    return FailureRow(
        occurred_at=values["_at"] if timed else None,
        conversation=values["conversation"],
        issues_total=values["issues_total"],
        chain_outcome=values["chain_outcome"] if values["chain_id"] else None,
        text=values["text"],
        **{name: values[name] for name in _ROW_COLUMNS},
    )


def failure_detail(conn: Connection, scope: Scope, event_id: str) -> FailureDetail | None:
    """Return everything about the failure *event_id* of the project, or None.

    The failure is found in the whole project; its neighbours are those of the scope.
    """
    if "\0" in event_id:  # PostgreSQL cannot be asked for it, and nothing stored has it
        return None
    everything = Scope(
        scope.project_id, scope.query.without(*_keys(scope)), scope.now, scope.audience
    )
    values = (
        conn.execute(
            failures_statement(everything)
            .add_columns(
                *(seen(scope, tool_call, name) for name in _DETAIL_COLUMNS),
                *(seen(scope, tool_call, name) for name in ("tags", "extra", "flags")),
                tool_call.c.signature_id,
                (message.c.text if sees(scope, "text_llm") else null()).label("message"),
                rung(tool_call).label("conversation_rung"),
            )
            .outerjoin_from(tool_call, message, message.c.id == tool_call.c.message_id)
            .where(tool_call.c.event_id == event_id)
        )
        .mappings()
        .one_or_none()
    )
    if values is None:
        return None
    failure = _failure(values)
    of_chain = chain_detail(conn, scope, failure.chain_id) if failure.chain_id else None
    newer, older = _neighbours(conn, scope, values["_at"], values["_row"])
    return FailureDetail(
        row=failure,
        **{name: values[name] for name in _DETAIL_COLUMNS},
        conversation_rung=values["conversation_rung"],
        tags=_mapping(values["tags"]),
        extra=_mapping(values["extra"]),
        flags=tuple(values["flags"] or ()),
        issues=_issues(conn, scope, event_id, values["_row"], of_chain),
        signature=_signature(conn, scope, values["signature_id"]),
        message=values["message"],
        chain=of_chain,
        newer=newer,
        older=older,
    )


def _keys(scope: Scope) -> tuple[str, ...]:
    return tuple(clause.key for clause in scope.query.clauses)


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _issues(
    conn: Connection, scope: Scope, event_id: str, row: int, of_chain: ChainDetail | None
) -> tuple[IssueRow, ...]:
    """Return the issues of a failure; its chain has them where it has one."""
    for attempt in of_chain.attempts if of_chain else ():
        if attempt.event_id == event_id:
            return attempt.issues
    return issues_of(conn, scope, [row]).get(row, ())


def _neighbours(conn: Connection, scope: Scope, at: int, row: int) -> tuple[str | None, str | None]:
    """Return the event ids of the next newer and the next older failure of the scope."""
    both = [
        select(literal(way).label("way"), found.c.event_id)
        for way in ("newer", "older")
        for found in [_neighbour(scope, at, row, newer=way == "newer").subquery()]
    ]
    ids = {str(way): str(event_id) for way, event_id in conn.execute(union_all(*both))}
    return ids.get("newer"), ids.get("older")


def _neighbour(scope: Scope, at: int, row: int, *, newer: bool) -> Select[tuple[str]]:
    key = (tool_call.c.occurred_at, tool_call.c.id)
    here = tuple_(*key)
    # Said of the time alone too, since that is what an index finds.
    beside = key[0] >= at if newer else key[0] <= at
    return (
        select(tool_call.c.event_id)
        .where(
            beside,  # first, or SQLite begins where the window does
            failures_of(scope),
            here > tuple_(at, row) if newer else here < tuple_(at, row),
        )
        .order_by(*(column.asc() if newer else column.desc() for column in key))
        .limit(1)
    )


def _signature(conn: Connection, scope: Scope, signature_id: int | None) -> SignatureRow | None:
    if signature_id is None:
        return None
    timed = tool_call.c.time_source != "none"
    same = (
        select(
            func.count().label("failures"),
            func.min(tool_call.c.occurred_at).filter(timed).label("first_seen"),
            func.max(tool_call.c.occurred_at).filter(timed).label("last_seen"),
        )
        # Only failures of one project have it. Said as well, SQLite may read all of these.
        .where(tool_call.c.signature_id == signature_id)
        .subquery()
    )
    row = conn.execute(
        select(
            *(signature.c[name] for name in ("fingerprint", "tool", "code", "fields")),
            signature.c.exception_type,
            *same.c,
            state_at(scope.now).label("state"),
            *(kind_state.c[name] for name in ("owner", "note")),
            *(kind_state.c[name] for name in ("fixed_at", "fixed_label", "fixed_release")),
            *(kind_state.c[name] for name in ("ignored_until", "ignored_count")),
        )
        .select_from(kinds_with_state().join(same, true()))
        .where(signature.c.project_id == scope.project_id, signature.c.id == signature_id)
    ).one()
    return SignatureRow(
        fingerprint=row.fingerprint,
        tool=row.tool,
        code=row.code,
        fields=tuple((pattern, code) for pattern, code in json.loads(row.fields)),
        exception_type=row.exception_type if sees(scope, "exception_type") else None,
        first_at=row.first_seen,
        last_at=row.last_seen,
        failures=row.failures,
        state=row.state,
        owner=row.owner or "",
        note=row.note or "",
        fixed_at=row.fixed_at,
        fixed_by=row.fixed_label or "",
        fixed_release=row.fixed_release or "",
        ignore_ends_at=row.ignored_until,
        ignore_ends_after=row.ignored_count,
    )
