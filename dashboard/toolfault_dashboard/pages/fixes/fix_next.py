"""Fix next: what to mend first, and how many calls that would save."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated as Doc
from typing import ClassVar, Final, NamedTuple

from fastapi import APIRouter, HTTPException
from starlette.responses import RedirectResponse, Response

from toolfault_dashboard import queries
from toolfault_dashboard.analysis.fixes.inference import inferred_remedies
from toolfault_dashboard.analysis.fixes.opportunities import FixIssue, FixKey, renamed
from toolfault_dashboard.analysis.fixes.patches import Patch, patches
from toolfault_dashboard.analysis.fixes.remedies import advice
from toolfault_dashboard.exports.fixes import also_under, called_first, covered
from toolfault_dashboard.formats import count, decimal, plural
from toolfault_dashboard.pages.shared.ask import Ask, Asked
from toolfault_dashboard.pages.shared.forms import Submitted
from toolfault_dashboard.pages.shared.frame import Context, Link, View
from toolfault_dashboard.pages.shared.lines import rows_behind
from toolfault_dashboard.pages.shared.numbered import Number, numbered
from toolfault_dashboard.pages.shared.table import Column, Drawn, Table
from toolfault_dashboard.predictions import Outcome, outcomes, predicted
from toolfault_dashboard.queries.fixes.fix_next import FEW, FixList, FixRow
from toolfault_dashboard.queries.fixes.fix_next import fix_next as find
from toolfault_dashboard.queries.rows import CalledFirst, FailureDetail
from toolfault_dashboard.queries.rows.issues import IssueRow
from toolfault_dashboard.search import Clause, Pattern, parse
from toolfault_dashboard.writes.picked_fixes import PickedFix, pick_fix, picked_fixes, unpick_fix

__all__ = ["FIXES", "PICKED", "NearMiss", "fix_lines", "near_misses", "router"]


@dataclass(frozen=True, slots=True)
class PickedLine:
    """One thing to mend that somebody added by hand."""

    row: Doc[PickedFix, "What is stored."]
    title: Doc[str, "What to do, one sentence."]
    place: Doc[str, "Where the ranking of the view has it, in words."]
    predicted: Doc[str, "What it was predicted to save when it was added, in words."]
    realised: Doc[str, "What it has saved since its tool was changed, and whether that was right."]
    failure: Doc[str, "The failure it was seen on."]
    href: Doc[str, "The failures behind it; empty if no query can name them."]


@dataclass(frozen=True, slots=True)
class FixLine:
    """One thing to mend."""

    row: Doc[FixRow, "What was found."]
    patches: Doc[tuple[Patch, ...], "Ways to mend it; none where no remedy is known."]
    share: Doc[float, "Its calls as a share of those of the first line, 0 to 1."]
    calls: Doc[str, "What ranks it: calls saved or, where no remedy is known, spent, in words."]
    interval: Doc[str, "Their interval; empty where there is none."]
    saved: Doc[str, "Calls saved per week, or in the window where these are few; empty if unknown."]
    spent: Doc[str, "Calls spent, likewise; empty where other lines have them."]
    since: Doc[str, "What it has saved since a change of its tool; empty without one."]
    also: Doc[str, "How many of its failures stand in other lines too; empty if none."]
    others: Doc[tuple[Link, ...], "Those lines by their numbers."]
    spared: Doc[str, "The same without the change's name; empty without one."]
    first: Doc[str, "What the model called before it succeeded, in a sentence; empty if nothing."]
    href: Doc[str, "The failures behind it; empty if no query can name them."]
    messages: Doc[str, "What its failures said, message by message; empty likewise."]
    tool: Doc[str, "The page of its tool."]
    added: Doc[str, "Who added it by hand too; empty if nobody did."]


@dataclass(frozen=True, slots=True)
class FixNextContext(Context):
    """What `fix_next.html` shows."""

    template: ClassVar[str] = "fix_next.html"

    view: Doc[View, "The query bar."]
    fixes: Doc[tuple[FixLine, ...], "What to mend, most calls first."]
    rare: Doc[Drawn, "What was seen once or twice, beside that."]
    rare_cost: Doc[int, "Calls spent on these."]
    covered: Doc[str, "How many of all calls spent the lists cover, as a sentence."]
    ignored: Doc[
        Link | None, "What is left out since it is ignored, and its cost; None if nothing."
    ]
    picked: Doc[Drawn, "What people added by hand, newest first."]
    done: Doc[str, "What was just done, as a sentence; else empty."]
    mended: Doc[Drawn, "What has not come back since a change."]
    failures: Doc[int, "Failures looked at."]
    complete: Doc[bool, "Whether all failures of the view were looked at."]
    looked_from: Doc[int | None, "Where not all were: since when, as far as they have times."]
    total: Doc[int, "How many the whole list has, with what was seen once or twice and is fixed."]
    pages: Doc[dict[str, str], "Addresses of the pages before and after; empty at the ends."]
    csv: Doc[str, "This list as CSV."]
    picked_csv: Doc[str, "What was added by hand as CSV."]


router = APIRouter()

ROWS: Final = 50

_DONE: Final = {"added": "Added to this list.", "removed": "Removed from this list."}


FIXES: Final = Table(file="fix-next", named="fixes")
"""All lists of the page, as one file."""
PICKED: Final = Table(
    Column("title", "What", "link", style="cell-text"),
    Column("place", "In the ranking"),
    Column("predicted", "Predicted"),
    Column("realised", "Saved since the change"),
    Column("failure", "Seen on", "failure_seen", style="nowrap"),
    Column("added_by", "Added by", value="row.added_by"),
    Column("added_at", "When", "moment", "row.added_at", style="nowrap"),
    Column("remove", "Remove", "remove", "title", hidden=True, style="num", label=""),
    file="picked-fixes",
    row=PickedFix,
    rows=lambda ask: picked_fixes(ask.conn, ask.project.id) if ask.project else (),
)
RARE: Final = Table(
    Column("title", "What", "what", "row.title", style="cell-text"),
    Column("failures", "Failures", "count_link", "row.failures"),
    Column("spent", "Calls spent"),
    Column("saved", "Calls saved", "plain"),
    Column("round_trips", "Round trips", "count", "row.round_trips"),
    Column("abandoned", "Abandoned", "count", "row.abandoned"),
    Column("last", "Last seen", "moment", "row.last_at", style="nowrap", term=""),
)
MENDED: Final = Table(
    Column("title", "What", "what", "row.title", style="cell-text"),
    Column("tool", "Tool", "code", "row.tool"),
    Column("change", "Change", "name", "row.mended_by", style="cell-text"),
    Column("spared", "Saved since", "plain", style="cell-text", nothing="not enough data"),
    Column("failures", "Failures before", "count_link", "row.failures"),
    Column("last", "Last seen", "moment", "row.last_at", style="nowrap", term=""),
)


@router.get("/fix-next", name="fix_next")
def fix_next(ask: Asked, page: Number = 1) -> Response:
    """Render the ranking; what a change has mended and what people added stand apart."""
    skip = (page - 1) * ROWS
    found = find(ask.conn, ask.scope, limit=ROWS, skip=skip)
    number, pages = numbered(ask, page, found.total, ROWS)
    if number != page:
        return fix_next(ask, number)
    picked = picked_fixes(ask.conn, ask.project.id) if ask.project else ()
    added = {(each.tool, each.field, each.remedy): each.added_by for each in picked}
    weekly = _is_weekly(found)
    first = _called_first(ask, found.rows)
    lines = [
        (
            row,
            _line(
                ask,
                row,
                found.most,
                added=added.get((row.tool, row.field, row.remedy), ""),
                first=first.get(row.key),
                weekly=weekly,
                page=page,
            ),
        )
        for row in found.rows
    ]
    unmended = tuple(line for row, line in lines if row.mended_by is None)
    often = tuple(line for line in unmended if line.row.failures >= FEW)
    shown = often or (() if skip else unmended)
    rare = tuple(line for line in unmended if line not in shown)
    ranked = [line.row for line in shown]
    context = FixNextContext(
        view=ask.view("/fix-next"),
        fixes=shown,
        rare=RARE.drawn(rare),
        rare_cost=round(sum(line.row.cost or 0 for line in rare)),
        covered=covered(found),
        total=found.total,
        pages=pages,
        ignored=_ignored(ask, found),
        mended=MENDED.drawn(line for row, line in lines if row.mended_by is not None),
        picked=PICKED.drawn(
            _picked(ask, each, ranked, found.total, weekly=weekly)
            for each in outcomes(ask.conn, ask.scope_of(parse("")), picked)
        ),
        done=_DONE.get(ask.request.query_params.get("done", ""), ""),
        failures=found.failures,
        complete=found.complete,
        looked_from=found.looked_from,
        csv=ask.export("/fix-next.csv"),
        picked_csv=ask.link("/picked-fixes.csv", "", window=""),
    )
    return ask.render(context, title="Fix next")


@router.post("/fix-next", name="pick_fix")
def pick(ask: Asked, form: Submitted) -> Response:
    """Add a remedy that stands on a failure; what no failure of the project names is refused."""
    event, field, remedy = (form.get(key, "") for key in ("event", "field", "remedy"))
    detail = queries.failure_detail(ask.conn, ask.scope_of(parse("")), event)
    if ask.project is None or detail is None:
        raise HTTPException(404, "There is no failure with this id in this project.")
    named = {(each.field, each.remedy) for each in near_misses(detail) if each.field}
    if (field, remedy) not in named:
        raise HTTPException(422, "This failure names no such remedy.")
    tool = detail.row.tool
    prediction = predicted(ask.conn, ask.scope_of(parse("")), tool=tool, field=field, remedy=remedy)
    try:
        pick_fix(
            ask.services.engine, ask.project.id, tool=tool, field=field, remedy=remedy,
            event_id=event, actor=ask.viewer.name, now=ask.now, prediction=prediction,
        )  # fmt: skip
    except ValueError as error:
        raise HTTPException(422, str(error)) from None
    return _back(ask, "added")


@router.post("/fix-next/remove", name="unpick_fix")
def unpick(ask: Asked, form: Submitted) -> Response:
    """Take something off the list, whoever put it there: the list is the team's."""
    number = form.get("id", "")
    found = (
        ask.project is not None
        and number.isdecimal()
        and len(number) <= 9
        and unpick_fix(ask.services.engine, ask.project.id, int(number), actor=ask.viewer.name)
    )
    if not found:
        raise HTTPException(404, "Nothing like that was added by hand in this project.")
    return _back(ask, "removed")


def _back(ask: Ask, done: str) -> Response:
    return RedirectResponse(ask.link("/fix-next", "", window="", done=done), status_code=303)


class NearMiss(NamedTuple):
    """An issue with a remedy that would have accepted what it rejects."""

    issue: IssueRow
    remedy: str
    field: str  # the pattern of the argument to mend; empty where nobody can say which one


def near_misses(detail: FailureDetail) -> tuple[NearMiss, ...]:
    """Return every issue of a failure with each remedy that would have accepted its value.

    Where the sender named none, what was expected and received tells some. Another name is one of
    the argument that was meant, if one alone can be.
    """
    meant = renamed(
        [FixIssue(each.field_pattern, each.field, each.code, ()) for each in detail.issues]
    )
    found: list[NearMiss] = []
    for issue in detail.issues:
        names = issue.near_miss or inferred_remedies(
            issue.expected, issue.received, issue.received_type
        )
        if meant and issue.code == "unknown_field" and not names:
            names = ("alias",)
        for name in names:
            field = issue.field_pattern
            if name == "alias":
                field = meant[0] if meant and issue.code == "unknown_field" else ""
            found.append(NearMiss(issue, name, field))
    return tuple(found)


def _picked(
    ask: Ask, found: Outcome, ranked: Sequence[FixRow], total: int, *, weekly: bool
) -> PickedLine:
    row = found.picked
    here = (row.tool, row.field, row.remedy)
    place = next(
        (
            f"number {each.number}: {_calls(each, weekly=weekly)}"
            for each in ranked
            if (each.tool, each.field, each.remedy) == here
        ),
        f"not in the ranking of this {'view' if total <= ROWS else 'page'}",
    )
    clauses = (("tool", row.tool), ("field_pattern", row.field))
    query = " ".join(str(Clause(name, (Pattern((value,)),))) for name, value in clauses)
    return PickedLine(
        row=row,
        title=advice(FixKey(*here)).title,
        place=place,
        predicted=_predicted(row),
        realised=_realised(found),
        failure=ask.link(f"/failures/{row.event_id}", "", window=""),
        href=rows_behind(ask, query),
    )


def _predicted(row: PickedFix) -> str:
    if row.predicted_per_week is None:
        return "not enough data"
    return (
        f"{decimal(row.predicted_per_week, 1)} calls a week"
        f" (95%: {decimal(row.predicted_low, 1)} to {decimal(row.predicted_high, 1)}"
        f" over the four weeks to come; n = {plural(row.predicted_n or 0, 'failure')})"
    )


def _realised(found: Outcome) -> str:
    if found.saved is None:
        return found.verdict
    return (
        f"{found.verdict}: {decimal(found.saved, 1)} calls a week since “{found.change}”"
        f" (95%: {decimal(found.low, 1)} to {decimal(found.high, 1)};"
        f" n = {plural(found.n or 0, 'operation')}). For a time of so many operations"
        f" {decimal(found.predicted_low, 1)} to {decimal(found.predicted_high, 1)} were predicted."
    )


def _line(
    ask: Ask,
    row: FixRow,
    most: float,
    *,
    weekly: bool,
    added: str = "",
    first: CalledFirst | None = None,
    page: int = 1,
) -> FixLine:
    return FixLine(
        row=row,
        patches=patches(row.key),
        share=row.calls / most if most else 0.0,
        calls=_calls(row, weekly=weekly),
        interval=_interval(row, weekly=weekly),
        saved=_over(row.saved, row.saved_per_week, weekly=weekly),
        spent=_over(row.cost, row.cost_per_week, weekly=weekly),
        since=_since(row, f" since “{row.changed_by}”"),
        also=also_under(row),
        others=tuple(_number(ask, each, page) for each in row.shared_with),
        spared=_since(row),
        first=called_first(row, first) if first else "",
        href=rows_behind(ask, row.query),
        messages=rows_behind(ask, row.query, "/messages"),
        tool=ask.link("/tool", name=row.tool),
        added=added,
    )


def fix_lines(ask: Ask, rows: Sequence[FixRow]) -> tuple[FixLine, ...]:
    """Return *rows* by themselves, with their calls in the window."""
    first = _called_first(ask, rows)
    return tuple(_line(ask, row, row.calls, weekly=False, first=first.get(row.key)) for row in rows)


def _called_first(ask: Ask, rows: Sequence[FixRow]) -> dict[FixKey, CalledFirst]:
    """Return what models called before a row without a remedy recovered, where they did."""
    unknown = {row.key: (row.tool, row.detail) for row in rows if row.remedy == "open"}
    tools = {tool for tool, _ in unknown.values()}
    found = queries.calls_before_recovery(ask.conn, ask.scope, tools) if tools else {}
    return {key: found[kind] for key, kind in unknown.items() if kind in found}


def _number(ask: Ask, number: int, page: int) -> Link:
    """Return the link from *page* of the list to the line with *number*."""
    of_it = 1 + (number - 1) // ROWS
    there = "" if of_it == page else ask.here(page=str(of_it), done="")
    return Link(f"number {count(number)}", f"{there}#fix-{number}", current=False)


def _ignored(ask: Ask, found: FixList) -> Link | None:
    """Return the link to what is left out because somebody ignores it, with what that costs."""
    if not found.ignored_kinds:
        return None
    kinds, failures = plural(found.ignored_kinds, "kind"), plural(found.ignored_failures, "failure")
    cost = plural(round(found.ignored_cost), "call")
    words = f"Left out: {kinds} that somebody ignores, with {failures} and {cost} spent after them"
    return Link(words, ask.link("/fix-next", ask.query.and_(parse("state:ignored"))), current=False)


def _is_weekly(found: FixList) -> bool:
    """Whether a week has enough for figures with one decimal; else the window is counted whole.

    The first problem of the whole list decides, so that all of its pages have one unit.
    """
    return found.weeks is not None and found.most / found.weeks >= 5.0


def _calls(row: FixRow, *, weekly: bool) -> str:
    """Say what the row is ranked by."""
    if row.saved is None:
        return _over(row.cost, row.cost_per_week, " spent", weekly=weekly)
    return _over(row.saved, row.saved_per_week, " saved", weekly=weekly)


def _over(calls: float | None, per_week: float | None, how: str = "", *, weekly: bool) -> str:
    """Say how many calls these are, a week or in the window; nothing where that is unknown."""
    if calls is None:
        return ""
    if per_week is None or not weekly:
        return f"{plural(round(calls), 'call')}{how} in the window"
    return f"{decimal(per_week, 1)} calls a week{how}"


def _interval(row: FixRow, *, weekly: bool) -> str:
    low, high = row.saved_per_week_low, row.saved_per_week_high
    if row.saved is None:
        low, high = row.cost_per_week_low, row.cost_per_week_high
    return f"95%: {decimal(low, 1)} to {decimal(high, 1)}" if weekly and low is not None else ""


def _since(row: FixRow, when: str = "") -> str:
    """Say how a change of the tool turned out, with the interval of the number that is named."""
    saved, low, high = row.saved_since, row.saved_since_low, row.saved_since_high
    if saved is None or low is None or high is None:
        return ""
    word = "call saved" if round(saved) == 1 else "calls saved"
    if saved < 0:
        saved, low, high = -saved, -high, -low
        word = "more call" if round(saved) == 1 else "more calls"
    number = f"{count(round(saved))} {word}"
    return f"{number}{when} (95%: {decimal(low, 1)} to {decimal(high, 1)})"
