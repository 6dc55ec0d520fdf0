"""Changes and one change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc

from toolfault_dashboard.analysis.comparisons.effect import Effect
from toolfault_dashboard.charts import Estimate
from toolfault_dashboard.contexts.frequency import FrequencyLine
from toolfault_dashboard.contexts.shell import Link, View
from toolfault_dashboard.contexts.times import TimeChart
from toolfault_dashboard.queries.rows import ChangeRow

__all__ = [
    "ChangeContext",
    "ChangeForm",
    "ChangeLine",
    "ChangesContext",
    "CodeLine",
    "CompareContext",
    "MetricLine",
]


@dataclass(frozen=True, slots=True)
class MetricLine:
    """One metric before and after a change."""

    title: Doc[str, "The metric in words."]
    meaning: Doc[str, "What it is, in a sentence."]
    before: Doc[str, "Value before, formatted."]
    after: Doc[str, "Value after, formatted."]
    n_before: Doc[str, "What the value before rests on."]
    n_after: Doc[str, "What the value after rests on."]
    difference: Doc[str, "After minus before, formatted."]
    interval: Doc[str, "Interval of the difference, formatted."]
    drawn: Doc[Estimate | None, "The interval, drawn around zero."]
    better: Doc[str, "`lower` or `higher`."]
    detectable: Doc[str, "Smallest difference that would have been seen, formatted."]
    method: Doc[str, "How the interval was found."]
    verdict: Doc[str, "`improved`, `worse`, `no detectable change` or `not enough data`."]
    too_little: Doc[str, "What a verdict would need; empty where there is one."]


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
class ChangesContext:
    """`changes.html`."""

    changes: Doc[tuple[ChangeLine, ...], "This page of changes, newest first."]
    total: Doc[int, "Changes in all."]
    pages: Doc[dict[str, str], "Addresses of the newer and older page; empty at the ends."]
    form: Doc[ChangeForm, "The form."]
    tools: Doc[tuple[str, ...], "Known tools, for the form."]
    may_record: Doc[bool, "Whether this person may record a change."]
    recorded: Doc[str, "Label of the change just recorded; empty otherwise."]
    csv: Doc[str, "All changes as CSV."]
    compare: Doc[str, "Where any two queries are compared."]


@dataclass(frozen=True, slots=True)
class ChangeContext:
    """`change.html`."""

    change: Doc[ChangeRow, "What is stored."]
    effect: Doc[Effect, "Before against after."]
    sentence: Doc[str, "The verdict in a sentence."]
    detail: Doc[str, "How sure that is, in a sentence."]
    control: Doc[str, "How the tools fared that it did not touch, in words; empty without any."]
    metrics: Doc[tuple[MetricLine, ...], "The metrics."]
    time: Doc[TimeChart | None, "Failures over time around the change."]
    windows: Doc[tuple[Link, ...], "How much time before and after is compared."]
    new: Doc[tuple[FrequencyLine, ...], "Kinds of failure that were never seen before the change."]
    links: Doc[
        dict[str, str],
        "Addresses: before, after (failures of each cohort), changes, csv, new_csv, compare.",
    ]


@dataclass(frozen=True, slots=True)
class CodeLine:
    """One code in both cohorts of a comparison."""

    code: Doc[str, "The code."]
    before: Doc[str, "Failures and their rate in the first cohort."]
    after: Doc[str, "Failures and their rate in the second cohort."]
    difference: Doc[str, "Second minus first, formatted."]
    interval: Doc[str, "Interval of the difference, formatted."]
    verdict: Doc[str, "`improved`, `worse`, `no detectable change` or `not enough data`."]


@dataclass(frozen=True, slots=True)
class CompareContext:
    """`compare.html`."""

    view: Doc[View, "The query bar: what both cohorts have in common."]
    before: Doc[str, "The query of the first cohort, as typed."]
    after: Doc[str, "The query of the second cohort, as typed."]
    problem: Doc[str, "Which cohort cannot be read and why; empty if both can."]
    presets: Doc[tuple[Link, ...], "Comparisons that are often wanted."]
    effect: Doc[Effect | None, "First cohort against second; None before two queries are given."]
    sentence: Doc[str, "The verdict in a sentence; empty before."]
    detail: Doc[str, "How sure that is, in a sentence; empty before."]
    overlap: Doc[str, "How many calls are in both cohorts, in a sentence; empty if none is."]
    metrics: Doc[tuple[MetricLine, ...], "The metrics."]
    codes: Doc[tuple[CodeLine, ...], "Every code, most failures first."]
    links: Doc[
        dict[str, str],
        "Addresses: before, after (failures of each cohort), csv, codes_csv, changes.",
    ]
