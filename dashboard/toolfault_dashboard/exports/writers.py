"""Rows as CSV, NDJSON and JSON: generators of byte chunks, memory stays flat.

A stream that breaks off says so in its last line and then raises, so that neither a browser nor a
person takes a part for the whole.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal

from toolfault_dashboard.exports.cells import ANY, HARMLESS, guarded, plain, timestamp
from toolfault_dashboard.exports.parquet import write_parquet
from toolfault_dashboard.queries.streams import RowStream

__all__ = ["FORMATS", "MEDIA_TYPES", "Format", "write"]

Format = Literal["csv", "ndjson", "json", "parquet"]
FORMATS: Final[tuple[Format, ...]] = ("csv", "ndjson", "json", "parquet")

MEDIA_TYPES: Final = {
    "csv": "text/csv; charset=utf-8; header=present",
    "ndjson": "application/x-ndjson",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
}

CHUNK: Final = 64 * 1024
"""Bytes after which a chunk is handed on."""

_BOM: Final = "\ufeff"


def write(
    stream: RowStream,
    format: Format,  # noqa: A002 - the option
    *,
    raw: bool = False,
    excel: bool = False,
) -> Iterator[bytes]:
    """Write *stream* as *format*.

    Args:
        stream: Rows on their way.
        format: ``csv`` (RFC 4180: CRLF, header row), ``ndjson``, ``json`` (one array) or
            ``parquet`` (needs pyarrow).
        raw: CSV only: write texts exactly as they are, formulas too. For programs, never for a
            spreadsheet.
        excel: CSV only: begin with a byte order mark, without which Excel guesses the encoding.

    Returns:
        Chunks of bytes, texts as UTF-8.

    Raises:
        MissingParquet: Parquet was asked for and pyarrow is not installed.
    """
    if format == "parquet":
        return write_parquet(stream)
    if format == "csv":
        return _encoded(_csv(stream, raw=raw, excel=excel))
    return _encoded(_ndjson(stream) if format == "ndjson" else _json(stream))


def _encoded(texts: Iterator[str]) -> Iterator[bytes]:
    waiting: list[str] = []
    size = 0
    try:
        for text in texts:
            waiting.append(text)
            size += len(text)
            if size >= CHUNK:
                yield _bytes(waiting)
                waiting.clear()
                size = 0
    except Exception:
        yield _bytes(waiting)  # the line that tells of the error is the last of them
        raise
    if waiting:
        yield _bytes(waiting)


def _bytes(texts: list[str]) -> bytes:
    # Lone surrogates never reach the database, yet an export must not die of one.
    return "".join(texts).encode("utf-8", "replace")


def _broken(rows: int) -> str:
    return f"export incomplete: it broke off after {rows} rows"


def _csv(stream: RowStream, *, raw: bool, excel: bool) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    cells = _cells(stream, raw=raw)
    if excel:
        buffer.write(_BOM)
    writer.writerow([(plain if raw else guarded)(name) for name in stream.columns])
    rows = 0
    try:
        for row in stream.rows:
            writer.writerow(cells(row))
            rows += 1
            if buffer.tell() >= CHUNK:
                yield buffer.getvalue()
                buffer.seek(0)
                buffer.truncate()
    except Exception:
        writer.writerow([f"#{_broken(rows)}"])
        yield buffer.getvalue()
        raise
    yield buffer.getvalue()


def _cells(stream: RowStream, *, raw: bool) -> Callable[[Sequence[Any]], list[Any]]:
    """Return what makes the cells of a row: each column is looked at as far as it needs to be."""
    cell: Callable[[Any], Any] = plain if raw else guarded
    times = [index for index, name in enumerate(stream.columns) if name in stream.times]
    # Numbers and texts of the server need no look.
    looked = [
        index
        for index, name in enumerate(stream.columns)
        if name not in stream.times
        and name not in stream.inert
        and stream.kinds.get(name) not in {"integer", "number"}
    ]
    harmless = ANY if raw else HARMLESS

    def cells(row: Sequence[Any]) -> list[Any]:
        found = list(row)
        for index in looked:
            value = found[index]
            if value and (value.__class__ is not str or value[0] not in harmless):
                found[index] = cell(value)
            elif value is False:
                found[index] = "false"
        for index in times:
            found[index] = timestamp(found[index])
        return found

    return cells


def _objects(stream: RowStream) -> Iterator[str]:
    columns, times = stream.columns, stream.times
    for row in stream.rows:
        yield json.dumps(
            {
                name: timestamp(value) if name in times else value
                for name, value in zip(columns, row, strict=True)
            },
            ensure_ascii=False,
            separators=(",", ":"),
            default=str,
        )


def _ndjson(stream: RowStream) -> Iterator[str]:
    rows = 0
    try:
        for line in _objects(stream):
            yield line + "\n"
            rows += 1
    except Exception:
        yield json.dumps({"error": _broken(rows)}) + "\n"
        raise


def _json(stream: RowStream) -> Iterator[str]:
    rows = 0
    yield "["
    try:
        for text in _objects(stream):
            yield f",\n{text}" if rows else f"\n{text}"
            rows += 1
    except Exception:
        # The array stays open: no parser takes it for a whole one.
        yield ("," if rows else "") + "\n" + json.dumps({"error": _broken(rows)}) + "\n"
        raise
    yield "\n]\n"
