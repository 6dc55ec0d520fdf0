"""Tools: every tool with its rates, and the page of one tool."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated as Doc
from typing import ClassVar, Final

from fastapi import APIRouter, HTTPException
from starlette.responses import Response

from toolfault_dashboard import queries
from toolfault_dashboard.access.policy import allows
from toolfault_dashboard.analysis.rates import rate
from toolfault_dashboard.charts import Estimate, Spark, estimate
from toolfault_dashboard.pages.figures.breakdown import RATES, lines_of
from toolfault_dashboard.pages.fixes.fix_next import fix_lines
from toolfault_dashboard.pages.fixes.messages import MessageLine, message_line
from toolfault_dashboard.pages.shared.ask import Ask, Asked
from toolfault_dashboard.pages.shared.columns import (
    ColumnChoice,
    choice,
    kept_columns,
    redirected,
)
from toolfault_dashboard.pages.shared.frame import Context, View
from toolfault_dashboard.pages.shared.lines import (
    FAILURES,
    NONE,
    FrequencyLine,
    alert_about,
    code_lines,
    exactly,
    failure_line,
    frequency_lines,
    rate_scale,
    tool_line,
    tool_rows,
)
from toolfault_dashboard.pages.shared.numbered import Number, one_page
from toolfault_dashboard.pages.shared.over_time import TOP_CODES, TimeChart, spark, time_chart
from toolfault_dashboard.pages.shared.table import Column, Drawn, Table
from toolfault_dashboard.pages.shared.tiles import Tile, overview_tiles
from toolfault_dashboard.queries.chains.round_trips import read_chains
from toolfault_dashboard.queries.failures.phantoms import PhantomRow
from toolfault_dashboard.queries.failures.repeats import RepeatRow
from toolfault_dashboard.queries.figures.breakdown import breakdown
from toolfault_dashboard.queries.figures.trends import Trends, trends_by_tool
from toolfault_dashboard.queries.fixes.fix_next import costliest_fixes
from toolfault_dashboard.queries.fixes.messages import MessageGroup, most_frequent
from toolfault_dashboard.queries.rows import Overview, ToolRow
from toolfault_dashboard.search import Query

__all__ = ["PHANTOMS", "REPEATS", "TOOLS", "router"]


@dataclass(frozen=True, slots=True)
class ToolsContext(Context):
    """What `tools.html` shows."""

    template: ClassVar[str] = "tools.html"

    view: Doc[View, "The query bar."]
    tools: Doc[Drawn, "The tools of this page."]
    total: Doc[int, "All tools of the view."]
    pages: Doc[dict[str, str], "Addresses of the pages before and after; empty at the ends."]
    columns: Doc[ColumnChoice, "Columns of the table."]
    csv: Doc[str, "This table as CSV."]


@dataclass(frozen=True, slots=True)
class ModelLine:
    """What one model did with the tool: an argument that was ignored, or executions again."""

    row: Doc[PhantomRow | RepeatRow, "What was counted."]
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
    codes: Doc[Drawn, "Its codes."]
    fields: Doc[Drawn, "Its fields."]
    newest: Doc[Drawn, "Its newest failures."]
    models: Doc[Drawn, "The models that call it, most failures first."]
    fixes: Doc[Drawn, "What to fix in it first; none where the role may not see it."]
    messages: Doc[Drawn, "Its most frequent messages, the same."]
    phantoms: Doc[Drawn, "The arguments that it most often ignored, the same."]
    phantoms_in_all: Doc[int, "Arguments that it ignored, by model."]
    repeats: Doc[Drawn, "Its repeated executions by model."]
    repeats_in_all: Doc[int, "Models that executed it again."]
    failures: Doc[int, "Its failures."]
    links: Doc[
        dict[str, str],
        "Addresses: tools, failures, round_trips, models, fixes, messages, alert, csv.",
    ]


router = APIRouter()

_DEFAULT_SORT: Final = "-spent"
PAGE_ROWS: Final = 50
TOP: Final = 5
"""Models, fixes and wordings of a tool that its page shows."""
MOST_PHANTOMS: Final = 10
"""Arguments that it ignored, and models that executed it again; its exports have all."""


def _all_tools(ask: Ask) -> list[ToolRow]:
    return tool_rows(
        queries.summary(ask.conn, ask.scope).tools,
        queries.chains_by(ask.conn, ask.scope, "tool"),
        queries.rates_by_tool(ask.conn, ask.scope),
    )


TOOLS: Final = Table(
    Column("name", "Tool", "code_link", sort=lambda row: row.tool.lower(), rising=True),
    Column("calls", "Calls", "count", "row.calls", usual=True, sort=True),
    Column("failures", "Failures", "count_link", "row.failures", usual=True, sort=True,
           href="failures_href"),
    # A ranking by rate uses the lower end of the interval: one failure of one call is no
    # scandal.
    Column("rate", "Failure rate", "rate", "row.failure_rate", usual=True, width=130,
           sort=lambda row: row.failure_rate.low or 0.0),
    Column("first_try", "First-try success", "tries", "row.first_try_success", usual=False,
           sort=lambda row: _or(row.first_try_success.high, 1.0), rising=True),
    Column("spent", "Calls spent", "count", "row.calls_spent", usual=True, quiet=True,
           sort=lambda row: (row.calls_spent, row.abandoned, row.failures)),
    Column("round_trips", "Round trips", "count", "row.round_trips", usual=True, sort=True,
           quiet=True),
    Column("abandoned", "Abandoned", "count_link", "row.abandoned", usual=True, sort=True,
           quiet=True, href="abandoned_href", said="abandoned"),
    Column("recovery", "Recovery rate", "recovery", "row.recovery_rate", usual=True,
           sort=lambda row: _or(row.recovery_rate.high, 2.0), rising=True),
    Column("trend", "Over time", "spark", usual=True, unit=", UTC", width=88),
    Column("repeats", "Same again", "count", "row.identical_repeats", usual=False, sort=True,
           quiet=True),
    Column("time", "Time lost", "duration", "row.time_lost_ms", usual=False, sort=True),
    Column("tokens", "Tokens lost", "known_count", "row.tokens_lost", usual=False,
           sort=lambda row: row.tokens_lost or 0),
    file="tools", row=ToolRow, rows=_all_tools,
)  # fmt: skip


CODES: Final = Table(
    Column("name", "Code", "behind_with_meaning"),
    Column("failures", "Failures", "count"),
    Column("share", "Share", "share"),
)  # fmt: skip
FIELDS: Final = Table(
    Column("name", "Field", "behind"),
    Column("failures", "Failures", "count"),
    Column("rate", "Rate", "rate", drawn="estimate"),
)  # fmt: skip
FIXES: Final = Table(
    Column("what", "What", "fix", "row.title", style="cell-text"),
    Column("spent", "Calls spent", "in_all"),
    Column("saved", "Calls saved", "in_all", nothing="–"),
    Column("abandoned", "Abandoned", "count", "row.abandoned"),
    Column("failures", "Failures covered", "count", "row.failures"),
)  # fmt: skip
WORDINGS: Final = Table(
    Column("message", "Message", "wording", "row.message", style="cell-text"),
    Column("failures", "Failures", "count", "row.failures"),
    Column("recovery", "Fixed by the next call", "rate", "row.recovery", n="text",
           nothing="not enough data"),
)  # fmt: skip
PHANTOMS: Final = Table(
    Column("argument", "Argument", "code", "row.argument"),
    Column("model", "Model", "name"),
    Column("calls", "Calls with it", "count", "row.calls"),
    Column("share", "Share of the model's calls", "rate", "row.rate", n="text"),
    file="phantom-arguments", named="phantom_arguments",
)  # fmt: skip
REPEATS: Final = Table(
    Column("model", "Model", "name"),
    Column("idempotent", "The tool is", "idempotence", "row.idempotent"),
    Column("calls", "Calls executed again", "count", "row.calls"),
    Column("share", "Share of the model's calls", "rate", "row.rate", n="text"),
    file="repeated-executions", named="repeated_executions",
)  # fmt: skip


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


@router.get("/tools", name="tools")
def tools(ask: Asked, page: Number = 1) -> Response:
    """Render one page of the table of tools, sorted as the address says."""
    kept = kept_columns(ask, TOOLS)
    sort = ask.request.query_params.get("sort", "")
    if (answer := redirected(ask, "/tools", {"": TOOLS}, sort=sort)) is not None:
        return answer
    kept_sort = {"sort": sort} if sort else {}
    chosen = sort if sort.removeprefix("-") in TOOLS.sortable else _DEFAULT_SORT
    column = TOOLS.sortable[chosen.removeprefix("-")]
    by_name = sorted(_all_tools(ask), key=TOOLS.sortable["name"].rank)
    ranked = sorted(by_name, key=column.rank, reverse=chosen.startswith("-"))
    columns = choice(ask, TOOLS, **kept_sort)
    trends = trends_by_tool(ask.conn, ask.scope) if "trend" in columns.shown else None
    rows, pages = one_page(ask, page, ranked, PAGE_ROWS)
    scale = rate_scale(row.failure_rate for row in ranked)
    context = ToolsContext(
        view=ask.view("/tools", **kept_sort, **kept),
        tools=TOOLS.drawn(
            (tool_line(ask, row, scale, _trend(ask, trends, row.tool)) for row in rows),
            columns.shown,
            titles={"trend": f"By {trends.bucket}"} if trends else {},
            sorts={
                each.name: _sort(ask, each, chosen, **kept) for each in TOOLS.columns if each.sort
            },
        ),
        total=len(ranked),
        pages=pages,
        columns=columns,
        csv=ask.export("/tools.csv"),
    )
    return ask.render(context, title="Tools")


def _trend(ask: Ask, trends: Trends | None, tool: str) -> Spark | None:
    if trends is None or tool not in trends.counts:
        return None
    return spark(trends.bucket, trends.starts, trends.counts[tool], ask.now)


def _sort(ask: Ask, column: Column, chosen: str, **kept: str) -> tuple[str, str]:
    """Return the address that sorts by *column* (or turns it round) and its aria-sort."""
    rising, falling = column.name, f"-{column.name}"
    turned = {rising: (falling, "ascending"), falling: (rising, "descending")}
    sort, aria = turned.get(chosen, (rising if column.rising else falling, ""))
    return ask.link("/tools", sort=sort, **kept), aria


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
        codes=CODES.drawn(
            code_lines(narrowed, found.summary, queries.rates_by_code(ask.conn, scope))
        ),
        fields=FIELDS.drawn(_fields(narrowed, found)),
        newest=FAILURES.drawn(failure_line(narrowed, row) for row in newest.rows),
        failures=found.summary.failures,
        models=RATES.drawn(
            lines_of(narrowed, by_model.groups[:TOP], "model"), titles={"name": "Model"}
        ),
        fixes=FIXES.drawn(fix_lines(narrowed, fixes)),
        messages=WORDINGS.drawn(_wordings(narrowed, wordings)),
        phantoms=PHANTOMS.drawn(_by_model(phantoms[:MOST_PHANTOMS])),
        phantoms_in_all=len(phantoms),
        repeats=REPEATS.drawn(_by_model(repeats[:MOST_PHANTOMS])),
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


def _by_model(rows: Sequence[PhantomRow] | Sequence[RepeatRow]) -> tuple[ModelLine, ...]:
    """Return counts by model as lines with the intervals of their shares drawn."""
    scale = rate_scale(row.rate for row in rows)
    return tuple(
        ModelLine(
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
