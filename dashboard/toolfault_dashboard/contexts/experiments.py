"""Experiments and one experiment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc

from toolfault_dashboard.charts import Estimate
from toolfault_dashboard.contexts.overview import TimeChart
from toolfault_dashboard.contexts.shell import Link, View

__all__ = [
    "ArmLine",
    "ArmMetricLine",
    "ExperimentContext",
    "ExperimentLine",
    "ExperimentsContext",
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
    controls: Doc[tuple[Link, ...], "Which arm to compare with."]
    time: Doc[TimeChart | None, "Failures over time; None when no failure has a time."]
    csv: Doc[str, "The metrics as CSV."]
    back: Doc[str, "All experiments."]
