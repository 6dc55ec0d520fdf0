"""Rows for exports: streamed in a stable order through a server-side cursor, memory stays flat."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, Label, Select, case, func, null

from toolfault_collector.storage.chains.rungs import rung
from toolfault_collector.storage.database.engine import is_columnar, is_sqlite
from toolfault_collector.storage.tables import chain, issue, message, signature, tool_call
from toolfault_dashboard.queries.chains.chains import chains_statement
from toolfault_dashboard.queries.conditions import failures_of
from toolfault_dashboard.queries.counting.deadline import without_deadline
from toolfault_dashboard.queries.failures.failures import failures_statement
from toolfault_dashboard.queries.failures.issues import issues_statement
from toolfault_dashboard.queries.lists.lines import Guard, read_lines
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.visibility import seen, sees

__all__ = ["PackedRows", "RowStream", "iter_chains", "iter_failures", "iter_issues"]

BATCH: Final = 250
"""Rows fetched at a time: some 250 KiB of failures, which the processor has at hand."""

MOST_KNOWN: Final = 20_000
"""Texts of ids that are remembered at most: some 2 MiB."""


@dataclass(frozen=True, slots=True)
class PackedRows:
    """Rows whose neighbouring columns of few values come as one text each.

    Most of what fetching and writing a row costs is per column, and the same combination of tool,
    code, model and so on comes again and again: who has seen it once need not look at it again.
    Texts that stand in a table of their own come as ids, so that they are not looked up per row.

    Attributes:
        names: Of each column of the rows: the columns of the stream that are in it. Where there are
            several its values are JSON arrays of theirs.
        parts: The rows, some at a time; they can be iterated once, instead of those of the stream.
        texts: Of columns that come as ids: the text of each id, read where it is asked for.
    """

    names: tuple[tuple[str, ...], ...]
    parts: Iterator[Sequence[Sequence[Any]]]
    texts: Mapping[str, Mapping[Any, str | None]] = field(default_factory=dict)


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
        varied: Columns of texts that are nearly all different.
    """

    columns: tuple[str, ...]
    times: frozenset[str]
    rows: Iterator[Sequence[Any]]
    kinds: Mapping[str, str] = field(default_factory=dict)
    inert: frozenset[str] = frozenset()
    lines: Callable[[Guard | None], Iterator[Sequence[bytes]]] | None = None
    packed: PackedRows | None = None
    varied: frozenset[str] = frozenset()


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
    "framework",
    "side",
    "conversation",
    "conversation_rung",
    "call_id",
    "chain_id",
    "attempt",
    "chain_outcome",
    "duration_ms",
    "detection",
    "derived_by",
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
    "other_calls",
    "calls_spent",
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

_VARIED: Final = frozenset({"event_id", "call_id", "text", "text_system"})

_FEW: Final = frozenset(
    {
        *("time_source", "event_type", "tool", "tool_requested", "code", "category", "audience"),
        *("reason", "phase", "received_type", "issues_total", "agent", "model"),
        *("provider", "release", "environment", "variant", "framework", "side"),
        *("conversation_rung", "attempt", "chain_outcome"),
        *(
            "detection",
            "derived_by",
            "retryable",
            "outcome",
            "failures",
            "round_trips",
            "other_calls",
        ),
        *("calls_spent", "calls", "first_code"),
        *("first_category", "first_retry_fix", "identical_repeats", "serial_discovery"),
        "repeat_confusion",
    }
)
"""Columns of few values, also together with their neighbours."""

_IDS: Final[dict[ColumnElement[Any], tuple[Column[Any], Column[Any]]]] = {
    signature.c.fingerprint: (tool_call.c.signature_id, signature.c.fingerprint),
    message.c.digest: (tool_call.c.message_id, message.c.digest),
}
"""Texts in tables of their own: which id of a call names them."""

_KINDS: Final = {
    "issues_total": "integer",
    "attempt": "integer",
    "duration_ms": "number",
    "retryable": "boolean",
    "failures": "integer",
    "round_trips": "integer",
    "other_calls": "integer",
    "calls_spent": "integer",
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
    digest = message.c.digest if sees(scope, "text_llm") else null()
    listed = failures_statement(scope)
    others = (
        signature.c.fingerprint.label("signature"),
        digest.label("message_digest"),
        rung(tool_call).label("conversation_rung"),
    )
    known = {*listed.selected_columns.keys(), *(each.name for each in others), "occurred_at"}
    more = (name for name in _FAILURE if name in tool_call.c and name not in known)
    statement = (
        listed.add_columns(*(seen(scope, tool_call, name) for name in more), *others)
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
        rows = _each(_raw_parts(conn, made))
        return RowStream(
            columns,
            frozenset(times),
            rows,
            kinds,
            inert,
            packed=_packed(conn, made),
            varied=_VARIED,
        )

    if is_columnar(conn):
        rows = _rows(conn, made)
        return RowStream(columns, frozenset(times), rows, kinds, inert, varied=_VARIED)

    def lines(guard: Guard | None) -> Iterator[Sequence[bytes]]:
        return read_lines(conn, made, times=frozenset(times), kinds=kinds, inert=inert, guard=guard)

    return RowStream(
        columns, frozenset(times), _rows(conn, made), kinds, inert, lines, varied=_VARIED
    )


def _packed(conn: Connection, statement: Select[Any]) -> PackedRows:
    """Return the rows of *statement* with neighbouring columns of few values as one."""
    runs: list[list[ColumnElement[Any]]] = []
    texts: dict[str, _Texts] = {}
    for column in statement.selected_columns:
        if column.name in _FEW and runs and runs[-1][0].name in _FEW:
            runs[-1].append(column)
        elif (known := _IDS.get(_unlabelled(column))) is not None:
            # SQLite leaves out an outer join of which nothing is selected.
            key, text = known
            texts[column.name] = _Texts(conn, text)
            runs.append([key.label(column.name)])
        else:
            runs.append([column])
    columns = [
        run[0] if len(run) == 1 else func.json_array(*map(_unlabelled, run)).label(run[0].name)
        for run in runs
    ]
    names = tuple(tuple(column.name for column in run) for run in runs)
    return PackedRows(names, _raw_parts(conn, statement.with_only_columns(*columns)), texts)


class _Texts(dict[Any, str | None]):
    """The texts of ids: the newest are read together, any other when it is asked for."""

    def __init__(self, conn: Connection, column: Column[Any]) -> None:
        super().__init__()
        self._driver: Any = conn.connection.driver_connection
        self._from = f"id, {column.name} FROM {column.table.name}"

    def __missing__(self, key: int | None) -> str | None:
        if not self:
            newest = f"SELECT {self._from} ORDER BY id DESC LIMIT ?"
            self.update(self._driver.execute(newest, (MOST_KNOWN // 2,)).fetchall())
            self[None] = None
            return self[key]
        if len(self) > MOST_KNOWN:
            self.clear()
            return self[key]
        row = self._driver.execute(f"SELECT {self._from} WHERE id = ?", (key,)).fetchone()
        text = self[key] = None if row is None else row[1]
        return text


def _unlabelled(column: ColumnElement[Any]) -> ColumnElement[Any]:
    return column.element if isinstance(column, Label) else column


def _raw_parts(conn: Connection, statement: Select[Any]) -> Iterator[Sequence[Sequence[Any]]]:
    """Yield rows as the driver of SQLite makes them, at half the cost of SQLAlchemy's."""
    compiled = statement.compile(dialect=conn.dialect, compile_kwargs={"render_postcompile": True})
    dialect, names = conn.dialect, compiled.positiontup or ()
    kinds = {name: bind.type.dialect_impl(dialect) for bind, name in compiled.bind_names.items()}
    driver: Any = conn.connection.driver_connection
    cursor = driver.cursor()
    try:
        bound = []
        for name in names:
            processed = kinds[name].bind_processor(dialect) if name in kinds else None
            value = compiled.params[name]
            bound.append(value if processed is None else processed(value))
        cursor.execute(str(compiled), bound)
        while part := cursor.fetchmany(BATCH):
            yield part
    finally:
        with suppress(sqlite3.ProgrammingError):  # the connection was closed first
            cursor.close()


def _each(parts: Iterator[Sequence[Sequence[Any]]]) -> Iterator[Sequence[Any]]:
    for part in parts:
        yield from part


def _rows(conn: Connection, statement: Select[Any]) -> Iterator[Sequence[Any]]:
    result = conn.execute(statement.execution_options(stream_results=True, yield_per=BATCH))
    try:
        for part in result.partitions():
            yield from part
    finally:
        result.close()
