"""Overview, the first-run page, Round trips, and one tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc

from toolfault_dashboard.charts import BarChart, Estimate
from toolfault_dashboard.contexts.advice import FixLine, MessageLine
from toolfault_dashboard.contexts.breakdown import BreakdownLine
from toolfault_dashboard.contexts.failures import ChainLine, FailureLine
from toolfault_dashboard.contexts.frequency import FrequencyLine, ToolLine
from toolfault_dashboard.contexts.shell import ColumnChoice, Link, View
from toolfault_dashboard.contexts.times import TimeChart
from toolfault_dashboard.local_sessions import LocalSessions
from toolfault_dashboard.queries.chains.naming import ConversationRungs
from toolfault_dashboard.queries.failures.phantoms import PhantomRow
from toolfault_dashboard.queries.failures.repeats import RepeatRow
from toolfault_dashboard.queries.rows import Funnel, RoundTripBin

__all__ = [
    "FunnelStep",
    "OverviewContext",
    "PhantomLine",
    "RepeatLine",
    "RoundTripsContext",
    "StartContext",
    "Tile",
    "ToolContext",
]


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure at the top of a page."""

    label: Doc[str, "What is counted."]
    value: Doc[str, "The figure, formatted."]
    unit: Doc[str, "Its unit; empty if the figure says all."]
    sub: Doc[str, "n, interval, or what else makes the figure honest."]
    href: Doc[str, "The rows behind it; empty if there is no list of them."]
    estimate: Doc[Estimate | None, "The interval of a rate, drawn; None for a count."]
    before: Doc[str, "The figure of the period before, and the change; empty without one."] = ""


@dataclass(frozen=True, slots=True)
class OverviewContext:
    """`overview.html`."""

    view: Doc[View, "The query bar."]
    tiles: Doc[tuple[Tile, ...], "The headline figures."]
    time: Doc[TimeChart | None, "Failures over time; None when no failure has a time."]
    tools: Doc[tuple[ToolLine, ...], "Tools with most calls spent and failures."]
    tools_total: Doc[int, "Tools in all."]
    codes: Doc[tuple[FrequencyLine, ...], "The most frequent codes."]
    newest: Doc[tuple[FailureLine, ...], "The newest failures."]
    failures: Doc[int, "Failures of the view."]
    calls: Doc[int, "Calls of the view."]
    conversations: Doc[int, "Conversations of the view."]
    links: Doc[dict[str, str], "Addresses: failures, new, tools, fix_next, csv, send ..."]


@dataclass(frozen=True, slots=True)
class StartContext:
    """`start.html`: a project without data."""

    project: Doc[str, "Name of the project to send to."]
    empty: Doc[bool, "Whether the project has no data yet."]
    dsn: Doc[str, "The DSN with a new key; empty until one is asked for."]
    key: Doc[str, "The new key alone; empty until one is asked for."]
    events_url: Doc[str, "Where events are sent to."]
    placeholder: Doc[str, "The DSN with KEY in place of a key."]
    may_create: Doc[bool, "Whether this person may create a key."]
    failures: Doc[str, "Address of the Failures page, for after the first event."]
    sessions: Doc[
        LocalSessions | None, "Claude Code's on the server's machine, for who may import."
    ]
    importing: Doc[str, "How far the import of these is; empty where none was started."]


@dataclass(frozen=True, slots=True)
class FunnelStep:
    """One bar of the recovery funnel."""

    label: Doc[str, "What the chains of this step have done."]
    chains: Doc[int, "How many chains."]
    share: Doc[float, "Share of all chains, 0 to 1."]
    tone: Doc[str, "Series that colours it."]
    href: Doc[str, "The chains behind it; empty if no query selects them."]


@dataclass(frozen=True, slots=True)
class RoundTripsContext:
    """`round_trips.html`."""

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
class ToolContext:
    """`tool.html`."""

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
