"""A table, declared once: what its page shows, what a reader may choose and what its file holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, Literal

from markupsafe import Markup

from toolfault_dashboard.exports.named import NAMED, Rows, TableName
from toolfault_dashboard.exports.tables import table_stream
from toolfault_dashboard.pages.shared.ask import Ask
from toolfault_dashboard.queries.lists.streams import RowStream

__all__ = ["Column", "Drawn", "Table"]

_NUMBERS: Final = frozenset(
    {"count", "count_link", "known_count", "decimal", "duration", "percent"}
)
_TIMES: Final = frozenset({"moment", "day"})


@lru_cache(maxsize=1024)
def _at(path: str) -> Callable[[Any], Any]:
    return attrgetter(path)


@lru_cache(maxsize=1024)
def _tag(classes: str, label: str, *, names: bool) -> Markup:
    """Return what opens a cell; *names* says whether it names the line."""
    given = (("class", classes), ("data-label", label))
    attributes = Markup("").join(Markup(' {}="{}"').format(*each) for each in given if each[1])
    begun = Markup('<th scope="row"') if names else Markup("<td")
    return begun + attributes + Markup(">")


_END: Final = {True: Markup("</th>"), False: Markup("</td>")}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a page, of its file, or of both.

    A page has *lines*: rows with addresses and drawings added. A file has the rows alone.

    Attributes:
        name: What the address calls it.
        title: Its heading; empty for a column that the file alone has.
        cell: How the page shows a value: a macro of `_cells.html`, or of the page's template.
        value: Where the value is: a path of attributes from the line, or a function of the row.
            The attribute *name* by default.
        usual: Whether it is shown unless the address says otherwise; None for what always is.
        file: Columns of the file that it writes beside the fields of the row: name -> kind
            (``integer``, ``number``, ``boolean``, ``time``, ``json`` or empty for text). A rate
            writes four (`rate_columns`).
        sort: Whether the page can be sorted by its value, or the function of the row to sort by.
        rising: Whether the first click sorts the smallest first.
        term: What the glossary explains the heading by, if not by the heading; empty for nothing.
        note: What stands in small letters under the heading.
        unit: What stands behind the heading.
        hidden: Whether only a screen reader reads the heading.
        label: What a narrow page writes before the value, if not the heading; empty for nothing.
        number: Whether it stands on the right as numbers do, if its cell does not say so.
        quiet: Whether a zero is grey.
        style: Classes of the cells.
        head: Classes of the heading.
        nothing: What stands where there is no value.
        href: Path of the address that the value is a link to.
        said: What a screen reader calls that link: ``3 abandoned of search``.
        drawn: Path of the interval that is drawn beside a rate.
        width: Of that drawing.
        n: How a rate names what it rests on: not at all, in the text, or as a whole.
    """

    name: str
    title: str = ""
    cell: str = "text"
    value: str | Callable[[Any], Any] = ""
    _: KW_ONLY
    usual: bool | None = None
    file: Mapping[str, str] = field(default_factory=dict)
    sort: Callable[[Any], Any] | bool = False
    rising: bool = False
    term: str | None = None
    note: str = ""
    unit: str = ""
    hidden: bool = False
    label: str | None = None
    number: bool | None = None
    quiet: bool = False
    style: str = ""
    head: str = ""
    nothing: str = ""
    href: str = "href"
    said: str = ""
    drawn: str = "drawn"
    width: int = 110
    n: Literal["", "text", "whole"] = ""

    @property
    def is_number(self) -> bool:
        """Whether it stands on the right."""
        return self.cell in _NUMBERS if self.number is None else self.number

    @property
    def is_time(self) -> bool:
        """Whether its heading names the clock."""
        return self.cell in _TIMES

    @property
    def explained_by(self) -> str:
        """What the glossary explains the heading by; empty for nothing."""
        if self.hidden:
            return ""
        return self.title if self.term is None else self.term

    def of(self, line: Any) -> Any:
        """Return the value of a line of the page."""
        if callable(self.value):
            return self.value(getattr(line, "row", line))
        return _at(self.value or self.name)(line)

    def of_row(self, row: Any) -> Any:
        """Return the value of a row of the file."""
        if callable(self.value):
            return self.value(row)
        return _at((self.value or self.name).removeprefix("row."))(row)

    def rank(self, row: Any) -> Any:
        """Return what *row* is sorted by."""
        return self.sort(row) if callable(self.sort) else self.of_row(row)

    def link(self, line: Any) -> str:
        """Return where the value of a line leads; empty for nowhere."""
        return str(_at(self.href)(line))

    def interval(self, line: Any) -> Any:
        """Return the interval that is drawn beside the rate of a line."""
        return _at(self.drawn)(line)

    def classes(self, value: bool) -> str:
        """Return the classes of a cell with a value, or without one."""
        quiet = "zero" if self.quiet and not value else ""
        return " ".join(filter(None, ("num" if self.is_number else "", quiet, self.style)))


@dataclass(frozen=True, slots=True)
class Drawn:
    """A table as a page shows it: ``table`` of `_table.html` draws it.

    Attributes:
        columns: Those that are shown, in order.
        lines: Its lines, in order.
        header: Name of the column that names the line; empty for none.
        sorts: Column -> (address that sorts by it, ``aria-sort``).
    """

    columns: tuple[Column, ...]
    lines: tuple[Any, ...]
    header: str
    sorts: Mapping[str, tuple[str, str]]

    def rows(
        self, shared: Any, own: Mapping[str, Any], *, labelled: bool
    ) -> Iterator[tuple[Any, Markup]]:
        """Yield each line with its cells.

        Args:
            shared: The macros of cells that every page has.
            own: Those of this page alone, by name.
            labelled: Whether a narrow page writes the headings before the values.
        """
        # A page may have a thousand cells: what is the same in every line is found once.
        parts = [
            (
                *(each, own.get(each.cell) or getattr(shared, each.cell)),
                _END[each.name == self.header],
                *(self._tag(each, value, labelled=labelled) for value in (False, True)),
            )
            for each in self.columns
        ]
        for line in self.lines:
            cells: list[Markup] = []
            for column, cell, end, empty, filled in parts:
                value = column.of(line)
                cells += (filled if value else empty, cell(value, line, column), end)
            yield line, Markup("").join(cells)  # which escapes what a macro had not

    def _tag(self, column: Column, value: bool, *, labelled: bool) -> Markup:
        names = column.name == self.header
        label = column.title if column.label is None else column.label
        return _tag(column.classes(value), label if labelled and not names else "", names=names)

    def __len__(self) -> int:
        """Return how many lines are shown."""
        return len(self.lines)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the lines."""
        return iter(self.lines)


_Find = Callable[[Ask], Iterable[Any] | RowStream]


def _of_name(name: TableName) -> tuple[type | None, Iterable[str], _Find]:
    """Return the class of the rows of a named table, what its file has not, and what finds them."""
    found = NAMED[name]
    if isinstance(found, Rows):
        return found.kind, found.without, lambda ask: found.find(ask.conn, ask.scope)
    return None, (), lambda ask: found(ask.conn, ask.scope)


class Table:
    """A table of a page and its file."""

    def __init__(
        self,
        *columns: Column,
        file: str = "",
        named: TableName | None = None,
        row: type | None = None,
        rows: _Find | None = None,
        without: Iterable[str] = (),
        header: str | None = None,
        parameter: str = "cols",
    ) -> None:
        """Declare a table.

        Args:
            columns: In the order of the page.
            file: Name of its file: ``tools`` is served as ``/tools.csv``. Empty for none.
            named: Name of the table of API and command line that the file is of; then *row* and
                *without* are known, and *rows* too where the page asks for nothing else.
            row: Class of the rows of the file, a dataclass. The file has its fields, in their
                order, a rate as four; columns that are no field of it say what they write.
            rows: Returns the rows of the file, or all of it where the database streams it.
            without: Fields of the row that the file has not.
            header: Name of the column that names the line; the first by default, empty for none.
            parameter: What the address calls the choice of columns.
        """
        self.columns = columns
        self.name = file
        self.parameter = parameter
        self._header = header
        if named:
            row, without, shared = _of_name(named)
            rows = rows or shared
        self._row = row
        self._rows = rows
        self._without = frozenset(without)

    @property
    def titles(self) -> dict[str, str]:
        """Name -> heading of the columns that a reader may show or hide."""
        return {each.name: each.title for each in self.columns if each.usual is not None}

    @property
    def usual(self) -> tuple[str, ...]:
        """Names of those that are shown unless the address says otherwise."""
        return tuple(each.name for each in self.columns if each.usual)

    @property
    def sortable(self) -> dict[str, Column]:
        """Name -> column that the page can be sorted by."""
        return {each.name: each for each in self.columns if each.sort}

    def drawn(
        self,
        lines: Iterable[Any],
        shown: Sequence[str] | None = None,
        *,
        without: Sequence[str] = (),
        titles: Mapping[str, str] | None = None,
        sorts: Mapping[str, tuple[str, str]] | None = None,
    ) -> Drawn:
        """Return the table with *lines*, for the page to draw.

        Args:
            lines: What it shows, in order.
            shown: The chosen columns, of those that can be chosen; None for the usual ones.
            without: Columns that this reader, or this page, has not.
            titles: Headings that are known only now.
            sorts: Column -> (address that sorts by it, ``aria-sort``).
        """
        chosen = self.usual if shown is None else shown
        columns = tuple(
            replace(each, title=titles[each.name]) if titles and each.name in titles else each
            for each in self.columns
            if each.title
            and (each.usual is None or each.name in chosen)
            and each.name not in without
        )
        header = self.columns[0].name if self._header is None else self._header
        return Drawn(columns, tuple(lines), header, sorts or {})

    def stream(self, rows: Iterable[Any]) -> RowStream:
        """Return *rows* as a file."""
        more = [(each.file, each.of_row) for each in self.columns if each.file]
        return table_stream(rows, self._row, without=self._without, more=more)

    def file(self, ask: Ask) -> RowStream:
        """Return the file for one request."""
        found = self._rows(ask) if self._rows else ()
        return found if isinstance(found, RowStream) else self.stream(found)
