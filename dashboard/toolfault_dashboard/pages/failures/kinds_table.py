"""Failures by kind: one row for all that have the same signature."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated as Doc
from typing import Final, cast, get_args

from toolfault_dashboard import queries
from toolfault_dashboard.access.policy import allows
from toolfault_dashboard.charts import Spark
from toolfault_dashboard.formats import plural, timestamp
from toolfault_dashboard.pages.shared.ask import Ask
from toolfault_dashboard.pages.shared.columns import ColumnChoice, choice, kept_columns
from toolfault_dashboard.pages.shared.frame import Link
from toolfault_dashboard.pages.shared.lines import rows_behind
from toolfault_dashboard.pages.shared.numbered import numbered
from toolfault_dashboard.pages.shared.over_time import spark
from toolfault_dashboard.pages.shared.table import Column, Drawn, Table
from toolfault_dashboard.queries import KIND_ORDERS, KindOrder, KindRow, Kinds
from toolfault_dashboard.search import parse

__all__ = [
    "ENDS",
    "KINDS",
    "by_kind",
    "deciding",
    "done",
    "kept_kinds",
    "kind_tabs",
    "kinds_table",
    "new_kinds",
]


@dataclass(frozen=True, slots=True)
class Deciding:
    """What a reader may decide about kinds of failure, and where that is sent."""

    form: Doc[str, "Where the form is sent."]
    changes: Doc[tuple[tuple[str, str], ...], "What may have fixed them: event id and words."]
    ends: Doc[tuple[tuple[str, str], ...], "When ignoring may end: value and words."]


@dataclass(frozen=True, slots=True)
class KindLine:
    """The failures of one signature, as one row."""

    row: Doc[KindRow, "What was counted."]
    exception: Doc[str, "Its exception, where another row has the same tool, code and arguments."]
    href: Doc[str, "These failures, as a list."]
    share: Doc[float, "Share of the failures of the view, 0 to 1."]
    drawn: Doc[Spark, "When they happened."]


@dataclass(frozen=True, slots=True)
class KindsTable:
    """The failures of the view by kind."""

    lines: Doc[Drawn, "The kinds, in the order that the address asks for."]
    new: Doc[Link, "The kinds that are new in the last day; current where the query asks so."]
    columns: Doc[ColumnChoice, "The columns that can be chosen."]
    deciding: Doc[Deciding | None, "What can be decided about them; None if the role may not."]
    done: Doc[str, "What was just done, as a sentence; else empty."]
    groups: Doc[int, "Kinds in all."]
    pages: Doc[dict[str, str], "Addresses of the pages before and after; empty at the ends."]
    csv: Doc[str, "All kinds as CSV."]


ROWS: Final = 50
_DEFAULT: Final[KindOrder] = "failures"
_CHANGES: Final = 20  # that a form offers; older ones are named on the command line

KINDS: Final = Table(
    Column("choose", "Choose", "choose", "row", hidden=True, style="choose", label=""),
    Column("kind", "Kind", "kind", "row.code", term="kind of failure"),
    Column("state", "State", "kind_state", "row.state"),
    Column("owner", "Owner", "name", "row.owner", usual=True, nothing="–"),
    Column("failures", "Failures", "count", "row.failures"),
    Column("calls", "Calls spent", "count", "row.calls_spent", usual=True, quiet=True),
    Column("share", "Share", "share", usual=False, width=72),
    Column("drawn", "By time", "spark", usual=True, unit=", UTC", style="drawn", width=88),
    Column("first", "First seen", "day", "row.first_at", usual=True),
    Column("last", "Last seen", "moment", "row.last_at", usual=True, style="two-lines"),
    Column("fixed", "Fixed by", "fixed", "row", usual=False, style="cell-text", label=""),
    Column("note", "Note", "name", "row.note", usual=False, nothing="–", style="cell-text",
           label=""),
    file="kinds",
    named="kinds",
    header="kind",
    parameter="kcols",
    rows=lambda ask: queries.kinds(ask.conn, ask.scope, order=_order(ask), drawn=False).rows,
)  # fmt: skip

ENDS: Final = {
    "": "for good",
    "7d": "for 7 days",
    "30d": "for 30 days",
    "90d": "for 90 days",
    "10": "until 10 more failures",
    "100": "until 100 more failures",
    "1000": "until 1,000 more failures",
}
"""When ignoring may end: days, or further failures."""


def by_kind(ask: Ask) -> bool:
    """Say whether the address asks for kinds."""
    return ask.request.query_params.get("group") == "kind"


def _order(ask: Ask) -> KindOrder:
    wanted = ask.request.query_params.get("sort", "")
    return cast("KindOrder", wanted) if wanted in get_args(KindOrder) else _DEFAULT


def kept_kinds(ask: Ask) -> dict[str, str]:
    """Return the parameters that links of the page have to keep."""
    if not by_kind(ask):
        return {}
    order = _order(ask)
    sort = {"sort": order} if order != _DEFAULT else {}
    return {"group": "kind"} | sort | kept_columns(ask, KINDS)


def kind_tabs(ask: Ask, **kept: str) -> tuple[Link, ...]:
    """Return the two ways to look at the failures of the view."""
    here = by_kind(ask)
    rest = {name: value for name, value in kept.items() if name not in ("group", "sort")}
    return (
        Link("List", ask.link("/failures", **rest), not here),
        Link("Grouped", ask.link("/failures", **rest, group="kind"), here),
    )


def kinds_table(ask: Ask, page: int, **kept: str) -> tuple[KindsTable, int]:
    """Return a page of the kinds of the view, and how many failures the view has."""
    order = _order(ask)
    found = queries.kinds(ask.conn, ask.scope, order=order, limit=ROWS, skip=(page - 1) * ROWS)
    number, pages = numbered(ask, page, found.groups, ROWS)
    if number != page:
        return kinds_table(ask, number, **kept)
    alike = Counter((row.tool, row.code, row.fields) for row in found.rows)
    decisions = deciding(ask, **kept, page=str(page) if page > 1 else "")
    columns = choice(ask, KINDS, **kept)
    table = KindsTable(
        lines=KINDS.drawn(
            (
                _line(ask, found, row, twin=alike[row.tool, row.code, row.fields] > 1)
                for row in found.rows
            ),
            columns.shown,
            without=() if decisions else ("choose",),
            titles={"drawn": f"By {found.bucket}"},
            sorts={
                name: (
                    ask.link("/failures", **(kept | {"sort": "" if name == _DEFAULT else name})),
                    "descending" if name == order else "",
                )
                for name in KIND_ORDERS
            },
        ),
        new=new_kinds(ask, **kept),
        columns=columns,
        deciding=decisions,
        done=done(ask),
        groups=found.groups,
        pages=pages,
        csv=ask.export("/kinds.csv", sort="" if order == _DEFAULT else order),
    )
    return table, found.failures


def new_kinds(ask: Ask, **kept: str) -> Link:
    """Return the link to the kinds of failure that were never seen before yesterday, and back."""
    chosen = ask.query.has("first_seen")
    rest = ask.query.without("first_seen")
    query = rest if chosen else rest.and_(parse("first_seen:1d"))
    return Link("New in the last day", ask.link("/failures", query, **kept), chosen)


def deciding(ask: Ask, **kept: str) -> Deciding | None:
    """Return what the reader may decide about kinds, or None; *kept* leads back to the page."""
    if ask.project is None or not allows(ask.viewer.role, "developer"):
        return None
    changes = queries.changes(ask.conn, ask.scope_of(parse("")))[:_CHANGES]
    return Deciding(
        form=ask.link("/kinds", **kept),
        changes=tuple(
            (each.event_id, f"by {each.label}, {timestamp(each.occurred_at)[:10]}")
            for each in changes
        ),
        ends=tuple(ENDS.items()),
    )


def done(ask: Ask) -> str:
    """Return what was just decided, as a sentence; empty if nothing was."""
    number = ask.request.query_params.get("done", "")
    if not (number.isascii() and number.isdecimal() and len(number) <= 4):
        return ""
    changed = int(number)
    return (
        f"{plural(changed, 'kind')} changed." if changed else "Nothing was different from before."
    )


def _line(ask: Ask, found: Kinds, row: KindRow, *, twin: bool) -> KindLine:
    may_see = row.exception_type is not None
    return KindLine(
        row=row,
        exception=(row.exception_type or "no exception") if twin and may_see else "",
        href=rows_behind(ask, row.query),
        share=row.failures / found.failures if found.failures else 0.0,
        drawn=spark(found.bucket, found.starts, row.counts, ask.now),
    )
