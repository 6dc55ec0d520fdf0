"""Round trips: how many extra calls failures cost, and whether models recover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated as Doc
from typing import ClassVar, Final

from fastapi import APIRouter
from starlette.responses import Response

from toolfault_dashboard import queries
from toolfault_dashboard.analysis.rates import rate
from toolfault_dashboard.charts import BarChart, bar_chart
from toolfault_dashboard.formats import count, decimal, duration, percent, plural
from toolfault_dashboard.pages.shared.ask import Ask, Asked
from toolfault_dashboard.pages.shared.columns import (
    ColumnChoice,
    Columns,
    choice,
    chosen,
    kept_columns,
    redirected,
)
from toolfault_dashboard.pages.shared.frame import Context, Link, View
from toolfault_dashboard.pages.shared.lines import (
    ChainLine,
    ToolLine,
    argument_of,
    chain_line,
    exactly,
    tool_lines,
)
from toolfault_dashboard.pages.shared.tiles import (
    Tile,
    before,
    count_tile,
    rate_tile,
    recovery_tile,
    tile,
)
from toolfault_dashboard.queries.chains.naming import ConversationRungs
from toolfault_dashboard.queries.rows import (
    OUTCOMES,
    ChainGroup,
    ChainRow,
    Funnel,
    RoundTripBin,
    RoundTrips,
    ToolCount,
)
from toolfault_dashboard.search import Query, parse

__all__ = ["chosen_group", "router"]


@dataclass(frozen=True, slots=True)
class FunnelStep:
    """One bar of the recovery funnel."""

    label: Doc[str, "What the chains of this step have done."]
    chains: Doc[int, "How many chains."]
    share: Doc[float, "Share of all chains, 0 to 1."]
    tone: Doc[str, "Series that colours it."]
    href: Doc[str, "The chains behind it; empty if no query selects them."]


@dataclass(frozen=True, slots=True)
class RoundTripsContext(Context):
    """What `round_trips.html` shows."""

    template: ClassVar[str] = "round_trips.html"

    view: Doc[View, "The query bar."]
    tiles: Doc[tuple[Tile, ...], "The headline figures."]
    rungs: Doc[ConversationRungs, "What named the conversations, and what cannot be chained."]
    funnel: Doc[Funnel, "Chains by how they ended."]
    steps: Doc[tuple[FunnelStep, ...], "The funnel, drawn."]
    chart: Doc[BarChart | None, "Chains by number of round trips; None without chains."]
    bins: Doc[tuple[RoundTripBin, ...], "The table behind the drawing."]
    by: Doc[str, "What the groups are: `tool`, `argument`, `code` or `model`."]
    groups: Doc[tuple[ToolLine, ...], "Chains by group, most calls spent first."]
    groups_in_all: Doc[int, "How many groups there are."]
    costliest: Doc[str, "Which argument costs most, if some rows name none; else empty."]
    tabs: Doc[tuple[Link, ...], "What chains can be grouped by."]
    group_columns: Doc[ColumnChoice, "Columns of the groups."]
    chain_columns: Doc[ColumnChoice, "Columns of the chains."]
    chains: Doc[tuple[ChainLine, ...], "The chains, newest first."]
    total: Doc[int, "Chains in the list, each as one, also if it was sampled."]
    pages: Doc[dict[str, str], "Addresses of the newer and older page; empty at the ends."]
    links: Doc[
        dict[str, str], "Addresses: csv (by group), chains_csv, lengths_csv, rungs_csv, unchained."
    ]


router = APIRouter()

PAGE_ROWS: Final = 25
GROUP_ROWS: Final = 30
GROUPS: Final = {"tool": "Tool", "argument": "Argument", "code": "Code", "model": "Model"}
# Each chain costs once, so it stands under the own code of its first failure alone.
_KEYS: Final = {"code": "own_code"}
# The tables of chains show no rate of calls.
_NO_RATES: Final = queries.ToolRates(rate(0, 0), rate(0, 0))
# Colour and pattern of each outcome, the same in every drawing.
SERIES: Final = {"recovered": 3, "switched": 6, "abandoned": 2, "open": 7}
GROUP_COLUMNS: Final = Columns(
    "cols",
    {
        "spent": "Calls spent",
        "round_trips": "Round trips",
        "recovered": "Recovered",
        "switched": "Switched",
        "abandoned": "Abandoned",
        "open": "Open",
        "recovery": "Recovery rate",
        "first_retry": "First retry",
        "repeats": "Same again",
        "time": "Time lost",
        "tokens": "Tokens lost",
        "money": "Money lost",
    },
    (
        "spent", "round_trips", "recovered", "switched", "abandoned", "open", "recovery",
        "first_retry", "time",
    ),
)  # fmt: skip
# Columns of the chains that are plain texts; the others are drawn.
_MORE: Final = {
    "conversation": "Conversation",
    "model": "Model",
    "agent": "Agent",
    "release": "Release",
    "environment": "Environment",
    "variant": "Variant",
    "time_lost": "Time lost",
    "tokens_lost": "Tokens lost",
}
CHAIN_COLUMNS: Final = Columns(
    "chain-cols",
    {
        "field": "First field",
        "failures": "Failures",
        "spent": "Calls spent",
        "round_trips": "Round trips",
        "remarkable": "Remarkable",
        **_MORE,
    },
    ("field", "failures", "spent", "round_trips", "remarkable"),
)
_LAST_BIN: Final = 12  # longer chains are shown together


@router.get("/round-trips", name="round_trips")
def round_trips(ask: Asked) -> Response:
    """Render the page."""
    by = chosen_group(ask)
    own = {"by": by} if by != "tool" else {}
    kept = {**own, **kept_columns(ask, GROUP_COLUMNS, CHAIN_COLUMNS)}
    places = {"by": GROUP_COLUMNS, "chains": CHAIN_COLUMNS}
    if (answer := redirected(ask, "/round-trips", places, **kept)) is not None:
        return answer
    found = queries.round_trips(ask.conn, ask.scope)
    cursor = ask.request.query_params.get("cursor") or None
    chains = queries.chain_list(ask.conn, ask.scope, cursor=cursor, limit=PAGE_ROWS)
    bins = _capped(found.distribution)
    more = [name for name in chosen(ask, CHAIN_COLUMNS) if name in _MORE]
    groups, groups_in_all, costliest = _groups(ask, found, by)
    context = RoundTripsContext(
        view=ask.view("/round-trips", **kept),
        tiles=_tiles(ask, found),
        rungs=queries.conversation_rungs(ask.conn, ask.scope),
        funnel=found.funnel,
        steps=_steps(ask, found),
        chart=_chart(bins) if found.funnel.chains else None,
        bins=bins,
        by=by,
        groups=groups,
        groups_in_all=groups_in_all,
        costliest=costliest,
        tabs=tuple(
            Link(
                label,
                ask.link("/round-trips", **(kept | {"by": "" if name == "tool" else name})) + "#by",
                name == by,
            )
            for name, label in GROUPS.items()
        ),
        group_columns=choice(ask, GROUP_COLUMNS, **kept),
        chain_columns=choice(ask, CHAIN_COLUMNS, **kept),
        chains=tuple(
            chain_line(ask, row, tuple(_cell(row, name) for name in more)) for row in chains.rows
        ),
        total=chains.total,
        pages={
            "newer": ask.link("/round-trips", cursor=chains.previous_cursor, **kept) + "#chains"
            if chains.previous_cursor
            else "",
            "older": ask.link("/round-trips", cursor=chains.next_cursor, **kept) + "#chains"
            if chains.next_cursor
            else "",
        },
        links={
            "csv": ask.export("/round-trips.csv", by=by),
            "chains_csv": ask.export("/chains.csv"),
            "ends_csv": ask.export("/chain-ends.csv"),
            "rungs_csv": ask.export("/conversation-rungs.csv"),
            "unchained": ask.link(
                "/failures", ask.query.without("chain").and_(parse("chain:none"))
            ),
            "lengths_csv": ask.export("/chain-lengths.csv"),
        },
    )
    return ask.render(context, title="Round trips")


def chosen_group(ask: Ask) -> str:
    """Return what the address groups chains by, a key of ``GROUPS``."""
    wanted = ask.request.query_params.get("by", "tool")
    return wanted if wanted in GROUPS else "tool"


def _groups(ask: Ask, found: RoundTrips, by: str) -> tuple[tuple[ToolLine, ...], int, str]:
    """Return the chains by tool, argument, code or model, and how many groups there are.

    Those with the most calls spent come first, `GROUP_ROWS` at most. Then what to say above them.
    """
    if by == "argument":
        pairs = queries.chains_by_argument(ask.conn, ask.scope)
        lines = [
            replace(
                _line(
                    ask, group, exactly(exactly(ask.query, "tool", tool), "field", group.name), {}
                ),
                name=argument_of(tool, group.name),
            )
            for tool, group in pairs[:GROUP_ROWS]
        ]
        return tuple(lines), len(pairs), _costliest_argument(pairs)
    named = {"tool": found.by_tool, "code": found.by_code, "model": found.by_model}[by]
    money = _money(ask, by)
    lines = [
        _line(ask, group, exactly(ask.query, _KEYS.get(by, by), group.name), money)
        for group in named[:GROUP_ROWS]
    ]
    return tuple(lines), len(named), ""


def _costliest_argument(pairs: Sequence[tuple[str, ChainGroup]]) -> str:
    """Say which argument costs most, where chains without one may stand before it."""
    unnamed = [group.calls_spent for _, group in pairs if not group.name]
    if len(unnamed) == len(pairs):
        return (
            "No chain begins with a failure that names an argument, so each row is a whole tool. "
            "Group by code to see how they begin."
        )
    if not unnamed:
        return ""
    tool, costliest = next((tool, group) for tool, group in pairs if group.name)
    spent = sum(group.calls_spent for _, group in pairs)
    return (
        f"The costliest argument is {argument_of(tool, costliest.name)}: "
        f"{count(costliest.calls_spent)} of {plural(spent, 'call')} spent. Chains that begin with "
        f"a failure that names no argument spent {count(sum(unnamed))}."
    )


def _line(ask: Ask, group: ChainGroup, query: Query, money: Mapping[str, float | None]) -> ToolLine:
    counts = {group.name: ToolCount(calls=group.failures, failures=group.failures)}
    (line,) = tool_lines(ask, counts, [group], {group.name: _NO_RATES})
    recovered, switched, abandoned, still_open = (
        ask.link("/round-trips", exactly(query, "chain", outcome)) + "#chains" if number else ""
        for outcome, number in zip(OUTCOMES, line.outcomes, strict=True)
    )
    return replace(
        line,
        name=group.name or "none",
        href=ask.link("/round-trips", query),
        chains_by_outcome=(recovered, switched, abandoned, still_open),
        money_lost=money.get(group.name),
    )


def _money(ask: Ask, by: str) -> dict[str, float | None]:
    """Return what the tokens of each group cost, where the reader asks for that column."""
    if by not in queries.COST_GROUPS or "money" not in chosen(ask, GROUP_COLUMNS):
        return {}
    prices = queries.prices_of(ask.conn, ask.scope.project_id)
    found = queries.costs(ask.conn, ask.scope, by, prices)
    return {row.name: row.money_lost for row in found.rows}


def _cell(row: ChainRow, name: str) -> str:
    if name == "time_lost":
        return duration(row.time_lost_ms) if row.time_lost_ms else ""
    if name == "tokens_lost":
        return "" if row.tokens_lost is None else count(row.tokens_lost)
    return str(getattr(row, name) or "")


def _tiles(ask: Ask, found: RoundTrips) -> tuple[Tile, ...]:
    """Return the headline figures, those that can be compared beside the period before."""
    spent, recovered, first_retry, *others = _tiles_of(found)
    earlier = before(ask)
    if earlier is None:
        return (spent, recovered, first_retry, *others)
    then = queries.round_trips(ask.conn, earlier.scope)
    return (
        earlier.beside_count(spent, then.calls_spent),
        earlier.beside_rate(recovered, found.recovery_rate, then.recovery_rate),
        earlier.beside_rate(first_retry, found.first_retry_rate, then.first_retry_rate),
        *(earlier.beside(other, value) for other, value in zip(others, _costs(then), strict=True)),
    )


def _costs(found: RoundTrips) -> tuple[str, str, str]:
    """Return the time lost, the repeats and the serial discoveries of all tools."""
    lost = sum(group.time_lost_ms for group in found.by_tool)
    repeats = sum(group.identical_repeats for group in found.by_tool)
    serial = sum(group.serial_discovery for group in found.by_tool)
    return duration(lost) if lost else "–", count(repeats), count(serial)


def _tiles_of(found: RoundTrips) -> tuple[Tile, ...]:
    funnel = found.funnel
    lost, repeats, serial = _costs(found)
    trips = found.round_trips / funnel.chains if funnel.chains else None
    return (
        count_tile(
            "Calls spent",
            found.calls_spent,
            sub=f"{plural(found.round_trips, 'round trip')}, {decimal(trips)} per chain;"
            f" {count(funnel.abandoned)} abandoned"
            if trips is not None
            else "no chain",
        ),
        recovery_tile(found.recovery_rate, funnel.open),
        rate_tile(
            "First-retry fixes",
            found.first_retry_rate,
            of="retried chain",
        ),
        tile(
            "Time lost",
            lost,
            sub="no times recorded" if lost == "–" else "failing calls and waits between retries",
        ),
        tile("Same again", repeats, sub="retries with the same arguments"),
        tile("Serial discovery", serial, sub="chains that met issues one by one"),
    )


def _steps(ask: Ask, found: RoundTrips) -> tuple[FunnelStep, ...]:
    funnel = found.funnel

    def step(label: str, chains: int, tone: str, outcome: str = "") -> FunnelStep:
        query = ask.query.without("chain").and_(parse(f"chain:{outcome}")) if outcome else None
        return FunnelStep(
            label=label,
            chains=chains,
            share=chains / funnel.chains if funnel.chains else 0.0,
            tone=tone,
            href=ask.link("/round-trips", query) if query else "",
        )

    return (
        step("Chains", funnel.chains, "1"),
        step("Retried", funnel.retried, "1"),
        step("Recovered", funnel.recovered, str(SERIES["recovered"]), "recovered"),
        step("Recovered by the first retry", funnel.first_retry_fix, str(SERIES["recovered"])),
        step("Switched to another tool", funnel.switched, str(SERIES["switched"]), "switched"),
        step("Abandoned", funnel.abandoned, str(SERIES["abandoned"]), "abandoned"),
        step("Open", funnel.open, str(SERIES["open"]), "open"),
    )


def _capped(bins: tuple[RoundTripBin, ...]) -> tuple[RoundTripBin, ...]:
    """Return the bins with everything from the last shown one on added into it."""
    head, tail = bins[:_LAST_BIN], bins[_LAST_BIN:]
    if not tail:
        return head
    names = ("chains", *OUTCOMES)
    sums = {name: sum(getattr(each, name) for each in tail) for name in names}
    return (*head, RoundTripBin(round_trips=_LAST_BIN, **sums))


def _chart(bins: tuple[RoundTripBin, ...]) -> BarChart:
    total = sum(each.chains for each in bins)
    last = len(bins) - 1
    labels = [
        f"{each.round_trips}+" if i == last and last == _LAST_BIN else str(each.round_trips)
        for i, each in enumerate(bins)
    ]
    return bar_chart(
        labels,
        [(outcome, [getattr(each, outcome) for each in bins]) for outcome in OUTCOMES],
        titles=[
            f"{label} round trips: {plural(each.chains, 'chain')}, {percent(each.chains / total)}"
            for label, each in zip(labels, bins, strict=True)
        ],
        numbers=[SERIES[outcome] for outcome in OUTCOMES],
    )
