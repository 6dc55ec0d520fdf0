"""Failures by kind: one row for all that have the same signature."""

from __future__ import annotations

from typing import Final, cast, get_args

from toolfault_collector.clock import DAY_US
from toolfault_dashboard import queries
from toolfault_dashboard.charts import sparkline
from toolfault_dashboard.contexts import Link
from toolfault_dashboard.contexts.failures import KindLine, KindsTable
from toolfault_dashboard.pages._ask import Ask
from toolfault_dashboard.pages._lines import rows_behind
from toolfault_dashboard.pages._time import peak_words
from toolfault_dashboard.queries import KIND_ORDERS, KindOrder, KindRow, Kinds
from toolfault_dashboard.search import parse

__all__ = ["by_kind", "chosen_order", "kept_kinds", "kind_tabs", "kinds_table", "new_kinds"]

ROWS: Final = 50
_DEFAULT: Final[KindOrder] = "failures"


def by_kind(ask: Ask) -> bool:
    """Say whether the address asks for kinds."""
    return ask.request.query_params.get("group") == "kind"


def chosen_order(ask: Ask) -> KindOrder:
    """Return the order that the address asks for."""
    wanted = ask.request.query_params.get("sort", "")
    return cast("KindOrder", wanted) if wanted in get_args(KindOrder) else _DEFAULT


def kept_kinds(ask: Ask) -> dict[str, str]:
    """Return the parameters that links of the page have to keep."""
    if not by_kind(ask):
        return {}
    order = chosen_order(ask)
    return {"group": "kind"} | ({"sort": order} if order != _DEFAULT else {})


def kind_tabs(ask: Ask, **kept: str) -> tuple[Link, ...]:
    """Return the two ways to look at the failures of the view."""
    here = by_kind(ask)
    rest = {name: value for name, value in kept.items() if name not in ("group", "sort")}
    return (
        Link("List", ask.link("/failures", **rest), not here),
        Link("Grouped", ask.link("/failures", **rest, group="kind"), here),
    )


def kinds_table(ask: Ask, **kept: str) -> tuple[KindsTable, int]:
    """Return the kinds of the view, and how many failures it has."""
    order = chosen_order(ask)
    found = queries.kinds(ask.conn, ask.scope, order=order, limit=ROWS)
    table = KindsTable(
        lines=tuple(_line(ask, found, row) for row in found.rows),
        new=new_kinds(ask, **kept),
        groups=found.groups,
        buckets=len(found.starts),
        per=found.bucket,
        sorts={
            name: (
                ask.link("/failures", **(kept | {"sort": "" if name == _DEFAULT else name})),
                "descending" if name == order else "",
            )
            for name in KIND_ORDERS
        },
        csv=ask.export("/kinds.csv", sort="" if order == _DEFAULT else order),
    )
    return table, found.failures


def new_kinds(ask: Ask, **kept: str) -> Link:
    """Return the link to the kinds of failure that were never seen before yesterday, and back."""
    chosen = ask.query.has("first_seen")
    rest = ask.query.without("first_seen")
    query = rest if chosen else rest.and_(parse("first_seen:1d"))
    return Link("New since a day ago", ask.link("/failures", query, **kept), chosen)


def _line(ask: Ask, found: Kinds, row: KindRow) -> KindLine:
    return KindLine(
        row=row,
        href=rows_behind(ask, row.query),
        share=row.failures / found.failures if found.failures else 0.0,
        new=row.first_at is not None and row.first_at >= ask.now - DAY_US,
        drawn=sparkline(row.counts),
        peak=peak_words(found.bucket, found.starts, row.counts, ask.now),
    )
