"""How a table becomes a file: one address per format, and the headers of a download."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import TypeVar

from fastapi import APIRouter, HTTPException
from starlette.responses import Response

from toolfault_collector.http.problems import Problem
from toolfault_dashboard.access.policy import DOWNLOADS
from toolfault_dashboard.exports.downloads import Download, Running
from toolfault_dashboard.exports.parquet import MissingParquet
from toolfault_dashboard.exports.writers import MEDIA_TYPES, Format, write
from toolfault_dashboard.pages.shared.ask import Ask, Asked
from toolfault_dashboard.pages.shared.table import Table
from toolfault_dashboard.queries.lists.streams import RowStream
from toolfault_dashboard.writes.recording import note_export

__all__ = ["attached", "serve"]

_T = TypeVar("_T")


def _checked(stream: RowStream, format: Format) -> RowStream:  # noqa: A002 - the option
    """Fetch the first rows now, so that a failing statement is an error page and no broken file."""
    if format == "csv" and (lines := stream.lines) is not None:
        return replace(stream, lines=lambda guard: _begun(lines(guard)))
    if format in {"csv", "parquet"} and stream.packed is not None:
        return replace(stream, packed=replace(stream.packed, parts=_begun(stream.packed.parts)))
    return replace(stream, rows=_begun(stream.rows))


def _begun(items: Iterator[_T]) -> Iterator[_T]:
    """Return *items*, of which the first is there."""
    return chain(list(islice(items, 1)), items)


def attached(name: str) -> dict[str, str]:
    """Return the header of a file to keep."""
    return {"Content-Disposition": f"attachment; filename*=UTF-8''toolfault-{name}"}


def _answer(ask: Ask, table: Table, format: Format) -> Response:  # noqa: A002
    running, reader = ask.services.running, ask.viewer.name
    try:
        running.begin(reader)
    except Problem as problem:
        raise HTTPException(problem.status, problem.detail, headers=problem.headers) from None
    chunks = _until_done(_chunks(ask, table, format), running, reader)
    try:
        first = next(chunks, b"")
        note_export(
            ask.services.engine,
            actor=ask.viewer.name,
            project_id=ask.project.id if ask.project else None,
            file=f"{table.name}.{format}",
            query=str(ask.effective),
        )
    except MissingParquet as error:
        raise HTTPException(501, str(error)) from None
    except BaseException:
        chunks.close()  # so that the reader's place is free again
        raise
    return Download(
        first, chunks, media_type=MEDIA_TYPES[format], headers=attached(f"{table.name}.{format}")
    )


def _chunks(ask: Ask, table: Table, format: Format) -> Iterator[bytes]:  # noqa: A002
    excel = "excel" in ask.request.query_params
    yield from write(_checked(table.file(ask), format), format, excel=excel)


def _until_done(chunks: Iterator[bytes], running: Running, reader: str) -> Generator[bytes]:
    """Yield *chunks*; the reader may have another file when they end, however they end."""
    try:
        yield from chunks
    finally:
        running.end(reader)


def serve(router: APIRouter, table: Table) -> None:
    """Serve *table* as ``/NAME.csv``, ``/NAME.ndjson`` and ``/NAME.parquet``."""
    for format in DOWNLOADS:  # noqa: A001 - part of the address
        _add_route(router, table, format)


def _add_route(router: APIRouter, table: Table, format: Format) -> None:  # noqa: A002
    def endpoint(ask: Asked) -> Response:
        return _answer(ask, table, format)

    name = table.name
    router.add_api_route(
        f"/{name}.{format}", endpoint, name=f"{name}_{format}", methods=["GET"], response_model=None
    )
