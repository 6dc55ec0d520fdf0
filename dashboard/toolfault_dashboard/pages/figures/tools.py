"""Tools: every tool with its rates, and the page of one tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated as Doc
from typing import Any, ClassVar, Final, TypeVar

from fastapi import APIRouter, HTTPException
from starlette.responses import Response

from toolfault_dashboard import queries
from toolfault_dashboard.access.policy import allows
from toolfault_dashboard.analysis.rates import rate
from toolfault_dashboard.charts import Estimate, estimate, sparkline
from toolfault_dashboard.pages.figures.breakdown import BreakdownLine, lines_of
from toolfault_dashboard.pages.fixes.fix_next import FixLine, fix_lines
from toolfault_dashboard.pages.fixes.messages import MessageLine, message_line
from toolfault_dashboard.pages.shared.ask import Ask, Asked
from toolfault_dashboard.pages.shared.columns import (
    ColumnChoice,
    Columns,
    choice,
    kept_columns,
    redirected,
)
from toolfault_dashboard.pages.shared.frame import Context, View
from toolfault_dashboard.pages.shared.lines import (
    NONE,
    FailureLine,
    FrequencyLine,
    ToolLine,
    alert_about,
    code_lines,
    exactly,
    failure_line,
    frequency_lines,
    rate_scale,
    tool_lines,
)
from toolfault_dashboard.pages.shared.numbered import Number, one_page
from toolfault_dashboard.pages.shared.over_time import TOP_CODES, TimeChart, peak_words, time_chart
from toolfault_dashboard.pages.shared.tiles import Tile, overview_tiles
from toolfault_dashboard.queries.chains.round_trips import read_chains
from toolfault_dashboard.queries.failures.phantoms import PhantomRow
from toolfault_dashboard.queries.failures.repeats import RepeatRow
from toolfault_dashboard.queries.figures.breakdown import breakdown
from toolfault_dashboard.queries.figures.trends import Trends, trends_by_tool
from toolfault_dashboard.queries.fixes.fix_next import costliest_fixes
from toolfault_dashboard.queries.fixes.messages import MessageGroup, most_frequent
from toolfault_dashboard.queries.rows import Overview
from toolfault_dashboard.search import Query

__all__ = ["router"]


@dataclass(frozen=True, slots=True)
class ToolsContext(Context):
    """What `tools.html` shows."""

    template: ClassVar[str] = "tools.html"

    view: Doc[View, "The query bar."]
    tools: Doc[tuple[ToolLine, ...], "The tools of this page."]
    total: Doc[int, "All tools of the view."]
    pages: Doc[dict[str, str], "Addresses of the pages before and after; empty at the ends."]
    columns: Doc[ColumnChoice, "Columns of the table."]
    trends: Doc[
        dict[str, tuple[str, str]],
        "Tool -> (path that draws its failures over time, where they were most in words).",
    ]
    buckets: Doc[int, "Moments that each drawing has; 0 where none is shown."]
    per: Doc[str, "Width of a bar of the sparklines: `hour`, `day` or `week`; empty without them."]
    sorts: Doc[dict[str, tuple[str, str]], "Column -> (address that sorts by it, aria-sort)."]
    csv: Doc[str, "This table as CSV."]


@dataclass(frozen=True, slots=True)
class PhantomLine:
    """An argument that a tool ignored in the calls of one model."""

    row: Doc[PhantomRow, "What was counted."]
    model: Doc[str, "The model; words for none."]
    drawn: Doc[Estimate | None, "The interval of the share, drawn."]


@dataclass(frozen=True, slots=True)
class RepeatLine:
    """The repeated executions of a tool by one model."""

    row: Doc[RepeatRow, "What was counted."]
    model: Doc[str, "The model; words for none."]
    drawn: Doc[Estimate | None, "The interval of the share, drawn."]


@dataclass(frozen=True, slots=True)
class ToolContext(Context):
    """What `tool.html` shows."""

    template: ClassVar[str] = "tool.html"

    view: Doc[View, "The query bar."]
    tool: Doc[str, "The tool."]
    tiles: Doc[tuple[Tile, ...], "The headline figures."]
    time: Doc[TimeChart | None, "Failures over time; None when no failure has a time."]
    codes: Doc[tuple[FrequencyLine, ...], "Its codes."]
    fields: Doc[tuple[FrequencyLine, ...], "Its fields."]
    newest: Doc[tuple[FailureLine, ...], "Its newest failures."]
    models: Doc[tuple[BreakdownLine, ...], "The models that call it, most failures first."]
    fixes: Doc[tuple[FixLine, ...], "What to fix in it first; none where the role may not see it."]
    messages: Doc[tuple[MessageLine, ...], "Its most frequent messages, the same."]
    phantoms: Doc[tuple[PhantomLine, ...], "The arguments that it most often ignored, the same."]
    phantoms_in_all: Doc[int, "Arguments that it ignored, by model."]
    repeats: Doc[tuple[RepeatLine, ...], "Its repeated executions by model."]
    repeats_in_all: Doc[int, "Models that executed it again."]
    failures: Doc[int, "Its failures."]
    links: Doc[
        dict[str, str],
        "Addresses: tools, failures, round_trips, models, fixes, messages, alert, csv.",
    ]


router = APIRouter()

_SORTS: Final[dict[str, Callable[[ToolLine], Any]]] = {
    "name": lambda line: line.name.lower(),
    "calls": lambda line: line.calls,
    "failures": lambda line: line.failures,
    # A ranking by rate uses the lower end of the interval: one failure of one call is no scandal.
    "rate": lambda line: line.rate.low or 0.0,
    "first_try": lambda line: line.first_try.high if line.first_try.high is not None else 1.0,
    "spent": lambda line: (line.calls_spent, line.outcomes[2], line.failures),
    "round_trips": lambda line: line.round_trips,
    "abandoned": lambda line: line.outcomes[2],
    "repeats": lambda line: line.identical_repeats,
    "time": lambda line: line.time_lost_ms,
    "tokens": lambda line: line.tokens_lost or 0,
    "recovery": lambda line: (
        line.recovery.high if line.recovery is not None and line.recovery.high is not None else 2.0
    ),
}
_DEFAULT_SORT: Final = "-spent"
PAGE_ROWS: Final = 50
TOP: Final = 5
"""Models, fixes and wordings of a tool that its page shows."""
MOST_PHANTOMS: Final = 10
"""Arguments that it ignored, and models that executed it again; its exports have all."""
_Line = TypeVar("_Line")
_ASCENDING_FIRST: Final = ("name", "first_try", "recovery")


COLUMNS: Final = Columns(
    "cols",
    {
        "calls": "Calls",
        "failures": "Failures",
        "rate": "Failure rate",
        "first_try": "First-try success",
        "spent": "Calls spent",
        "round_trips": "Round trips",
        "abandoned": "Abandoned",
        "recovery": "Recovery rate",
        "trend": "Over time",
        "repeats": "Same again",
        "time": "Time lost",
        "tokens": "Tokens lost",
    },
    (
        "calls", "failures", "rate", "spent", "round_trips", "abandoned", "recovery", "trend",
    ),
)  # fmt: skip


@router.get("/tools", name="tools")
def tools(ask: Asked, page: Number = 1) -> Response:
    """Render one page of the table of tools, sorted as the address says."""
    kept = kept_columns(ask, COLUMNS)
    sort = ask.request.query_params.get("sort", "")
    if (answer := redirected(ask, "/tools", {"": COLUMNS}, sort=sort)) is not None:
        return answer
    chosen = sort
    kept_sort = {"sort": sort} if sort else {}
    chosen = chosen if chosen.removeprefix("-") in _SORTS else _DEFAULT_SORT
    counted = queries.summary(ask.conn, ask.scope)
    rates = queries.rates_by_tool(ask.conn, ask.scope)
    groups = queries.chains_by(ask.conn, ask.scope, "tool")
    lines = tool_lines(ask, counted.tools, groups, rates)
    column = chosen.removeprefix("-")
    by_name = sorted(lines, key=_SORTS["name"])
    shown = choice(ask, COLUMNS, **kept_sort)
    trends = trends_by_tool(ask.conn, ask.scope) if "trend" in shown.shown else None
    ranked = sorted(by_name, key=_SORTS[column], reverse=chosen.startswith("-"))
    shown_tools, pages = one_page(ask, page, ranked, PAGE_ROWS)
    context = ToolsContext(
        view=ask.view("/tools", **kept_sort, **kept),
        tools=shown_tools,
        total=len(ranked),
        pages=pages,
        sorts={name: _sort(ask, name, chosen, **kept) for name in _SORTS},
        columns=shown,
        trends=_drawn(trends, ask.now) if trends else {},
        buckets=len(trends.starts) if trends else 0,
        per=trends.bucket if trends else "",
        csv=ask.export("/tools.csv"),
    )
    return ask.render(context, title="Tools")


def _drawn(trends: Trends, now: int) -> dict[str, tuple[str, str]]:
    """Return the drawing of each tool's failures over time, and where they were most in words."""
    return {
        tool: (sparkline(counts), peak_words(trends.bucket, trends.starts, counts, now))
        for tool, counts in trends.counts.items()
    }


def _sort(ask: Ask, column: str, chosen: str, **kept: str) -> tuple[str, str]:
    """Return the address that sorts by *column* (or turns it round) and its aria-sort."""
    if chosen == column:
        return ask.link("/tools", sort=f"-{column}", **kept), "ascending"
    if chosen == f"-{column}":
        return ask.link("/tools", sort=column, **kept), "descending"
    first = column if column in _ASCENDING_FIRST else f"-{column}"
    return ask.link("/tools", sort=first, **kept), ""


@router.get("/tool", name="tool")
def tool(ask: Asked, name: str = "") -> Response:
    """Render one tool: its trend, codes and fields.

    The name is a parameter and no part of the path: a tool may be called ``..`` or ``a/b``.
    """
    tool, query = name, exactly(ask.query, "tool", name)
    narrowed = replace(ask, text=str(query), fixed=query)
    scope = narrowed.scope
    read_chains(ask.conn, scope, "tool", "model")
    found = queries.overview(ask.conn, scope)
    if not found.summary.calls and not found.summary.failures and not _known(ask, tool):
        raise HTTPException(404, "There is no tool of this name in this project.")
    over_time = queries.failures_over_time(ask.conn, scope, top=TOP_CODES)
    total = None if found.sampled else found.summary.failures
    newest = queries.failure_list(ask.conn, scope, limit=8, total=total)
    fixes = costliest_fixes(ask.conn, scope, limit=TOP) if _may_fix(ask) else ()
    wordings = most_frequent(ask.conn, scope, most=TOP)[0] if _may_fix(ask) else ()
    by_model = breakdown(ask.conn, scope, "model")
    phantoms = queries.phantom_arguments(ask.conn, scope) if _may_fix(ask) else ()
    repeats = queries.repeated_executions(ask.conn, scope)
    context = ToolContext(
        view=replace(ask.view("/tool", name=tool), copies=narrowed.copies()),
        tool=tool,
        tiles=overview_tiles(narrowed, found),
        time=time_chart(narrowed, over_time, queries.changes(ask.conn, scope)),
        codes=code_lines(narrowed, found.summary, queries.rates_by_code(ask.conn, scope)),
        fields=_fields(narrowed, found),
        newest=tuple(failure_line(narrowed, row) for row in newest.rows),
        failures=found.summary.failures,
        models=lines_of(narrowed, by_model.groups[:TOP], "model"),
        fixes=fix_lines(narrowed, fixes),
        messages=_wordings(narrowed, wordings),
        phantoms=_by_model(PhantomLine, phantoms[:MOST_PHANTOMS]),
        phantoms_in_all=len(phantoms),
        repeats=_by_model(RepeatLine, repeats[:MOST_PHANTOMS]),
        repeats_in_all=len(repeats),
        links={
            "models": narrowed.link("/breakdown"),
            "fixes": narrowed.link("/fix-next") if _may_fix(ask) else "",
            "messages": narrowed.link("/messages") if _may_fix(ask) else "",
            "tools": ask.link("/tools"),
            "alert": alert_about(ask, query),
            "failures": narrowed.link("/failures"),
            "round_trips": narrowed.link("/round-trips"),
            "csv": narrowed.export("/failures.csv"),
            "codes_csv": narrowed.export("/codes.csv"),
            "fields_csv": narrowed.export("/fields.csv"),
            "phantoms_csv": narrowed.export("/phantom-arguments.csv"),
            "repeats_csv": narrowed.export("/repeated-executions.csv"),
        },
    )
    return ask.render(context, title=tool)


def _wordings(ask: Ask, groups: Iterable[MessageGroup]) -> tuple[MessageLine, ...]:
    """Return the most frequent messages of the tool, whatever their code."""
    rows = [(group, row) for group in groups for row in group.rows]
    rows.sort(key=lambda each: (-each[1].failures, each[1].message or ""))
    return tuple(message_line(ask, group, row) for group, row in rows[:TOP])


def _by_model(line: Callable[..., _Line], rows: Sequence[Any]) -> tuple[_Line, ...]:
    """Return counts by model as lines with the intervals of their shares drawn."""
    scale = rate_scale(row.rate for row in rows)
    return tuple(
        line(
            row=row,
            model=row.model or NONE,
            drawn=estimate(row.rate.value, row.rate.low, row.rate.high, scale=scale),
        )
        for row in rows
    )


def _may_fix(ask: Ask) -> bool:
    """Say whether the reader may see what the model saw, of which fixes and wordings are made."""
    return allows(ask.viewer.role, "developer")


def _fields(ask: Ask, found: Overview) -> tuple[FrequencyLine, ...]:
    """Return the arguments the tool fails on; a failure on two of them is in two lines."""
    if found.sampled:  # a facet counts rows
        return frequency_lines(ask, queries.frequency(ask.conn, ask.scope, "field", limit=15))
    values = queries.values_of(ask.conn, ask.scope, "field", limit=15)
    failures, calls = found.summary.failures, found.summary.calls
    rates = {each.value: rate(each.failures, calls) for each in values}
    scale = rate_scale(rates.values())
    return tuple(
        FrequencyLine(
            name=each.value or "(no argument)",
            tool="",
            failures=each.failures,
            share=each.failures / failures if failures else 0.0,
            rate=(of := rates[each.value]),
            estimate=estimate(of.value, of.low, of.high, scale=scale),
            first_at=None,
            last_at=None,
            href=ask.link("/failures", exactly(ask.query, "field", each.value)),
            meaning="",
        )
        for each in values
    )


def _known(ask: Ask, tool: str) -> bool:
    """Say whether the project has ever seen the tool, whatever the window shows."""
    return bool(queries.summary(ask.conn, ask.scope_of(exactly(Query(), "tool", tool))).calls)
