"""Codes and fields, and the list of tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc

from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.charts import Estimate
from toolfault_dashboard.contexts.shell import ColumnChoice, View
from toolfault_dashboard.contexts.times import TimeChart

__all__ = [
    "CodesContext",
    "FrequencyLine",
    "HeatCell",
    "HeatMap",
    "HeatRow",
    "ToolLine",
    "ToolsContext",
]


@dataclass(frozen=True, slots=True)
class FrequencyLine:
    """How often one code, field, model or message fails."""

    name: Doc[str, "The value; words for none."]
    tool: Doc[str, "The tool, where the same name of two tools is not the same thing; else empty."]
    failures: Doc[int, "Failures that carry it."]
    share: Doc[float, "Share of the failures of the view, 0 to 1."]
    rate: Doc[Rate, "Failures of the calls that the table names."]
    estimate: Doc[Estimate | None, "The interval of the rate, drawn."]
    first_at: Doc[int | None, "First seen in the view."]
    last_at: Doc[int | None, "Last seen in the view."]
    href: Doc[str, "The failures behind it; empty if no query can name them."]
    meaning: Doc[str, "What it means; empty where the name says it."]


@dataclass(frozen=True, slots=True)
class ToolLine:
    """One tool with its rates."""

    name: Doc[str, "The tool."]
    href: Doc[str, "The page of the tool."]
    failures_href: Doc[str, "Its failures."]
    calls: Doc[int, "Its calls, folded successes included."]
    failures: Doc[int, "Its failures."]
    rate: Doc[Rate, "Failures of its calls."]
    rate_drawn: Doc[Estimate | None, "The interval of the failure rate, drawn."]
    first_try: Doc[Rate, "Operations that needed no chain."]
    chains: Doc[int, "Its chains."]
    calls_spent: Doc[int, "The calls that its chains cost."]
    round_trips: Doc[int, "Its round trips."]
    recovery: Doc[Rate | None, "Recovered of its closed chains; None without chains."]
    recovery_drawn: Doc[Estimate | None, "The interval of the recovery rate, drawn."]
    first_retry_fix: Doc[int, "Chains that the first retry fixed."]
    outcomes: Doc[tuple[int, int, int, int], "Recovered, switched, abandoned, open."]
    chains_by_outcome: Doc[tuple[str, str, str, str], "The chains of each outcome; empty for none."]
    tokens_lost: Doc[int | None, "Tokens of failed calls in chains; None where none reports them."]
    money_lost: Doc[float | None, "What these cost; None without a price."]
    time_lost_ms: Doc[float, "Time between first failure and last call, summed."]
    identical_repeats: Doc[int, "Retries with the same arguments."]


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One cell of a heat map."""

    failures: Doc[int, "Failures."]
    level: Doc[int, "Step of the colour, 0 to 5."]
    href: Doc[str, "The failures behind it; empty for none."]


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One row of a heat map."""

    name: Doc[str, "The tool."]
    cells: Doc[tuple[HeatCell, ...], "One per column."]
    total: Doc[int, "Failures of the row."]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Failures by tool and code, or by tool and field."""

    by: Doc[str, "What the columns are: `code` or `field`."]
    columns: Doc[tuple[str, ...], "The codes or fields."]
    rows: Doc[tuple[HeatRow, ...], "The tools that have one of them."]
    hidden: Doc[int, "Failures in cells that are not shown."]
    csv: Doc[str, "All cells as CSV."]


@dataclass(frozen=True, slots=True)
class CodesContext:
    """`codes.html`."""

    view: Doc[View, "The query bar."]
    failures: Doc[int, "Failures of the view."]
    codes: Doc[tuple[FrequencyLine, ...], "Codes, most failures first."]
    fields: Doc[tuple[FrequencyLine, ...], "Fields, most failures first."]
    denominator: Doc[str, "Which calls the rates are of."]
    fields_denominator: Doc[str, "Which calls the rates of the fields are of."]
    time: Doc[TimeChart | None, "Failures over time; None when no failure has a time."]
    heats: Doc[tuple[HeatMap, ...], "Tool by code and by field, where there are two of each."]
    groups: Doc[dict[str, int], "How many codes and fields there are in all."]
    pages: Doc[dict[str, dict[str, str]], "Addresses of the pages beside, of codes and fields."]
    columns: Doc[ColumnChoice, "Columns of both tables."]
    links: Doc[dict[str, str], "Addresses: csv, fields_csv."]


@dataclass(frozen=True, slots=True)
class ToolsContext:
    """`tools.html`."""

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
