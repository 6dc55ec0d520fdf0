"""Rows for exports: streamed in a stable order through a server-side cursor, memory stays flat."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Label, Select, case, func, null

from toolfault_collector.engine import is_sqlite
from toolfault_collector.tables import chain, issue, message, signature, tool_call
from toolfault_dashboard.queries.chains import chains_statement
from toolfault_dashboard.queries.conditions import failures_of
from toolfault_dashboard.queries.deadline import without_deadline
from toolfault_dashboard.queries.failures import failures_statement
from toolfault_dashboard.queries.issues import issues_statement
from toolfault_dashboard.queries.lines import Guard, read_lines
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.visibility import seen, sees

__all__ = ["PackedRows", "RowStream", "iter_chains", "iter_failures", "iter_issues"]

BATCH: Final = 250
"""Rows fetched at a time: some 250 KiB of failures."""


@dataclass(frozen=True, slots=True)
class PackedRows:
    """Rows whose neighbouring columns of few values come as one text each.

    Most of what fetching and writing a row costs is per column, and the same combination of tool,
    code, model and so on comes again and again: who has seen it once need not look at it again.

    Attributes:
        names: Of each column of ``rows``: the columns of the stream that are in it. Where there are
            several its values are JSON arrays of theirs.
        rows: The rows; they can be iterated once, instead of those of the stream.
    """

    names: tuple[tuple[str, ...], ...]
    rows: Iterator[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class RowStream:
    """Rows on their way: column names, and tuples in that order, read while they are iterated.

    Attributes:
        columns: Names of the columns.
        times: Which columns are times, in microseconds; None where the source has no times.
        rows: The rows; they can be iterated once, while the connection is open.
        kinds: Columns that are no text: ``integer``, ``number``, ``boolean`` (which may come as 0
            and 1) or ``json`` (which may come as text).
        inert: Columns of texts that the server made, so that none can be a formula.
        lines: Makes the rows CSV lines in the database instead, in batches, where it can do that.
            Takes the guard against formulas, or None for texts as they are.
        packed: The same rows with columns put together, where the database does that in less time
            than it takes to fetch them one by one.
    """

    columns: tuple[str, ...]
    times: frozenset[str]
    rows: Iterator[Sequence[Any]]
    kinds: Mapping[str, str] = field(default_factory=dict)
    inert: frozenset[str] = frozenset()
    lines: Callable[[Guard | None], Iterator[Sequence[bytes]]] | None = None
    packed: PackedRows | None = None


_FAILURE: Final = (
    "event_id",
    "occurred_at",
    "time_source",
    "event_type",
    "tool",
    "tool_requested",
    "code",
    "category",
    "audience",
    "reason",
    "phase",
    "field",
    "expected",
    "received",
    "received_type",
    "issues_total",
    "agent",
    "model",
    "provider",
    "release",
    "environment",
    "variant",
    "conversation",
    "call_id",
    "chain_id",
    "attempt",
    "chain_outcome",
    "duration_ms",
    "detection",
    "retryable",
    "retry_hint",
    "signature",
    "message_digest",
    "text",
    "text_user",
    "text_system",
    "exception_type",
    "exception_message",
    "tags",
)

_CHAIN: Final = (
    "chain_id",
    "conversation",
    "tool",
    "outcome",
    "failures",
    "round_trips",
    "calls",
    "first_code",
    "first_category",
    "first_field",
    "agent",
    "model",
    "release",
    "environment",
    "variant",
    "started_at",
    "last_at",
    "recovered_at",
    "time_source",
    "first_retry_fix",
    "identical_repeats",
    "serial_discovery",
    "repeat_confusion",
    "time_lost_ms",
    "tokens_lost",
)

_ISSUE: Final = (
    "event_id",
    "occurred_at",
    "time_source",
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
    "near_miss",
)


_INERT: Final = frozenset(
    {
        "event_id",
        "event_type",
        "time_source",
        "chain_id",
        "chain_outcome",
        "outcome",
        "signature",
        "message_digest",
    }
)

_FEW: Final = frozenset(
    {
        *("time_source", "event_type", "tool", "tool_requested", "code", "category", "audience"),
        *("reason", "phase", "received_type", "issues_total", "agent", "model"),
        *("provider", "release", "environment", "variant", "attempt", "chain_outcome"),
        *("detection", "retryable", "outcome", "failures", "round_trips", "calls", "first_code"),
        *("first_category", "first_retry_fix", "identical_repeats", "serial_discovery"),
        "repeat_confusion",
    }
)
"""Columns of few values, also together with their neighbours."""

_KINDS: Final = {
    "issues_total": "integer",
    "attempt": "integer",
    "duration_ms": "number",
    "retryable": "boolean",
    "failures": "integer",
    "round_trips": "integer",
    "calls": "integer",
    "first_retry_fix": "boolean",
    "identical_repeats": "integer",
    "serial_discovery": "boolean",
    "repeat_confusion": "boolean",
    "time_lost_ms": "number",
    "tokens_lost": "integer",
    "position": "integer",
    "tags": "json",
    "near_miss": "json",
}


def iter_failures(conn: Connection, scope: Scope) -> RowStream:
    """Stream every failure of the scope, newest first; columns the reader may not see are empty."""
    more = (
        "event_type",
        "tool_requested",
        "reason",
        "phase",
        "expected",
        "received",
        "received_type",
        "provider",
        "call_id",
        "retryable",
        "retry_hint",
        "text_user",
        "text_system",
        "exception_type",
        "exception_message",
        "tags",
    )
    digest = message.c.digest if sees(scope, "text_llm") else null()
    statement = (
        failures_statement(scope)
        .add_columns(
            *(seen(scope, tool_call, name) for name in more),
            signature.c.fingerprint.label("signature"),
            digest.label("message_digest"),
        )
        .outerjoin_from(tool_call, signature, signature.c.id == tool_call.c.signature_id)
        .outerjoin_from(tool_call, message, message.c.id == tool_call.c.message_id)
        .order_by(tool_call.c.occurred_at.desc(), tool_call.c.id.desc())
    )
    return _stream(conn, statement, _FAILURE, times={"occurred_at": "_at"})


def iter_chains(conn: Connection, scope: Scope) -> RowStream:
    """Stream every chain of the scope, newest first."""
    statement = chains_statement(scope).order_by(chain.c.first_failed_at.desc(), chain.c.id.desc())
    times = {name: name for name in ("started_at", "last_at", "recovered_at")}
    return _stream(conn, statement, _CHAIN, times=times)


def iter_issues(conn: Connection, scope: Scope) -> RowStream:
    """Stream every issue of the failures of the scope, newest failure first."""
    statement = (
        issues_statement(scope)
        .add_columns(tool_call.c.occurred_at.label("_at"), tool_call.c.time_source)
        .where(failures_of(scope))
        .order_by(tool_call.c.occurred_at.desc(), tool_call.c.id.desc(), issue.c.position)
    )
    return _stream(conn, statement, _ISSUE, times={"occurred_at": "_at"})


def _stream(
    conn: Connection, statement: Select[Any], columns: tuple[str, ...], *, times: dict[str, str]
) -> RowStream:
    """Stream *statement* as exactly *columns*; *times* names where its times come from."""
    own = statement.selected_columns
    timed = own["time_source"] != "none"
    ordered = [
        case((timed, own[times[name]])).label(name) if name in times else own[name]
        for name in columns
    ]
    kinds = {name: kind for name, kind in _KINDS.items() if name in columns}
    inert = _INERT & frozenset(columns)
    without_deadline(conn)
    made = statement.with_only_columns(*ordered)

    if is_sqlite(conn):
        packed, names = _packed(made)
        rows = _raw_rows(conn, packed)
        return RowStream(
            columns,
            frozenset(times),
            _raw_rows(conn, made),
            kinds,
            inert,
            packed=PackedRows(names, rows),
        )

    def lines(guard: Guard | None) -> Iterator[Sequence[bytes]]:
        return read_lines(conn, made, times=frozenset(times), kinds=kinds, inert=inert, guard=guard)

    return RowStream(columns, frozenset(times), _rows(conn, made), kinds, inert, lines)


def _packed(statement: Select[Any]) -> tuple[Select[Any], tuple[tuple[str, ...], ...]]:
    """Return *statement* with its neighbouring columns of few values as one, and their names."""
    runs: list[list[ColumnElement[Any]]] = []
    for column in statement.selected_columns:
        if column.name in _FEW and runs and runs[-1][0].name in _FEW:
            runs[-1].append(column)
        else:
            runs.append([column])
    columns = [
        run[0] if len(run) == 1 else func.json_array(*map(_unlabelled, run)).label(run[0].name)
        for run in runs
    ]
    names = tuple(tuple(column.name for column in run) for run in runs)
    return statement.with_only_columns(*columns), names


def _unlabelled(column: ColumnElement[Any]) -> ColumnElement[Any]:
    return column.element if isinstance(column, Label) else column


def _raw_rows(conn: Connection, statement: Select[Any]) -> Iterator[Sequence[Any]]:
    """Yield rows as the driver of SQLite makes them, at half the cost of SQLAlchemy's."""
    compiled = statement.compile(dialect=conn.dialect, compile_kwargs={"render_postcompile": True})
    names = compiled.positiontup or ()
    driver: Any = conn.connection.driver_connection
    cursor = driver.cursor()
    try:
        cursor.execute(str(compiled), [compiled.params[name] for name in names])
        while part := cursor.fetchmany(BATCH):
            yield from part
    finally:
        with suppress(sqlite3.ProgrammingError):  # the connection was closed first
            cursor.close()


def _rows(conn: Connection, statement: Select[Any]) -> Iterator[Sequence[Any]]:
    result = conn.execute(statement.execution_options(stream_results=True, yield_per=BATCH))
    try:
        for part in result.partitions():
            yield from part
    finally:
        result.close()
