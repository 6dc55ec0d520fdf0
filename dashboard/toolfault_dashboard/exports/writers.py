"""Rows as CSV, NDJSON and JSON: generators of byte chunks, memory stays flat.

A stream that breaks off says so in its last line and then raises, so that neither a browser nor a
person takes a part for the whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Literal

from toolfault_collector.clock import MINUTE_US, SECOND_US, format_time
from toolfault_dashboard.exports.cells import HARMLESS, guard, guarded, plain, timestamp
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

BATCH: Final = 1_000
"""Rows of a CSV that are made at a time, column by column."""

FEW: Final = 100
"""Different texts of a column up to which each is made once for all rows of a batch."""

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
    head = (_BOM if excel else "") + ",".join(map(_quoting(raw=raw), stream.columns))
    waiting = [head.encode()]
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
    head = _joined([[name] for name in map(_quoting(raw=raw), stream.columns)])
    yield (_BOM if excel else "") + head
    cells = [_cells(stream, name, raw=raw) for name in stream.columns]

    def records(rows: Sequence[Sequence[Any]]) -> str:
        columns = zip(*rows, strict=True)
        return _joined([make(column) for make, column in zip(cells, columns, strict=True)])

    done = 0
    part: list[Sequence[Any]] = []
    try:
        for row in stream.rows:
            part.append(row)
            if len(part) == BATCH:
                yield records(part)
                done += len(part)
                part = []
    except Exception:
        if part:
            yield records(part)
        yield f"#{_broken(done + len(part))}\r\n"
        raise
    if part:
        yield records(part)


def _joined(columns: Sequence[Iterable[str]]) -> str:
    """Return the records of *columns*, each with its end."""
    lines: Iterable[str] = map(",".join, zip(*columns, strict=True))
    if len(columns) == 1:
        # An empty record of one cell would be no record (RFC 4180 knows no empty line).
        lines = (line or '""' for line in lines)
    return "\r\n".join(lines) + "\r\n"


_Column = Sequence[Any]


def _cells(stream: RowStream, name: str, *, raw: bool) -> Callable[[_Column], Iterable[str]]:
    """Return what makes the cells of column *name*: each is looked at as far as it needs to be."""
    kind = stream.kinds.get(name)
    if name in stream.times:
        return _times
    if name in stream.inert:
        return lambda column: [each or "" for each in column]
    if kind in {"integer", "number"}:
        return lambda column: ["" if each is None else str(each) for each in column]
    if kind == "boolean":
        return lambda column: [_TRUTH[each] for each in column]
    return partial(_texts, _quoting(raw=raw), _ANY if raw else HARMLESS)


def _times(column: _Column) -> Iterable[str]:
    """Make the cells of a column of times; those of one minute begin alike."""
    minutes: dict[int, str] = {}
    found = []
    for at in column:
        if at is None:
            found.append("")
            continue
        minute, rest = divmod(at, MINUTE_US)
        if minute not in minutes:
            minutes[minute] = format_time(minute * MINUTE_US)[: -len("00.000000Z")]
        found.append(f"{minutes[minute]}{rest // SECOND_US:02d}.{rest % SECOND_US:06d}Z")
    return found


_TRUTH: Final = {None: "", True: "true", False: "false"}


def _texts(make: Callable[[Any], str], harmless: Container[str], column: _Column) -> Iterable[str]:
    """Make the cells of a column of texts: few values once each, plain ones without a look at each.

    Anything but texts is made cell by cell: 1, 1.0 and True are one key, and no list is any.
    """
    try:
        values = set(column)
    except TypeError:
        return map(make, column)
    if len(values) <= FEW:
        if all(each is None or each.__class__ is str for each in values):
            return map({each: make(each) for each in values}.__getitem__, column)
    elif all(each is None or each.__class__ is str for each in values):
        texts = [each or "" for each in column]
        if _SPECIAL.search("".join(texts)) is None and all(
            begin in harmless for begin in {each[:1] for each in texts if each}
        ):
            return texts
    return map(make, column)


def _quoting(*, raw: bool) -> Callable[[Any], str]:
    """Return what makes a value a cell of a record."""
    harmless = (_ANYTHING if raw else _HARMLESS).fullmatch
    make = plain if raw else guarded

    def cell(value: Any) -> str:
        if value is None:
            return ""
        if value.__class__ is str and harmless(value):
            return value
        text = str(make(value))
        return '"' + text.replace('"', '""') + '"' if _SPECIAL.search(text) else text

    return cell


class _Any:
    """Holds every text."""

    def __contains__(self, _: object) -> bool:
        return True


_SPECIAL: Final = re.compile('[",\r\n]')
_ANYTHING: Final = re.compile('[^",\r\n]*')
_ANY: Final = _Any()
_HARMLESS: Final = re.compile(f"[{re.escape(''.join(sorted(HARMLESS)))}]" + '[^",\r\n]*')


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
