"""Downloads: failures, chains, issues and tables, exactly the filtered view, streamed."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Query, Request
from sqlalchemy import Connection
from starlette.responses import StreamingResponse

from toolfault_collector.engine import read_connection
from toolfault_collector.problems import Problem
from toolfault_dashboard import queries
from toolfault_dashboard.api.reader import Reader, Services, Text, read_from, reader_of
from toolfault_dashboard.exports import MEDIA_TYPES, Format, table_stream, write
from toolfault_dashboard.queries import FixRow, MessageRow, RowStream, Scope
from toolfault_dashboard.queries.rows import FrequencyRow

__all__ = ["AT_ONCE", "Running", "router"]

router = APIRouter(tags=["exports"])

AT_ONCE: Final = 2
"""Exports of one reader at the same time; each holds a connection for its whole length."""

Table = Literal[
    "failures", "chains", "issues", "codes", "fields", "tools", "messages", "signatures", "fixes"
]


def _frequency(by: queries.Dimension) -> Callable[[Connection, Scope], RowStream]:
    def rows(conn: Connection, scope: Scope) -> RowStream:
        return table_stream(queries.frequency(conn, scope, by).rows, FrequencyRow)

    return rows


def _messages(conn: Connection, scope: Scope) -> RowStream:
    groups = queries.message_efficacy(conn, scope)
    return table_stream([row for group in groups for row in group.rows], MessageRow)


def _fixes(conn: Connection, scope: Scope) -> RowStream:
    return table_stream(queries.fix_next(conn, scope).rows, FixRow)


_TABLES: Final[dict[str, Callable[[Connection, Scope], RowStream]]] = {
    "failures": queries.iter_failures,
    "chains": queries.iter_chains,
    "issues": queries.iter_issues,
    "codes": _frequency("code"),
    "fields": _frequency("field"),
    "tools": _frequency("tool"),
    "signatures": _frequency("signature"),
    "messages": _messages,
    "fixes": _fixes,
}


class Running:
    """How many exports each reader has running."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()

    def begin(self, name: str) -> None:
        """Count one more export of reader *name*.

        Raises:
            Problem: 429, it has as many running as it may.
        """
        with self._lock:
            if self._running[name] >= AT_ONCE:
                detail = f"{AT_ONCE} exports of yours are running; wait for one to end."
                raise Problem(429, "too_many_exports", detail, headers={"Retry-After": "10"})
            self._running[name] += 1

    def end(self, name: str) -> None:
        """Count one less."""
        with self._lock:
            self._running[name] -= 1
            if not self._running[name]:
                del self._running[name]


@router.get(
    "/exports/{table}.{format}",
    operation_id="export",
    response_class=StreamingResponse,
    response_model=None,
)
def export(
    request: Request,
    reader: Annotated[Reader, Depends(reader_of)],
    table: Table,
    format: Format,  # noqa: A002 - part of the address
    text: Text = "",
    project: Annotated[str, Query(max_length=128)] = "",
    raw: Annotated[bool, Query(description="CSV: no guard against formulas.")] = False,
    excel: Annotated[bool, Query(description="CSV: begin with a byte order mark.")] = False,
) -> Any:
    """Stream every row of a table; a stream that breaks off says so in its last line."""
    running: Running = request.app.state.running
    running.begin(reader.name)
    chunks = _stream(request, reader, table, format, text, project, raw=raw, excel=excel)
    try:
        first = next(chunks, b"")  # so that a bad query is an answer, not a broken file
    except BaseException:
        chunks.close()
        raise
    return StreamingResponse(
        _from(first, chunks),
        media_type=MEDIA_TYPES[format],
        headers={
            "Content-Disposition": f"attachment; filename*=UTF-8''toolfault-{table}.{format}",
            "Cache-Control": "no-store",
        },
    )


def _stream(
    request: Request,
    reader: Reader,
    table: Table,
    format: Format,  # noqa: A002 - part of the address
    text: str,
    project: str,
    **how: bool,
) -> Generator[bytes]:
    services: Services = request.app.state.services
    running: Running = request.app.state.running
    try:
        with read_connection(services.engine) as conn:
            scope = read_from(conn, reader, text, project, services.clock())
            yield from write(_TABLES[table](conn, scope), format, **how)
    finally:
        running.end(reader.name)


def _from(first: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from chunks
