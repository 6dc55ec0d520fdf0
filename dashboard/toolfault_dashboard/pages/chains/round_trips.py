"""Round trips: how many extra calls failures cost, and whether models recover."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated as Doc
from typing import ClassVar, Final

from fastapi import APIRouter
from starlette.responses import Response

from toolfault_dashboard import queries
from toolfault_dashboard.charts import BarChart, Estimate, bar_chart, estimate
from toolfault_dashboard.formats import count, decimal, duration, percent, plural
from toolfault_dashboard.pages.shared.ask import Ask, Asked
from toolfault_dashboard.pages.shared.columns import (
    ColumnChoice,
    choice,
    chosen,
    kept_columns,
    redirected,
)
from toolfault_dashboard.pages.shared.frame import Context, Link, View
from toolfault_dashboard.pages.shared.lines import (
    NONE,
    ChainLine,
    argument_of,
    exactly,
)
from toolfault_dashboard.pages.shared.table import Column, Drawn, Table
from toolfault_dashboard.pages.shared.tiles import (
    Tile,
    before,
    count_tile,
    rate_tile,
    recovery_tile,
    tile,
)
from toolfault_dashboard.queries.chains.naming import ConversationRungs
from toolfault_dashboard.queries.lists.streams import RowStream
from toolfault_dashboard.queries.rows import (
    OUTCOMES,
    ChainGroup,
    Funnel,
    RoundTripBin,
    RoundTrips,
)
from toolfault_dashboard.search import Query, parse

__all__ = ["BY_GROUP", "CHAINS", "ENDS", "LENGTHS", "RUNGS", "router"]


@dataclass(frozen=True, slots=True)
class FunnelStep:
    """One bar of the recovery funnel."""

    label: Doc[str, "What the chains of this step have done."]
    chains: Doc[int, "How many chains."]
    share: Doc[float, "Share of all chains, 0 to 1."]
    tone: Doc[str, "Series that colours it."]
    href: Doc[str, "The chains behind it; empty if no query selects them."]


@dataclass(frozen=True, slots=True)
class PricedGroup(ChainGroup):
    """The chains of one group, and what their tokens cost."""

    money_lost: float | None  # None without prices, and by argument


@dataclass(frozen=True, slots=True)
class GroupLine:
    """The chains of one tool, argument, code or model."""

    row: Doc[PricedGroup, "What was counted."]
    name: Doc[str, "What they have in common; words for none."]
    href: Doc[str, "These chains."]
    recovered: Doc[str, "Those that recovered; empty for none."]
    switched: Doc[str, "Those that switched; empty for none."]
    abandoned: Doc[str, "Those that were abandoned; empty for none."]
    open: Doc[str, "Those that are open; empty for none."]
    drawn: Doc[Estimate | None, "The interval of the recovery rate, drawn."]


@dataclass(frozen=True, slots=True)
class RoundTripsContext(Context):
    """What `round_trips.html` shows."""

    template: ClassVar[str] = "round_trips.html"

    view: Doc[View, "The query bar."]
    tiles: Doc[tuple[Tile, ...], "The headline figures."]
    rungs: Doc[ConversationRungs, "What named the conversations, and what cannot be chained."]
    named_by: Doc[Drawn, "What named the conversations."]
    funnel: Doc[Funnel, "Chains by how they ended."]
    steps: Doc[Drawn, "The funnel, drawn."]
    chart: Doc[BarChart | None, "Chains by number of round trips; None without chains."]
    bins: Doc[Drawn, "The table behind the drawing."]
    by: Doc[str, "What the groups are: `tool`, `argument`, `code` or `model`."]
    groups: Doc[Drawn, "Chains by group, most calls spent first."]
    groups_in_all: Doc[int, "How many groups there are."]
    costliest: Doc[str, "Which argument costs most, if some rows name none; else empty."]
    tabs: Doc[tuple[Link, ...], "What chains can be grouped by."]
    group_columns: Doc[ColumnChoice, "Columns of the groups."]
    chain_columns: Doc[ColumnChoice, "Columns of the chains."]
    chains: Doc[Drawn, "The chains, newest first."]
    total: Doc[int, "Chains in the list, each as one, also if it was sampled."]
    pages: Doc[dict[str, str], "Addresses of the newer and older page; empty at the ends."]
    links: Doc[
        dict[str, str], "Addresses: csv (by group), chains_csv, lengths_csv, rungs_csv, unchained."
    ]


router = APIRouter()

PAGE_ROWS: Final = 25
GROUP_ROWS: Final = 30
_LAST_BIN: Final = 12  # longer chains are shown together
GROUPS: Final = {"tool": "Tool", "argument": "Argument", "code": "Code", "model": "Model"}
# Each chain costs once, so it stands under the own code of its first failure alone.
_KEYS: Final = {"code": "own_code"}
# Colour and pattern of each outcome, the same in every drawing.
SERIES: Final = {"recovered": 3, "switched": 6, "abandoned": 2, "open": 7}


def _all_groups(ask: Ask) -> list[PricedGroup] | RowStream:
    by = chosen_group(ask)
    if by != "argument":
        groups = queries.chains_by(ask.conn, ask.scope, by)
        return _priced(groups, _money(ask, by))
    pairs = queries.chains_by_argument(ask.conn, ask.scope)
    found = BY_GROUP.stream(_priced((group for _, group in pairs), {}))
    rows = ((tool, *row) for (tool, _), row in zip(pairs, found.rows, strict=True))
    return replace(found, columns=("tool", "field", *found.columns[1:]), rows=iter(rows))


def _priced(groups: Iterable[ChainGroup], money: Mapping[str, float | None]) -> list[PricedGroup]:
    names = [field.name for field in fields(ChainGroup)]
    return [
        PricedGroup(
            **{name: getattr(group, name) for name in names}, money_lost=money.get(group.name)
        )
        for group in groups
    ]


def _length(row: RoundTripBin) -> str:
    return f"{row.round_trips} or more" if row.round_trips == _LAST_BIN else str(row.round_trips)


BY_GROUP: Final = Table(
    Column("name", "Tool", "code_link", term=""),
    Column("chains", "Chains", "count", "row.chains"),
    Column("spent", "Calls spent", "count", "row.calls_spent", usual=True),
    Column("round_trips", "Round trips", "count", "row.round_trips", usual=True),
    *(
        Column(each, each.capitalize(), "count_link", f"row.{each}", usual=True, href=each,
               said=each)
        for each in OUTCOMES
    ),
    Column("recovery", "Recovery rate", "recovery", "row.recovery_rate", usual=True),
    Column("first_retry", "First retry", "count", "row.first_retry_fix", usual=True, quiet=True),
    Column("repeats", "Same again", "count", "row.identical_repeats", usual=False, quiet=True),
    Column("time", "Time lost", "duration", "row.time_lost_ms", usual=True),
    Column("tokens", "Tokens lost", "known_count", "row.tokens_lost", usual=False),
    Column("money", "Money lost", "decimal", "row.money_lost", usual=False),
    file="round-trips", row=PricedGroup, rows=_all_groups,
)  # fmt: skip
CHAINS: Final = Table(
    Column("started", "Started", "moment", "row.started_at", style="nowrap", label=""),
    Column("tool", "Tool", "code", "row.tool", label=""),
    Column("code", "First code", "code_link", "row.first_code", label=""),
    Column("field", "First field", "code", "row.first_field", usual=True, nothing="–",
           label="Field"),
    Column("outcome", "Outcome", "outcome", "row.outcome", label=""),
    Column("failures", "Failures", "count", "row.failures", usual=True),
    Column("spent", "Calls spent", "count", "row.calls_spent", usual=True, quiet=True),
    Column("round_trips", "Round trips", "count", "row.round_trips", usual=True, quiet=True),
    Column("remarkable", "Remarkable", "remarkable", "row", usual=True, label=""),
    *(
        Column(each, each.capitalize(), "code", f"row.{each}", usual=False)
        for each in ("conversation", "model", "agent", "release", "environment", "variant")
    ),
    Column("time_lost", "Time lost", "duration", "row.time_lost_ms", usual=False),
    Column("tokens_lost", "Tokens lost", "known_count", "row.tokens_lost", usual=False),
    file="chains",
    named="chains",
    header="",
    parameter="chain-cols",
)  # fmt: skip
ENDS: Final = Table(
    Column("label", "Chains", "step"),
    Column("chains", "Number", "count", quiet=True),
    Column("share", "Share of all chains", "percent"),
    Column("drawn", "Drawn", "bar", "share", hidden=True, style="funnel-cell"),
    file="chain-ends",
    row=Funnel,
    rows=lambda ask: [queries.round_trips(ask.conn, ask.scope).funnel],
)  # fmt: skip
LENGTHS: Final = Table(
    Column("round_trips", "Round trips", value=_length),
    *(Column(each, each, "count", term="") for each in OUTCOMES),
    Column("chains", "Chains", "count"),
    file="chain-lengths",
    row=RoundTripBin,
    rows=lambda ask: queries.round_trips(ask.conn, ask.scope).distribution,
)  # fmt: skip
RUNGS: Final = Table(
    Column("rung", "Named by", value=lambda row: row.meaning or row.rung),
    Column("framework", "Framework", "plain"),
    Column("side", "Side", "plain"),
    Column("failures", "Failures", "count", term=""),
    Column("chained", "In chains",
           value=lambda row: "yes" if row.chained else f"no: {row.because}"),
    file="conversation-rungs", named="conversation_rungs",
)  # fmt: skip


@router.get("/round-trips", name="round_trips")
def round_trips(ask: Asked) -> Response:
    """Render the page."""
    by = chosen_group(ask)
    own = {"by": by} if by != "tool" else {}
    kept = {**own, **kept_columns(ask, BY_GROUP, CHAINS)}
    places = {"by": BY_GROUP, "chains": CHAINS}
    if (answer := redirected(ask, "/round-trips", places, **kept)) is not None:
        return answer
    found = queries.round_trips(ask.conn, ask.scope)
    cursor = ask.request.query_params.get("cursor") or None
    chains = queries.chain_list(ask.conn, ask.scope, cursor=cursor, limit=PAGE_ROWS)
    bins = _capped(found.distribution)
    rungs = queries.conversation_rungs(ask.conn, ask.scope)
    groups, groups_in_all, costliest = _groups(ask, found, by)
    group_columns, chain_columns = (choice(ask, each, **kept) for each in (BY_GROUP, CHAINS))
    context = RoundTripsContext(
        view=ask.view("/round-trips", **kept),
        tiles=_tiles(ask, found),
        rungs=rungs,
        named_by=RUNGS.drawn(rungs.rows),
        funnel=found.funnel,
        steps=ENDS.drawn(_steps(ask, found)),
        chart=_chart(bins) if found.funnel.chains else None,
        bins=LENGTHS.drawn(bins),
        by=by,
        groups=BY_GROUP.drawn(groups, group_columns.shown, titles={"name": by.capitalize()}),
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
        group_columns=group_columns,
        chain_columns=chain_columns,
        chains=CHAINS.drawn(
            (ChainLine(row, ask.link(f"/chains/{row.chain_id}")) for row in chains.rows),
            chain_columns.shown,
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


def _groups(ask: Ask, found: RoundTrips, by: str) -> tuple[list[GroupLine], int, str]:
    """Return the chains by tool, argument, code or model, and how many groups there are.

    Those with the most calls spent come first, `GROUP_ROWS` at most. Then what to say above them.
    """
    if by == "argument":
        pairs = queries.chains_by_argument(ask.conn, ask.scope)
        tools = [tool for tool, _ in pairs[:GROUP_ROWS]]
        shown = _priced((group for _, group in pairs[:GROUP_ROWS]), {})
        lines = [
            _line(
                ask,
                group,
                argument_of(tool, group.name),
                exactly(exactly(ask.query, "tool", tool), "field", group.name),
            )
            for tool, group in zip(tools, shown, strict=True)
        ]
        return lines, len(pairs), _costliest_argument(pairs)
    named = {"tool": found.by_tool, "code": found.by_code, "model": found.by_model}[by]
    money = _money(ask, by) if "money" in chosen(ask, BY_GROUP) else {}
    lines = [
        _line(ask, group, group.name or NONE, exactly(ask.query, _KEYS.get(by, by), group.name))
        for group in _priced(named[:GROUP_ROWS], money)
    ]
    return lines, len(named), ""


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


def _line(ask: Ask, group: PricedGroup, name: str, query: Query) -> GroupLine:
    rate = group.recovery_rate
    return GroupLine(
        row=group,
        name=name,
        href=ask.link("/round-trips", query),
        **{
            each: ask.link("/round-trips", exactly(query, "chain", each)) + "#chains"
            if getattr(group, each)
            else ""
            for each in OUTCOMES
        },
        drawn=estimate(rate.value, rate.low, rate.high, scale=1.0),
    )


def _money(ask: Ask, by: str) -> dict[str, float | None]:
    """Return what the tokens of each group cost."""
    if by not in queries.COST_GROUPS:
        return {}
    prices = queries.prices_of(ask.conn, ask.scope.project_id)
    found = queries.costs(ask.conn, ask.scope, by, prices)
    return {row.name: row.money_lost for row in found.rows}


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
