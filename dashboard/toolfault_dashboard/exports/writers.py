"""Rows as CSV, NDJSON and JSON: generators of byte chunks, memory stays flat.

A stream that breaks off says so in its last line and then raises, so that neither a browser nor a
person takes a part for the whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Literal

from toolfault_dashboard.exports.cells import guard, timestamp
from toolfault_dashboard.exports.csv_cells import cell_makers, header, records
from toolfault_dashboard.exports.parquet import write_parquet
from toolfault_dashboard.queries.lists.streams import RowStream

__all__ = ["FORMATS", "MEDIA_TYPES", "Format", "write"]

Format = Literal["csv", "ndjson", "json", "parquet"]
FORMATS: Final[tuple[Format, ...]] = ("csv", "ndjson", "json", "parquet")

MEDIA_TYPES: Final = {
    "csv": "text/csv; charset=utf-8; header=present",
    "ndjson": "application/x-ndjson",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
}

CHUNK: Final = 256 * 1024
"""Bytes after which a chunk is handed on."""

BATCH: Final = 250
"""Rows of a CSV that are made at a time, column by column, while the processor has them at hand."""

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
    if format == "csv" and stream.lines is not None:
        return _csv_lines(stream, stream.lines(None if raw else guard()), raw=raw, excel=excel)
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


def _csv_lines(
    stream: RowStream, batches: Iterator[Sequence[bytes]], *, raw: bool, excel: bool
) -> Iterator[bytes]:
    waiting = [((_BOM if excel else "") + header(stream.columns, raw=raw)).encode()]
    rows, size = 0, 0
    try:
        for lines in batches:
            waiting += lines
            rows += len(lines)
            size += sum(map(len, lines))
            if size >= CHUNK:
                yield _ended(waiting)
                waiting, size = [], 0
    except Exception:
        yield _ended([*waiting, f"#{_broken(rows)}".encode()])
        raise
    if waiting:
        yield _ended(waiting)


def _ended(lines: list[bytes]) -> bytes:
    return b"\r\n".join(lines) + b"\r\n"


def _csv(stream: RowStream, *, raw: bool, excel: bool) -> Iterator[str]:
    yield (_BOM if excel else "") + header(stream.columns, raw=raw) + "\r\n"
    makers = cell_makers(stream, raw=raw)
    packed = stream.packed
    done = 0
    try:
        for rows in packed.parts if packed else _parts(stream.rows):
            yield records(makers, rows, alone=len(stream.columns) == 1)
            done += len(rows)
    except Exception:
        yield f"#{_broken(done)}\r\n"
        raise


def _parts(rows: Iterator[Sequence[Any]]) -> Iterator[list[Sequence[Any]]]:
    """Yield *rows* in parts; those that came before an error too."""
    while True:
        part: list[Sequence[Any]] = []
        try:
            part.extend(islice(rows, BATCH))
        except Exception:
            if part:
                yield part
            raise
        if not part:
            return
        yield part


def _objects(stream: RowStream) -> Iterator[str]:
    columns, times = stream.columns, stream.times
    convert: dict[str, Callable[[Any], Any]] = dict.fromkeys(times, timestamp)
    convert |= {name: _CONVERT[kind] for name, kind in stream.kinds.items() if kind in _CONVERT}
    for row in stream.rows:
        yield json.dumps(
            {
                name: value if value is None or (how := convert.get(name)) is None else how(value)
                for name, value in zip(columns, row, strict=True)
            },
            ensure_ascii=False,
            separators=(",", ":"),
            default=str,
        )


def _read_json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


_CONVERT: Final[dict[str, Callable[[Any], Any]]] = {"boolean": bool, "json": _read_json}


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
