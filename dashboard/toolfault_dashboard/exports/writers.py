"""Rows as CSV, NDJSON and JSON: generators of byte chunks, memory stays flat.

A stream that breaks off says so in its last line and then raises, so that neither a browser nor a
person takes a part for the whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, repeat
from typing import Any, Final, Literal

import msgspec

from toolfault_collector.clock import DAY_US, MINUTE_US, SECOND_US, format_time
from toolfault_dashboard.exports.cells import (
    ANY_FORMULA,
    HARMLESS,
    guard,
    guarded,
    plain,
    timestamp,
)
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

CHUNK: Final = 256 * 1024
"""Bytes after which a chunk is handed on."""

BATCH: Final = 250
"""Rows of a CSV that are made at a time, column by column, while the processor has them at hand."""

MOST_KNOWN: Final = 20_000
"""Combinations of packed columns that are remembered at most: some 5 MiB."""

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
    head = _joined([[name] for name in map(_quoting(raw=raw), stream.columns)], alone=False)
    yield (_BOM if excel else "") + head
    packed = stream.packed
    names = packed.names if packed else tuple((name,) for name in stream.columns)
    cells = [
        _cells(stream, own[0], raw=raw) if len(own) == 1 else _together(stream, own, raw=raw)
        for own in names
    ]

    def records(rows: Sequence[Sequence[Any]]) -> str:
        columns = zip(*rows, strict=True)
        made = [_made(make, column) for make, column in zip(cells, columns, strict=True)]
        return _joined(list(_runs(made, len(rows))), alone=len(stream.columns) == 1)

    done = 0
    rows = iter(packed.rows if packed else stream.rows)
    part: list[Sequence[Any]] = []
    try:
        while True:
            part.extend(islice(rows, BATCH))  # keeps what came before an error
            if not part:
                return
            yield records(part)
            done += len(part)
            part = []
    except Exception:
        if part:
            yield records(part)
        yield f"#{_broken(done + len(part))}\r\n"
        raise


def _joined(columns: Sequence[Iterable[str]], *, alone: bool) -> str:
    """Return the records of *columns*, each with its end; *alone* if they are one column."""
    lines: Iterable[str] = map(",".join, zip(*columns, strict=True))
    if alone:
        # An empty record of one cell would be no record (RFC 4180 knows no empty line).
        lines = (line or '""' for line in lines)
    return "\r\n".join(lines) + "\r\n"


_Column = Sequence[Any]


def _made(make: Callable[[_Column], Iterable[str]], column: _Column) -> Iterable[str] | str:
    """Return the cells of *column*, or the one cell that all of them are."""
    first = column[0]
    # Of numbers 1, 1.0 and True are alike.
    if first.__class__ in _TEXTS and first == column[-1] and column.count(first) == len(column):
        (cell,) = make(column[:1])
        return cell
    return make(column)


def _runs(columns: Sequence[Iterable[str] | str], length: int) -> Iterator[Iterable[str]]:
    """Yield columns of cells, those that are one cell throughout together with their neighbours."""
    same: list[str] = []
    for column in columns:
        if isinstance(column, str):
            same.append(column)
            continue
        if same:
            yield repeat(",".join(same), length)
            same = []
        yield column
    if same:
        yield repeat(",".join(same), length)


def _cells(stream: RowStream, name: str, *, raw: bool) -> Callable[[_Column], Iterable[str]]:
    """Return what makes the cells of column *name*: each is looked at as far as it needs to be."""
    kind = stream.kinds.get(name)
    if name in stream.times:
        return _times
    if name in stream.inert:
        return _as_they_are
    if kind in {"integer", "number"}:
        return _numbers
    if kind == "boolean":
        return lambda column: [_TRUTH[each] for each in column]
    return partial(_texts, _quoting(raw=raw), _ANY if raw else HARMLESS)


def _together(
    stream: RowStream, names: Sequence[str], *, raw: bool
) -> Callable[[_Column], Iterable[str]]:
    """Return what makes the cells of columns that come packed as one text."""
    known = _Known([_cells(stream, name, raw=raw) for name in names])

    def made(column: _Column) -> Iterable[str]:
        if len(known) > MOST_KNOWN:
            known.clear()
        return map(known.__getitem__, column)

    return made


class _Known(dict[str, str]):
    """The cells of packed columns, each combination made once."""

    def __init__(self, makes: Sequence[Callable[[_Column], Iterable[str]]]) -> None:
        super().__init__()
        self._makes = makes

    def __missing__(self, packed: str) -> str:
        values = zip(self._makes, msgspec.json.decode(packed), strict=True)
        cells = ",".join([cell for make, value in values for cell in make((value,))])
        self[packed] = cells
        return cells


def _as_they_are(column: _Column) -> Iterable[str]:
    return [each or "" for each in column] if None in column else column


def _numbers(column: _Column) -> Iterable[str]:
    return (
        ["" if each is None else str(each) for each in column]
        if None in column
        else map(str, column)
    )


def _times(column: _Column) -> Iterable[str]:
    """Make the cells of a column of times; those of one minute begin alike."""
    minutes = {at // MINUTE_US for at in column if at is not None}
    days = {each: format_time(each * DAY_US)[: len("2026-11-01")] for each in _days(minutes)}
    begins = {
        each: f"{days[each // 1_440]}T{each // 60 % 24:02d}:{each % 60:02d}:" for each in minutes
    }
    return [
        # Below a minute a float has every microsecond.
        "" if at is None else f"{begins[at // MINUTE_US]}{at % MINUTE_US / SECOND_US:09.6f}Z"
        for at in column
    ]


def _days(minutes: Iterable[int]) -> set[int]:
    return {each // 1_440 for each in minutes}


def _texts(make: Callable[[Any], str], harmless: Container[str], column: _Column) -> Iterable[str]:
    """Make the cells of a column of texts: few values once each, many without a look at each.

    Anything but texts is made cell by cell: 1, 1.0 and True are one key, and no list is any.
    """
    if not _TEXTS.issuperset(map(type, column)):
        return map(make, column)
    if len(set(column[: 2 * FEW])) <= FEW and len(values := set(column)) <= FEW:
        return map({each: make(each) for each in values}.__getitem__, column)
    texts = _as_they_are(column)
    joined = "".join(texts)
    begins = {each[:1] for each in texts}
    if not all(begin in harmless for begin in begins if begin) and ANY_FORMULA.search(joined):
        return map(make, column)
    if '"' in joined or "\r" in joined or "\n" in joined:
        special = _SPECIAL.search
        return [f'"{each.replace(_QUOTE, _QUOTES)}"' if special(each) else each for each in texts]
    return [f'"{each}"' if "," in each else each for each in texts] if "," in joined else texts


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


_TRUTH: Final = {None: "", True: "true", False: "false"}
_TEXTS: Final = frozenset({str, type(None)})
_QUOTE: Final = '"'
_QUOTES: Final = '""'
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
