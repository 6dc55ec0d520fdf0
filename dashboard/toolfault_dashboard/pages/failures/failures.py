"""Failures: the list with its facets and the filter form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc
from typing import ClassVar, Final

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from toolfault_dashboard import queries
from toolfault_dashboard.formats import when
from toolfault_dashboard.pages.failures.kinds_table import (
    KINDS,
    KindsTable,
    by_kind,
    kept_kinds,
    kind_tabs,
    kinds_table,
)
from toolfault_dashboard.pages.figures.breakdown import PROPERTIES
from toolfault_dashboard.pages.shared.ask import Ask, Asked
from toolfault_dashboard.pages.shared.columns import (
    ColumnChoice,
    choice,
    kept_columns,
    redirected,
)
from toolfault_dashboard.pages.shared.frame import Context, Link, View
from toolfault_dashboard.pages.shared.lines import FAILURES, alert_about, failure_line
from toolfault_dashboard.pages.shared.numbered import Number
from toolfault_dashboard.pages.shared.table import Drawn
from toolfault_dashboard.queries.rows import Facet, FailurePage
from toolfault_dashboard.search import KEYS, Clause, Pattern, Query, QueryError, parse
from toolfault_dashboard.search.ast import Value

__all__ = ["FORM_KEYS", "router"]


@dataclass(frozen=True, slots=True)
class FacetLine:
    """One value of a facet."""

    label: Doc[str, "The value, or words for none."]
    failures: Doc[int, "Failures that carry it under the other conditions."]
    href: Doc[str, "The view with this value added or taken away."]
    selected: Doc[bool, "Whether the query asks for it."]


@dataclass(frozen=True, slots=True)
class FacetGroup:
    """One facet."""

    title: Doc[str, "The key in words."]
    lines: Doc[tuple[FacetLine, ...], "Its most frequent values."]
    more: Doc[int, "Values left out."]
    all: Doc[str, "Where all values are; empty where no page has them."]
    newest: Doc[int, "Failures, the newest, that it counts; 0 if it counts all of them."]


@dataclass(frozen=True, slots=True)
class FilterForm:
    """The form for readers who do not type queries: values of the present query."""

    tool: Doc[str, "Tool."]
    code: Doc[str, "Code."]
    field: Doc[str, "Field."]
    category: Doc[str, "Category."]
    audience: Doc[str, "Audience."]
    chain: Doc[str, "Outcome of the chain."]
    rest: Doc[str, "The conditions that the form does not know, kept as they are."]


@dataclass(frozen=True, slots=True)
class FailuresContext(Context):
    """What `failures.html` shows."""

    template: ClassVar[str] = "failures.html"

    view: Doc[View, "The query bar."]
    tabs: Doc[tuple[Link, ...], "The same failures one by one and by kind."]
    kinds: Doc[KindsTable | None, "The failures by kind; None where they are listed one by one."]
    form: Doc[FilterForm, "The filter form."]
    rows: Doc[Drawn, "This page of failures, newest first."]
    total: Doc[int, "Failures of the view."]
    facets: Doc[tuple[FacetGroup, ...], "Facets with live counts."]
    facets_exact: Doc[bool, "Whether every facet counts all failures of the view."]
    pages: Doc[dict[str, str], "Addresses of the newer and older page; empty at the ends."]
    csv: Doc[str, "This list as CSV."]
    alert: Doc[str, "Where an alert about this list is made; empty where the role may not."]
    columns: Doc[ColumnChoice, "The columns that can be added."]
    nothing_new: Doc[str, "Why no kind is new, where those are asked for; else empty."]


router = APIRouter()

FORM_KEYS: Final = ("tool", "code", "field", "category", "audience", "chain")
PAGE_ROWS: Final = 50


@router.get("/failures", name="failures")
def failures(ask: Asked, page: Number = 1) -> Response:
    """Render the list; a submitted form is first written as a query, so the URL says it all."""
    given = ask.request.query_params
    if "form" in given:
        return RedirectResponse(ask.link("/failures", _from_form(ask), **_kept(ask)), 303)
    kept = _kept(ask)
    tables = {"": KINDS if by_kind(ask) else FAILURES}
    if (answer := redirected(ask, "/failures", tables, **kept)) is not None:
        return answer
    kinds: KindsTable | None = None
    if by_kind(ask):
        kinds, total = kinds_table(ask, page, **kept)
        listed = FailurePage((), total, None, None)
        facets = queries.facets(ask.conn, ask.scope, total=total)
    else:
        # First, since they count the failures of the list on the way.
        facets = queries.facets(ask.conn, ask.scope)
        cursor = given.get("cursor") or None
        listed = queries.failure_list(ask.conn, ask.scope, cursor=cursor, limit=PAGE_ROWS)
    columns = choice(ask, FAILURES)
    context = FailuresContext(
        view=ask.view("/failures", **kept),
        tabs=kind_tabs(ask, **kept),
        kinds=kinds,
        form=_form(ask.query),
        rows=FAILURES.drawn((failure_line(ask, row) for row in listed.rows), columns.shown),
        total=listed.total,
        facets=tuple(_facet(ask, facet) for facet in facets.facets if _useful(facet)),
        facets_exact=facets.exact,
        pages={
            "newer": ask.link("/failures", cursor=listed.previous_cursor or "", **kept)
            if listed.previous_cursor
            else "",
            "older": ask.link("/failures", cursor=listed.next_cursor or "", **kept)
            if listed.next_cursor
            else "",
        },
        csv=kinds.csv if kinds else ask.export("/failures.csv"),
        alert=alert_about(ask, ask.query),
        columns=columns,
        nothing_new="" if listed.total else _nothing_new(ask),
    )
    return ask.render(context, title="Failures")


def _nothing_new(ask: Ask) -> str:
    """Say when the newest kind was first seen, where somebody asked for later ones."""
    if not ask.query.has("first_seen"):
        return ""
    others = ask.scope_of(ask.query.without("first_seen", "since", "until"))
    found = queries.kinds(ask.conn, others, order="first", limit=1, drawn=False)
    newest = next((row for row in found.rows if row.first_at is not None), None)
    if newest is not None:
        return (
            f"No kind of failure is that new. The newest, {newest.code} in {newest.tool}, was "
            f"first seen on {when(newest.first_at)} UTC."
        )
    untimed = "These failures have no times, so nothing tells which kinds of them are new."
    return untimed if found.failures else ""


def _kept(ask: Ask) -> dict[str, str]:
    return kept_columns(ask, FAILURES) | kept_kinds(ask)


def _useful(facet: Facet) -> bool:
    """Say whether a facet tells anything: more than one value, or the one that is selected."""
    values = [value for value in facet.values if value.value or value.selected]
    return facet.distinct > 1 or any(value.selected for value in values)


def _facet(ask: Ask, facet: Facet) -> FacetGroup:
    lines = tuple(
        FacetLine(
            label=value.value or "(none)",
            failures=value.failures,
            href=ask.link("/failures", ask.query.toggled(facet.key, value.value), **_kept(ask)),
            selected=value.selected,
        )
        for value in facet.values
    )
    return FacetGroup(
        title=KEYS[facet.key].title,
        lines=lines,
        more=max(0, facet.distinct - len(lines)),
        all=_all_of(ask, facet.key),
        newest=0 if facet.exact else facet.counted,
    )


def _all_of(ask: Ask, key: str) -> str:
    """Return the page of all values of a facet; like the facet it ignores what is chosen of it."""
    rest = Query(tuple(each for each in ask.query.clauses if each.key != key or each.negated))
    if key == "tool":
        return ask.link("/tools", rest)
    return ask.link("/breakdown", rest, by=key) if key in PROPERTIES else ""


def _single(query: Query, key: str) -> str:
    clauses = [clause for clause in query.of(key) if not clause.negated]
    if len(clauses) != 1:
        return ""
    return ",".join(str(value) for value in clauses[0].values)


def _form(query: Query) -> FilterForm:
    values = {key: _single(query, key) for key in FORM_KEYS}
    taken = [key for key, value in values.items() if value]
    rest = Query(
        tuple(clause for clause in query.clauses if clause.negated or clause.key not in taken)
    )
    return FilterForm(**values, rest=str(rest))


def _from_form(ask: Ask) -> str:
    """Return the query that the form describes, after the conditions that it does not know."""
    given = ask.request.query_params
    clauses = [
        Clause(key, _form_values(key, given[key]))
        for key in FORM_KEYS
        if given.get(key, "").strip(" ,")
    ]
    return " ".join(part for part in (ask.text, str(Query(tuple(clauses)))) if part)


def _form_values(key: str, text: str) -> tuple[Value, ...]:
    """Read values separated by commas; what is no value of the language is meant literally."""
    found: list[Value] = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        try:
            clauses = parse(f"{key}:{part}").clauses
        except QueryError:
            clauses = ()
        found.extend(clauses[0].values if len(clauses) == 1 else (Pattern((part,)),))
    return tuple(found)
