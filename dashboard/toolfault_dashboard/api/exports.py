"""Downloads: failures, chains, issues and tables, exactly the filtered view, streamed."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from sqlalchemy import Connection
from starlette.responses import StreamingResponse

from toolfault_collector.http.problems import Problem
from toolfault_dashboard import queries
from toolfault_dashboard.analysis.comparisons.effect import MetricEffect
from toolfault_dashboard.api.answers import UNTRUSTED
from toolfault_dashboard.api.comparisons import After, Before
from toolfault_dashboard.api.reader import ProjectName, Reader, Services, Text, read_from, reader_of
from toolfault_dashboard.exports import (
    MEDIA_TYPES,
    Format,
    TableName,
    named_table,
    table_stream,
    write,
)
from toolfault_dashboard.exports.downloads import Download, Running
from toolfault_dashboard.queries import RowStream, Scope
from toolfault_dashboard.queries.reading import reading
from toolfault_dashboard.writes.recording import note_export

__all__ = ["router"]

router = APIRouter(tags=["exports"])

FormatOfFile = Annotated[
    Format, Path(description="Format of the file; `parquet` needs `pyarrow` on the server.")
]


@router.get(
    "/exports/comparison.{format}",
    operation_id="export_comparison",
    response_class=StreamingResponse,
    response_model=None,
)
def export_comparison(  # noqa: PLR0913, PLR0917 - one argument per parameter
    request: Request,
    reader: Annotated[Reader, Depends(reader_of)],
    format: FormatOfFile,  # noqa: A002 - part of the address
    before: Before = "",
    after: After = "",
    change: Annotated[str, Query(description="Event id, instead of two cohorts.")] = "",
    text: Text = "",
    project: ProjectName = "",
    raw: Annotated[bool, Query(description="CSV: no guard against formulas.")] = False,
    excel: Annotated[bool, Query(description="CSV: begin with a byte order mark.")] = False,
) -> Any:
    """Write before against after, one row for each metric."""
    if bool(change) == bool(before or after):
        raise Problem(422, "bad_parameter", "Name two cohorts, before and after, or one change.")

    def rows(conn: Connection, scope: Scope) -> RowStream:
        if not change:
            found = queries.comparison(conn, scope.narrowed(before), scope.narrowed(after))
        elif (marker := queries.change(conn, scope, change)) is not None:
            found = queries.change_comparison(conn, scope, marker)
        else:
            raise Problem(404, "unknown_change", "There is no change of that id in this project.")
        return table_stream(found.effect.metrics, MetricEffect)

    return _answer(request, reader, rows, "comparison", format, text, project, raw=raw, excel=excel)


@router.get(
    "/exports/{table}.{format}",
    operation_id="export",
    response_class=StreamingResponse,
    response_model=None,
)
def export(
    request: Request,
    reader: Annotated[Reader, Depends(reader_of)],
    table: Annotated[TableName, Path(description="What the rows are.")],
    format: FormatOfFile,  # noqa: A002 - part of the address
    text: Text = "",
    project: ProjectName = "",
    raw: Annotated[bool, Query(description="CSV: no guard against formulas.")] = False,
    excel: Annotated[bool, Query(description="CSV: begin with a byte order mark.")] = False,
) -> Any:
    """Stream every row of a table; a stream that breaks off says so in its last line."""
    return _answer(
        request, reader, partial(named_table, name=table), table, format, text, project,
        raw=raw, excel=excel,
    )  # fmt: skip


def _answer(
    request: Request,
    reader: Reader,
    rows: Callable[[Connection, Scope], RowStream],
    name: str,
    format: Format,  # noqa: A002 - part of the address
    text: str,
    project: str,
    **how: bool,
) -> StreamingResponse:
    running: Running = request.app.state.running
    running.begin(reader.name)
    file = f"{name}.{format}"
    chunks = _stream(request, reader, rows, format, text, project, file=file, **how)
    try:
        first = next(chunks, b"")  # so that a bad query is an answer, not a broken file
    except BaseException:
        chunks.close()
        raise
    return Download(
        first,
        chunks,
        media_type=MEDIA_TYPES[format],
        headers={
            "Content-Disposition": f"attachment; filename*=UTF-8''toolfault-{file}",
            "Cache-Control": "no-store",
            **UNTRUSTED,
        },
    )


def _stream(
    request: Request,
    reader: Reader,
    rows: Callable[[Connection, Scope], RowStream],
    format: Format,  # noqa: A002 - part of the address
    text: str,
    project: str,
    *,
    file: str,
    **how: bool,
) -> Generator[bytes]:
    services: Services = request.app.state.services
    running: Running = request.app.state.running
    try:
        with reading(services.engine, takes_turn=False) as conn:
            scope = read_from(conn, reader, text, project, services.clock())
            stream = rows(conn, scope)
            note_export(
                services.engine,
                actor=reader.name,
                project_id=scope.project_id,
                file=file,
                query=str(scope.query),
            )
            yield from write(stream, format, **how)
    finally:
        running.end(reader.name)
