"""Break down: a property of calls, and tool by that property."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc

from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.charts import Estimate
from toolfault_dashboard.contexts.frequency import FrequencyLine
from toolfault_dashboard.contexts.shell import Link, View
from toolfault_dashboard.queries.figures.breakdown import BreakdownCell, BreakdownGroup

__all__ = ["BreakdownContext", "BreakdownLine", "BreakdownRow", "RateCell"]


@dataclass(frozen=True, slots=True)
class BreakdownLine:
    """The calls that carry one value."""

    row: Doc[BreakdownGroup, "What was counted."]
    name: Doc[str, "The value; words for none."]
    drawn: Doc[Estimate | None, "The interval of the failure rate, drawn."]
    href: Doc[str, "The failures behind it."]


@dataclass(frozen=True, slots=True)
class RateCell:
    """One tool and one value; nothing where the tool was not called so."""

    row: Doc[BreakdownCell | None, "What was counted; None without a call."]
    rate: Doc[Rate, "Failures of the calls."]
    said: Doc[str, "What was counted, in words."]
    level: Doc[int, "Step of the colour, 0 to 5."]
    href: Doc[str, "The failures behind it; empty for none."]


@dataclass(frozen=True, slots=True)
class BreakdownRow:
    """One tool."""

    tool: Doc[str, "The tool."]
    href: Doc[str, "Its page."]
    cells: Doc[tuple[RateCell, ...], "One per column."]
    worst: Doc[str, "The value at which it fails most; empty where nothing can be compared."]


@dataclass(frozen=True, slots=True)
class BreakdownContext:
    """`breakdown.html`."""

    view: Doc[View, "The query bar."]
    by: Doc[str, "What calls or failures are told apart by, in words."]
    title: Doc[str, "The same, as a heading."]
    tabs: Doc[tuple[Link, ...], "What they can be told apart by."]
    lines: Doc[tuple[BreakdownLine, ...], "The values that calls carry, most failures first."]
    kinds: Doc[tuple[FrequencyLine, ...], "Those that failures alone have, most failures first."]
    denominator: Doc[str, "What the rates of `kinds` are of."]
    columns: Doc[tuple[str, ...], "The values with a column of their own."]
    rows: Doc[tuple[BreakdownRow, ...], "The tools with most failures."]
    groups: Doc[dict[str, int], "How many values and tools there are in all."]
    pages: Doc[dict[str, dict[str, str]], "Addresses of the pages beside, of values and tools."]
    minimum: Doc[int, "Calls below which a cell is not compared."]
    csv: Doc[str, "The matrix, or the values that failures alone have, as a file."]
