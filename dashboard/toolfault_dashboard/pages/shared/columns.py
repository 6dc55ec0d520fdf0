"""Which columns of a wide table are shown: chosen in a form, held by the address alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated as Doc
from typing import Final

from starlette.responses import RedirectResponse, Response

from toolfault_dashboard.pages.shared.ask import Ask
from toolfault_dashboard.pages.shared.table import Table

__all__ = ["choice", "chosen", "kept_columns", "redirected"]


@dataclass(frozen=True, slots=True)
class Choosable:
    """A column that can be shown or hidden."""

    name: Doc[str, "What the address calls it."]
    title: Doc[str, "Its heading."]
    shown: Doc[bool, "Whether it is shown."]


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """The columns of a wide table, to be chosen."""

    parameter: Doc[str, "What the address calls the choice."]
    columns: Doc[tuple[Choosable, ...], "Those that can be chosen, in order."]
    shown: Doc[tuple[str, ...], "Names of those that are shown."]
    usual: Doc[bool, "Whether nothing was chosen."]
    hidden: Doc[tuple[tuple[str, str], ...], "Further parameters to keep in the form."]


_NO_COLUMN: Final = "none"


def chosen(ask: Ask, table: Table) -> tuple[str, ...]:
    """Return the columns that the address asks for, in the order of the table."""
    asked = ask.request.query_params.get(table.parameter)
    if not asked:
        return table.usual
    names = asked.split(",")
    return tuple(name for name in table.titles if name in names)


def kept_columns(ask: Ask, *tables: Table) -> dict[str, str]:
    """Return the parameters that links of the page have to keep: what is not as usual."""
    return {
        table.parameter: _written(shown)
        for table in tables
        if (shown := chosen(ask, table)) != table.usual
    }


def choice(ask: Ask, table: Table, **kept: str) -> ColumnChoice:
    """Return the form that chooses; *kept* are further parameters of the page."""
    shown = chosen(ask, table)
    kept.pop(table.parameter, None)
    return ColumnChoice(
        parameter=table.parameter,
        columns=tuple(
            Choosable(name, title, name in shown) for name, title in table.titles.items()
        ),
        shown=shown,
        usual=shown == table.usual,
        hidden=tuple(kept.items()),
    )


def redirected(ask: Ask, path: str, tables: Mapping[str, Table], **kept: str) -> Response | None:
    """Return where a submitted choice leads, so that the address says it all; None without one.

    Args:
        ask: The request.
        path: Path of the page.
        tables: Place on the page -> its table.
        kept: Further parameters of the page, the other table's columns included.
    """
    given = ask.request.query_params
    for place, table in tables.items():
        if given.get("columns") != table.parameter:
            continue
        names = tuple(name for name in table.titles if name in given.getlist("col"))
        kept.pop(table.parameter, None)
        own = {} if names == table.usual else {table.parameter: _written(names)}
        address = ask.link(path, **kept, **own)
        return RedirectResponse(f"{address}#{place}" if place else address, status_code=303)
    return None


def _written(names: tuple[str, ...]) -> str:
    return ",".join(names) or _NO_COLUMN
