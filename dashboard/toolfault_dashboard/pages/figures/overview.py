"""Overview: how much fails, what it costs, and where to look first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated as Doc
from typing import ClassVar, Final

from fastapi import APIRouter
from starlette.responses import Response

from toolfault_dashboard import queries
from toolfault_dashboard.access.policy import allows
from toolfault_dashboard.formats import timestamp
from toolfault_dashboard.pages.failures.kinds_table import new_kinds
from toolfault_dashboard.pages.ingest.start import is_empty, start_page
from toolfault_dashboard.pages.shared.ask import DAY, Ask, Asked
from toolfault_dashboard.pages.shared.frame import Context, View
from toolfault_dashboard.pages.shared.lines import (
    FAILURES,
    code_lines,
    cost_rank,
    failure_line,
    rate_scale,
    tool_line,
    tool_rows,
)
from toolfault_dashboard.pages.shared.over_time import TOP_CODES, TimeChart, time_chart
from toolfault_dashboard.pages.shared.table import Column, Drawn, Table
from toolfault_dashboard.pages.shared.tiles import Tile, overview_tiles
from toolfault_dashboard.queries.periods import last_call
from toolfault_dashboard.queries.projects import has_ingest_key
from toolfault_dashboard.queries.rows import FailureRow
from toolfault_dashboard.search import parse

__all__ = ["router"]


@dataclass(frozen=True, slots=True)
class OverviewContext(Context):
    """What `overview.html` shows."""

    template: ClassVar[str] = "overview.html"

    view: Doc[View, "The query bar."]
    tiles: Doc[tuple[Tile, ...], "The headline figures."]
    time: Doc[TimeChart | None, "Failures over time; None when no failure has a time."]
    tools: Doc[Drawn, "Tools with most calls spent and failures."]
    tools_total: Doc[int, "Tools in all."]
    codes: Doc[Drawn, "The most frequent codes."]
    newest: Doc[Drawn, "The newest failures."]
    failures: Doc[int, "Failures of the view."]
    calls: Doc[int, "Calls of the view."]
    conversations: Doc[int, "Conversations of the view."]
    links: Doc[dict[str, str], "Addresses: failures, new, tools, fix_next, csv, send ..."]


router = APIRouter()
_SHOWN = 8  # rows of each small table
COSTLIEST: Final = Table(
    Column("name", "Tool", "code_link"),
    Column("spent", "Calls spent", "count", "row.calls_spent"),
    Column("round_trips", "Round trips", "count", "row.round_trips", quiet=True),
    Column("abandoned", "Abandoned", "count_link", "row.abandoned", quiet=True,
           href="abandoned_href", said="abandoned"),
    Column("failures", "Failures", "count_link", "row.failures", href="failures_href"),
    Column("rate", "Failure rate", "rate", "row.failure_rate"),
)  # fmt: skip
COMMONEST: Final = Table(
    Column("name", "Code", "behind"),
    Column("failures", "Failures", "count"),
    Column("share", "Share", "share", width=90),
)  # fmt: skip


@router.get("/", name="overview")
def overview(ask: Asked) -> Response:
    """Render the overview, or the first-run page while the project has no call at all."""
    found = queries.overview(ask.conn, ask.scope)
    if not found.summary.calls and is_empty(ask):
        return start_page(ask)
    over_time = queries.failures_over_time(ask.conn, ask.scope, top=TOP_CODES)
    groups = queries.chains_by(ask.conn, ask.scope, "tool")
    newest = queries.failure_list(
        ask.conn, ask.scope, limit=_SHOWN, total=None if found.sampled else found.summary.failures
    )
    rates = queries.rates_by_tool(ask.conn, ask.scope)
    rows = tool_rows(found.summary.tools, groups, rates)
    costly = [row for row in sorted(rows, key=cost_rank) if row.failures][:_SHOWN]
    scale = rate_scale(row.failure_rate for row in rows)
    context = OverviewContext(
        view=ask.view("/"),
        tiles=overview_tiles(ask, found),
        time=time_chart(ask, over_time, queries.changes(ask.conn, ask.scope)),
        tools=COSTLIEST.drawn(tool_line(ask, row, scale) for row in costly),
        tools_total=len(rows),
        codes=COMMONEST.drawn(
            code_lines(ask, found.summary, queries.rates_by_code(ask.conn, ask.scope))[:_SHOWN]
        ),
        newest=FAILURES.drawn(failure_line(ask, row) for row in newest.rows),
        failures=found.summary.failures,
        calls=found.summary.calls,
        conversations=found.summary.conversations,
        links={
            "failures": ask.link("/failures"),
            "new": new_kinds(ask, group="kind").href,
            "round_trips": ask.link("/round-trips"),
            "codes": ask.link("/codes"),
            "tools": ask.link("/tools"),
            "fix_next": ask.link("/fix-next") if allows(ask.viewer.role, "developer") else "",
            "csv": ask.export("/overview.csv"),
            "tools_csv": ask.export("/tools.csv"),
            "codes_csv": ask.export("/codes.csv"),
            "failures_csv": ask.export("/failures.csv"),
            "report": ask.link("/report.html", window="", until=_week_until(ask, newest.rows))
            if allows(ask.viewer.role, "developer")
            else "",
            "send": ask.link("/start", "", window="") if _nothing_sends(ask) else "",
        },
    )
    return ask.render(context, title="Overview")


def _nothing_sends(ask: Ask) -> bool:
    """Say whether the data was imported, and the reader may make the key that agents send with."""
    if ask.project is None or not allows(ask.viewer.role, "admin"):
        return False
    return not has_ingest_key(ask.conn, ask.project.id)


def _week_until(ask: Ask, rows: Sequence[FailureRow]) -> str:
    """Return where the week to report ends: with the day of an old newest failure; "" for now.

    It is the newest of the view, of which *rows* are the newest, or else of the project. A week in
    which calls went on and none of them failed is worth a report, too.
    """
    newest = ask.project.last_failure_at if ask.project else None
    if rows and rows[0].occurred_at is not None:
        newest = rows[0].occurred_at
    if newest is None or newest >= ask.now - 7 * DAY:
        return ""
    called = last_call(ask.conn, ask.scope_of(parse("")))
    if called is not None and called >= ask.now - 7 * DAY:
        return ""
    return timestamp(newest + DAY)[:10]
