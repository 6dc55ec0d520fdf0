"""Changes: record one, and see before against after."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated as Doc
from typing import ClassVar, Final

from fastapi import APIRouter, HTTPException
from starlette.responses import RedirectResponse, Response

from toolfault_dashboard import queries
from toolfault_dashboard.access.policy import allows
from toolfault_dashboard.analysis.comparisons.effect import Effect, MetricEffect
from toolfault_dashboard.pages.comparisons.effects import (
    METRIC_COLUMNS,
    certainty,
    control_sentence,
    metric_lines,
    verdict_sentence,
)
from toolfault_dashboard.pages.shared.ask import DAY, Ask, Asked
from toolfault_dashboard.pages.shared.forms import Submitted
from toolfault_dashboard.pages.shared.frame import Context, Link
from toolfault_dashboard.pages.shared.lines import FrequencyLine, rows_behind
from toolfault_dashboard.pages.shared.numbered import Number
from toolfault_dashboard.pages.shared.over_time import TOP_CODES, TimeChart, time_chart
from toolfault_dashboard.pages.shared.table import Column, Drawn, Table
from toolfault_dashboard.queries.figures.totals import calls_by
from toolfault_dashboard.queries.rows import ChangeRow, FrequencyRow
from toolfault_dashboard.search import Clause, Moment, Query, parse
from toolfault_dashboard.writes.recording import record_change

__all__ = ["CHANGES", "EFFECT", "NEW_KINDS", "router"]


@dataclass(frozen=True, slots=True)
class ChangeForm:
    """The form that records a change: what was typed, and what is wrong with it."""

    label: Doc[str, "What changed."]
    tool: Doc[str, "The tool; empty for all."]
    at: Doc[str, "When, in UTC, as typed; empty for now."]
    problem: Doc[str, "What is wrong with the input; empty if nothing."]


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """A change in the list."""

    row: Doc[ChangeRow, "What is stored."]
    href: Doc[str, "Its page, with before and after."]


@dataclass(frozen=True, slots=True)
class ChangesContext(Context):
    """What `changes.html` shows."""

    template: ClassVar[str] = "changes.html"

    changes: Doc[Drawn, "This page of changes, newest first."]
    total: Doc[int, "Changes in all."]
    pages: Doc[dict[str, str], "Addresses of the newer and older page; empty at the ends."]
    form: Doc[ChangeForm, "The form."]
    tools: Doc[tuple[str, ...], "Known tools, for the form."]
    may_record: Doc[bool, "Whether this person may record a change."]
    recorded: Doc[str, "Label of the change just recorded; empty otherwise."]
    csv: Doc[str, "All changes as CSV."]
    compare: Doc[str, "Where any two queries are compared."]


@dataclass(frozen=True, slots=True)
class ChangeContext(Context):
    """What `change.html` shows."""

    template: ClassVar[str] = "change.html"

    change: Doc[ChangeRow, "What is stored."]
    effect: Doc[Effect, "Before against after."]
    sentence: Doc[str, "The verdict in a sentence."]
    detail: Doc[str, "How sure that is, in a sentence."]
    control: Doc[str, "How the tools fared that it did not touch, in words; empty without any."]
    metrics: Doc[Drawn, "The metrics."]
    time: Doc[TimeChart | None, "Failures over time around the change."]
    windows: Doc[tuple[Link, ...], "How much time before and after is compared."]
    new: Doc[Drawn, "Kinds of failure that were never seen before the change."]
    links: Doc[
        dict[str, str],
        "Addresses: before, after (failures of each cohort), changes, csv, new_csv, compare.",
    ]


router = APIRouter()

SIDES: Final = {"7d": ("7 days", 7), "14d": ("14 days", 14), "30d": ("30 days", 30)}
DEFAULT_SIDES: Final = "14d"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_LABEL: Final = 200
ROWS: Final = 50  # of a page of the list
NEW: Final = 10  # kinds of failure shown that a change may have brought
ALL_NEW: Final = 10_000  # and in the file


CHANGES: Final = Table(
    Column("when", "When", "moment", "row.occurred_at", label=""),
    Column("change", "Change", "link", "row.label"),
    Column("tool", "Tool", "whole_code", "row.tool", label="", nothing="all tools"),
    Column("kind", "Kind", "kind", "row.kind", label=""),
    Column("source", "Source", "source", "row.source"),
    Column("effect", "Effect", "effect", "row.label", hidden=True, style="num", label=""),
    file="changes", named="changes", header="change",
)  # fmt: skip
EFFECT: Final = Table(
    *METRIC_COLUMNS,
    file="effect", row=MetricEffect, rows=lambda ask: _asked_effect(ask).metrics,
)  # fmt: skip


@router.get("/changes", name="changes")
def changes(ask: Asked, page: Number = 1) -> Response:
    """Render a page of the list, and the form."""
    return _list(ask, ChangeForm(label="", tool=_tool_of(ask), at="", problem=""), page=page)


def _tool_of(ask: Ask) -> str:
    return ask.request.query_params.get("tool", "")


def _list(ask: Ask, form: ChangeForm, *, page: int = 1, status: int = 200) -> Response:
    everything = ask.scope_of(parse(""))
    rows = queries.all_changes(ask.conn, everything)
    known = calls_by(ask.conn, everything, "tool") if ask.project else ()
    recorded = ask.request.query_params.get("recorded", "")
    page = min(page, max(1, -(-len(rows) // ROWS)))
    shown = rows[(page - 1) * ROWS : page * ROWS]

    def to(number: int) -> str:
        return ask.link("/changes", "", window="", page="" if number == 1 else str(number))

    context = ChangesContext(
        changes=CHANGES.drawn(ChangeLine(row=row, href=_href(ask, row)) for row in shown),
        total=len(rows),
        pages={
            "newer": to(page - 1) if page > 1 else "",
            "older": to(page + 1) if page * ROWS < len(rows) else "",
        },
        form=form,
        tools=tuple(sorted(known)),
        may_record=allows(ask.viewer.role, "developer") and ask.project is not None,
        recorded=next((row.label for row in rows if row.event_id == recorded), ""),
        csv=ask.link("/changes.csv", "", window="all"),
        compare=ask.link("/compare", "", window=""),
    )
    return ask.render(context, title="Changes", status=status)


def _href(ask: Ask, row: ChangeRow) -> str:
    return ask.link(f"/changes/{row.event_id}", "", window="")


@router.post("/changes", name="record_change")
def record(ask: Asked, form: Submitted) -> Response:
    """Record a change; a form with a mistake comes back with what to do about it."""
    label, tool, at = (form.get(name, "").strip() for name in ("label", "tool", "at"))
    moment = ask.now if not at else _read_moment(at)
    problem = _problem(label, moment, ask.now)
    if problem or moment is None or ask.project is None:
        return _list(ask, ChangeForm(label, tool, at, problem), status=422)
    event_id = record_change(
        ask.services.engine,
        ask.project.id,
        label=label,
        tool=tool or None,
        at=moment,
        now=ask.now,
    )
    # Read-your-write: the redirect opens a new snapshot.
    return RedirectResponse(ask.link("/changes", "", window="", recorded=event_id), status_code=303)


def _read_moment(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _problem(label: str, moment: int | None, now: int) -> str:
    if not label:
        return "Say what was changed."
    if len(label) > _LONGEST_LABEL:
        return f"Say it in at most {_LONGEST_LABEL} characters."
    if moment is None:
        return "Write the time as 2026-11-21T14:00, in UTC."
    if not 0 <= moment <= now + 60_000_000:
        return "A change lies in the past: write the time at which it went live, in UTC."
    return ""


@router.get("/changes/{event_id}", name="change")
def change(ask: Asked, event_id: str) -> Response:
    """Render one change: every metric before and after, and the verdict."""
    everything = ask.scope_of(parse(""))
    row, chosen = _change(ask, event_id), _chosen_sides(ask)
    days = SIDES[chosen][1] * DAY
    found = queries.change_effect(ask.conn, everything, row, window=days)
    before, after = queries.cohorts_of_change(everything, row, window=days)
    around = _around(row, days, ask.now)
    narrowed = replace(ask, text=str(around), fixed=around)
    drawn = queries.failures_over_time(ask.conn, narrowed.scope, top=TOP_CODES)
    others = queries.changes(ask.conn, narrowed.scope)
    path = f"/changes/{row.event_id}"
    context = ChangeContext(
        change=row,
        effect=found,
        sentence=verdict_sentence(found),
        detail=certainty(found),
        control=control_sentence(queries.change_control(ask.conn, everything, row, window=days)),
        metrics=EFFECT.drawn(metric_lines(found)),
        time=time_chart(narrowed, drawn, [row, *(each for each in others if each != row)]),
        windows=tuple(
            Link(label, ask.link(path, "", window="", sides=name), name == chosen)
            for name, (label, _) in SIDES.items()
        ),
        new=NEW_KINDS.drawn(_new(replace(ask, text=str(after.query), fixed=after.query), row)),
        links={
            "before": ask.link("/failures", before.query, window=""),
            "after": ask.link("/failures", after.query, window=""),
            "changes": ask.link("/changes", "", window=""),
            "csv": ask.link("/effect.csv", "", window="", change=row.event_id, sides=chosen),
            "new_csv": ask.link("/new-since.csv", "", window="", change=row.event_id, sides=chosen),
            "compare": ask.link(
                "/compare", "", window="", before=str(before.query), after=str(after.query)
            ),
        },
    )
    return ask.render(context, title=row.label)


def _new(ask: Ask, row: ChangeRow) -> tuple[FrequencyLine, ...]:
    """Return the signatures of the time after the change that were never seen before it."""
    found = queries.new_signatures(ask.conn, ask.scope, row.occurred_at, limit=NEW)
    return tuple(
        FrequencyLine(
            name=" · ".join(filter(None, (each.code or "failure", each.fields))),
            tool=each.tool or "",
            failures=each.failures,
            share=0.0,
            rate=each.rate,
            estimate=None,
            first_at=each.first_at,
            last_at=each.last_at,
            href=rows_behind(ask, each.query),
            meaning="",
        )
        for each in found
    )


def _asked_new(ask: Ask) -> tuple[FrequencyRow, ...]:
    """Return every signature that was never seen before the change that the address names.

    Raises:
        HTTPException: 404, there is no such change in the project.
    """
    row = _change(ask, ask.request.query_params.get("change", ""))
    days = SIDES[_chosen_sides(ask)][1] * DAY
    _, after = queries.cohorts_of_change(ask.scope_of(parse("")), row, window=days)
    return queries.new_signatures(ask.conn, after, row.occurred_at, limit=ALL_NEW)


NEW_KINDS: Final = Table(
    Column("name", "Kind", "behind_in_tool", term="kind of failure"),
    Column("failures", "Failures", "count"),
    Column("rate", "Rate of the tool's calls", "rate_text", n="text", label="Rate"),
    Column("first_at", "First seen", "moment"),
    Column("last_at", "Last seen", "moment"),
    file="new-since", row=FrequencyRow, rows=_asked_new, without=("new_since",),
)  # fmt: skip


def _change(ask: Ask, event_id: str) -> ChangeRow:
    row = queries.change(ask.conn, ask.scope_of(parse("")), event_id)
    if row is None:
        raise HTTPException(404, "There is no change with this id in this project.")
    return row


def _chosen_sides(ask: Ask) -> str:
    chosen = ask.request.query_params.get("sides", DEFAULT_SIDES)
    return chosen if chosen in SIDES else DEFAULT_SIDES


def _asked_effect(ask: Ask) -> Effect:
    """Return the effect of the change that the address names.

    Raises:
        HTTPException: 404, there is no such change in the project.
    """
    row = _change(ask, ask.request.query_params.get("change", ""))
    window = SIDES[_chosen_sides(ask)][1] * DAY
    return queries.change_effect(ask.conn, ask.scope_of(parse("")), row, window=window)


def _around(row: ChangeRow, days: int, now: int) -> Query:
    """Return the calls that the change is about, on both of its sides."""
    since, until = row.occurred_at - days, min(now, row.occurred_at + days)
    times = (Clause("since", (Moment(at=since),)), Clause("until", (Moment(at=until),)))
    return queries.touched_by(row).and_(Query(times))
