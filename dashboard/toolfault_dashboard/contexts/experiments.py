"""Experiments and one experiment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc

from toolfault_dashboard.charts import Estimate
from toolfault_dashboard.contexts.shell import Link, View
from toolfault_dashboard.contexts.times import TimeChart
from toolfault_dashboard.whiskers import WhiskerChart

__all__ = [
    "ArmCostLine",
    "ArmLine",
    "ArmMetricLine",
    "DaysContext",
    "ExperimentContext",
    "ExperimentLine",
    "ExperimentsContext",
    "LookLine",
]


@dataclass(frozen=True, slots=True)
class ExperimentLine:
    """An experiment in the list."""

    name: Doc[str, "Its name."]
    href: Doc[str, "Its page."]
    arms: Doc[tuple[str, ...], "Its arms."]


@dataclass(frozen=True, slots=True)
class ExperimentsContext:
    """`experiments.html`."""

    view: Doc[View, "The query bar."]
    experiments: Doc[tuple[ExperimentLine, ...], "The experiments of the view, by name."]
    csv: Doc[str, "Them with their arms as CSV."]


@dataclass(frozen=True, slots=True)
class ArmLine:
    """How many conversations an arm got."""

    name: Doc[str, "The arm."]
    control: Doc[bool, "Whether the others are compared with it."]
    conversations: Doc[int, "Conversations that were assigned to it."]
    expected: Doc[float, "Conversations it should have got."]
    share: Doc[float, "Its share of all conversations, 0 to 1."]
    href: Doc[str, "Its failures."]


@dataclass(frozen=True, slots=True)
class ArmMetricLine:
    """One metric of one arm against the control."""

    arm: Doc[str, "The arm."]
    title: Doc[str, "The metric in words."]
    meaning: Doc[str, "What it is, in a sentence."]
    better: Doc[str, "`lower` or `higher`."]
    control: Doc[str, "Value of the control, formatted."]
    treatment: Doc[str, "Value of the arm, formatted."]
    n_control: Doc[str, "What the value of the control rests on."]
    n_treatment: Doc[str, "What the value of the arm rests on."]
    difference: Doc[str, "Arm minus control, formatted."]
    fixed: Doc[str, "Fixed-horizon interval, formatted; empty without one."]
    always: Doc[str, "Always-valid interval, formatted; empty without one."]
    fixed_drawn: Doc[Estimate | None, "The fixed-horizon interval, drawn around zero."]
    always_drawn: Doc[Estimate | None, "The always-valid interval, drawn around zero."]
    verdict: Doc[str, "Verdict of the always-valid interval."]
    to_go: Doc[str, "How long until the always-valid interval would decide, in words."]
    adjusted: Doc[str, "The always-valid interval adjusted for the past; empty without a past."]


@dataclass(frozen=True, slots=True)
class ArmCostLine:
    """What the failures of one arm cost."""

    name: Doc[str, "The arm."]
    chains: Doc[int, "Its chains."]
    round_trips: Doc[int, "Its round trips."]
    time_lost: Doc[str, "Time lost in its chains; a dash where no chain has times."]
    tokens: Doc[str, "Tokens lost, in all; a dash where no chain reports them."]
    per_conversation: Doc[str, "Tokens lost for each of its conversations; a dash likewise."]
    money: Doc[str, "What these tokens cost; a dash without prices."]
    href: Doc[str, "Its chains, on Round trips."]


@dataclass(frozen=True, slots=True)
class LookLine:
    """The effect of one arm as it was known at the end of one day."""

    until_at: Doc[int, "The moment, microseconds since the epoch."]
    arm: Doc[str, "The arm."]
    series: Doc[int, "Its colour and pattern."]
    n: Doc[str, "What the control and the arm rested on."]
    difference: Doc[str, "Arm minus control, formatted."]
    always: Doc[str, "Always-valid interval, formatted; empty without one."]
    fixed: Doc[str, "Fixed-horizon interval, formatted; empty without one."]
    decided: Doc[bool, "Whether the always-valid interval lies on one side of no difference."]


@dataclass(frozen=True, slots=True)
class DaysContext:
    """The days of a trial, one after the other."""

    title: Doc[str, "The metric in words."]
    better: Doc[str, "`lower` or `higher`."]
    every: Doc[str, "How often was looked, in words."]
    chart: Doc[WhiskerChart | None, "The always-valid intervals, drawn; None without any."]
    looks: Doc[tuple[LookLine, ...], "The table behind the drawing, newest first."]
    metrics: Doc[tuple[Link, ...], "The metrics to choose from."]
    arms: Doc[tuple[tuple[str, int], ...], "Each arm with its colour and pattern."]
    csv: Doc[str, "The looks as CSV."]


@dataclass(frozen=True, slots=True)
class ExperimentContext:
    """`experiment.html`."""

    view: Doc[View, "The query bar."]
    name: Doc[str, "The experiment."]
    verdict: Doc[str, "Verdict on the failure rate of the first arm."]
    sentence: Doc[str, "The verdict in a sentence."]
    detail: Doc[str, "How sure that is and how long it may take still, in a sentence."]
    arms: Doc[tuple[ArmLine, ...], "The assignment."]
    balance: Doc[str, "Whether the arms got the shares they were meant to get, in a sentence."]
    mismatch: Doc[bool, "Whether the assignment is broken, so that no effect can be believed."]
    metrics: Doc[tuple[ArmMetricLine, ...], "Every arm against the control."]
    costs: Doc[tuple[ArmCostLine, ...], "What the failures of each arm cost."]
    days: Doc[DaysContext | None, "How the effect grew day by day; None until asked for."]
    days_href: Doc[str, "This page with, or without, the days."]
    controls: Doc[tuple[Link, ...], "Which arm to compare with."]
    time: Doc[TimeChart | None, "Failures over time; None when no failure has a time."]
    csv: Doc[str, "The metrics as CSV."]
    costs_csv: Doc[str, "What the arms cost, as CSV."]
    back: Doc[str, "All experiments."]
