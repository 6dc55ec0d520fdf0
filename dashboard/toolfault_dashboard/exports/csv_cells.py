"""The records of a CSV (RFC 4180), made column by column, each cell looked at only where needed."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import repeat
from typing import Any, Final

import msgspec

from toolfault_collector.clock import DAY_US, MINUTE_US, SECOND_US, format_time
from toolfault_dashboard.exports.cells import ANY_FORMULA, HARMLESS, guarded, plain
from toolfault_dashboard.queries.lists.streams import RowStream

__all__ = ["CellMaker", "cell_makers", "header", "records"]

MOST_KNOWN: Final = 20_000
"""Combinations of packed columns that are remembered at most: some 5 MiB."""

FEW: Final = 100
"""Different texts of a column up to which each is made once for all rows of a batch."""

_Column = Sequence[Any]
CellMaker = Callable[[_Column], Iterable[str]]
"""Makes the cells of one column, or of several that come packed as one."""


def header(columns: Iterable[str], *, raw: bool) -> str:
    """Return the header record of *columns*, without its end."""
    return ",".join(map(_quoting(raw=raw), columns))


def cell_makers(stream: RowStream, *, raw: bool) -> list[CellMaker]:
    """Return what makes the cells of each column of the rows of *stream*, packed or not.

    Args:
        stream: Whose rows; their columns are ``stream.packed.names`` where it is packed.
        raw: Write texts exactly as they are, formulas too.
    """
    names = stream.packed.names if stream.packed else tuple((name,) for name in stream.columns)
    return [
        _single(stream, own[0], raw=raw) if len(own) == 1 else _together(stream, own, raw=raw)
        for own in names
    ]


def records(makers: Sequence[CellMaker], rows: Sequence[Sequence[Any]], *, alone: bool) -> str:
    """Return the records of *rows*, each with its end; *alone* if they have one column."""
    columns = zip(*rows, strict=True)
    made = [_made(make, column) for make, column in zip(makers, columns, strict=True)]
    return _joined(list(_runs(made, len(rows))), alone=alone)


def _joined(columns: Sequence[Iterable[str]], *, alone: bool) -> str:
    lines: Iterable[str] = map(",".join, zip(*columns, strict=True))
    if alone:
        # An empty record of one cell would be no record (RFC 4180 knows no empty line).
        lines = (line or '""' for line in lines)
    return "\r\n".join(lines) + "\r\n"


def _made(make: CellMaker, column: _Column) -> Iterable[str] | str:
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


def _single(stream: RowStream, name: str, *, raw: bool) -> CellMaker:
    """Return what makes the cells of a column that comes by itself, as an id or as it is."""
    make = _cells(stream, name, raw=raw)
    texts = stream.packed.texts.get(name) if stream.packed else None
    if texts is None:
        return make
    return lambda column: make([texts[each] for each in column])


def _cells(stream: RowStream, name: str, *, raw: bool) -> CellMaker:
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


def _together(stream: RowStream, names: Sequence[str], *, raw: bool) -> CellMaker:
    """Return what makes the cells of columns that come packed as one text."""
    known = _Known([_cells(stream, name, raw=raw) for name in names])

    def made(column: _Column) -> Iterable[str]:
        if len(known) > MOST_KNOWN:
            known.clear()
        return map(known.__getitem__, column)

    return made


class _Known(dict[str, str]):
    """The cells of packed columns, each combination made once."""

    def __init__(self, makes: Sequence[CellMaker]) -> None:
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
        ["" if each is None else repr(each) for each in column]
        if None in column
        else map(repr, column)
    )


def _times(column: _Column) -> Iterable[str]:
    """Make the cells of a column of times."""
    cells = []
    for at in column:
        if at is None:
            cells.append("")
        else:
            day, rest = divmod(at, DAY_US)
            minute, rest = divmod(rest, MINUTE_US)
            digits = str(_MINUTE + rest)  # its first digit keeps the zeros
            cells.append(f"{_day(day)}{_MINUTES[minute]}{digits[1:3]}.{digits[3:]}Z")
    return cells


@lru_cache
def _day(number: int) -> str:
    return format_time(number * DAY_US)[: len("2026-11-01")]


_MINUTE: Final = 100 * SECOND_US
_MINUTES: Final = [f"T{minute // 60:02d}:{minute % 60:02d}:" for minute in range(1_440)]


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
        return [_quoted(each) for each in texts]
    return [f'"{each}"' if "," in each else each for each in texts] if "," in joined else texts


def _quoting(*, raw: bool) -> Callable[[Any], str]:
    """Return what makes a value a cell of a record."""
    harmless = _ANY if raw else HARMLESS
    make = plain if raw else guarded

    def cell(value: Any) -> str:
        if value is None:
            return ""
        if value.__class__ is str and value[:1] in harmless:
            text: str = value
        else:
            text = str(make(value))
        return _quoted(text)

    return cell


def _quoted(text: str) -> str:
    # Four looks in C: a class of characters costs a regular expression more for each of them.
    if _QUOTE in text or "," in text or "\r" in text or "\n" in text:
        return f'"{text.replace(_QUOTE, _QUOTES)}"'
    return text


class _Any:
    """Holds every text."""

    def __contains__(self, _: object) -> bool:
        return True


_TRUTH: Final = {None: "", True: "true", False: "false"}
_TEXTS: Final = frozenset({str, type(None)})
_QUOTE: Final = '"'
_QUOTES: Final = '""'
_ANY: Final = _Any()
