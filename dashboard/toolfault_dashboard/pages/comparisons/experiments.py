"""Experiments: randomised trials, the assignment first and the effect after it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Annotated as Doc
from typing import ClassVar, Final

from fastapi import APIRouter, HTTPException
from starlette.responses import Response

from toolfault_dashboard import queries
from toolfault_dashboard.analysis.comparisons.balance import MISMATCH, Balance
from toolfault_dashboard.analysis.comparisons.experiments import ArmEffect, Experiment
from toolfault_dashboard.analysis.comparisons.remaining import FARTHEST, conversations_to_go
from toolfault_dashboard.analysis.rates import Interval
from toolfault_dashboard.charts import Estimate
from toolfault_dashboard.formats import decimal, duration, percent, plural, points
from toolfault_dashboard.pages.comparisons.days import DaysContext, days_of
from toolfault_dashboard.pages.comparisons.effects import (
    SHARES,
    TITLES,
    counted,
    scaled,
    shown_difference,
    shown_value,
)
from toolfault_dashboard.pages.shared.ask import DAY, Ask, Asked
from toolfault_dashboard.pages.shared.frame import Context, Link, View
from toolfault_dashboard.pages.shared.over_time import TOP_CODES, TimeChart, time_chart
from toolfault_dashboard.pages.shared.table import Column, Drawn, Table
from toolfault_dashboard.queries.lists.streams import RowStream
from toolfault_dashboard.queries.rows import FailuresOverTime
from toolfault_dashboard.search import Clause, Pattern, Query

__all__ = ["ARMS", "COSTS", "EXPERIMENTS", "router"]


@dataclass(frozen=True, slots=True)
class ExperimentLine:
    """An experiment in the list."""

    name: Doc[str, "Its name."]
    href: Doc[str, "Its page."]
    arms: Doc[tuple[str, ...], "Its arms."]


@dataclass(frozen=True, slots=True)
class ExperimentsContext(Context):
    """What `experiments.html` shows."""

    template: ClassVar[str] = "experiments.html"

    view: Doc[View, "The query bar."]
    experiments: Doc[Drawn, "The experiments of the view, by name."]
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
class ArmCost:
    """What the failures of one arm cost; None where nobody reports it."""

    arm: str
    conversations: int
    chains: int
    round_trips: int
    tokens_lost: int | None
    time_lost_ms: float | None
    money_lost: float | None  # of its tokens; None without prices


@dataclass(frozen=True, slots=True)
class ArmCostLine:
    """What the failures of one arm cost, on the page."""

    row: Doc[ArmCost, "What was counted."]
    href: Doc[str, "Its chains, on Round trips."]


@dataclass(frozen=True, slots=True)
class ExperimentContext(Context):
    """What `experiment.html` shows."""

    template: ClassVar[str] = "experiment.html"

    view: Doc[View, "The query bar."]
    name: Doc[str, "The experiment."]
    verdict: Doc[str, "Verdict on the failure rate of the first arm."]
    sentence: Doc[str, "The verdict in a sentence."]
    detail: Doc[str, "How sure that is and how long it may take still, in a sentence."]
    arms: Doc[Drawn, "The assignment."]
    balance: Doc[str, "Whether the arms got the shares they were meant to get, in a sentence."]
    mismatch: Doc[bool, "Whether the assignment is broken, so that no effect can be believed."]
    metrics: Doc[Drawn, "Every arm against the control."]
    costs: Doc[Drawn, "What the failures of each arm cost."]
    days: Doc[DaysContext | None, "How the effect grew day by day; None until asked for."]
    days_href: Doc[str, "This page with, or without, the days."]
    controls: Doc[tuple[Link, ...], "Which arm to compare with."]
    time: Doc[TimeChart | None, "Failures over time; None when no failure has a time."]
    csv: Doc[str, "The metrics as CSV."]
    costs_csv: Doc[str, "What the arms cost, as CSV."]
    back: Doc[str, "All experiments."]


router = APIRouter()

_LONGEST_DAYS: Final = 3 * 365


@router.get("/experiments", name="experiments")
def experiments(ask: Asked) -> Response:
    """Render the list."""
    found = queries.experiments(ask.conn, ask.scope)
    context = ExperimentsContext(
        view=ask.view("/experiments"),
        experiments=EXPERIMENTS.drawn(
            ExperimentLine(name, ask.link("/experiment", name=name), arms)
            for name, arms in found.items()
        ),
        csv=ask.export("/experiments.csv"),
    )
    return ask.render(context, title="Experiments")


def _asked(ask: Ask) -> Experiment:
    name = ask.request.query_params.get("name", "")
    control = ask.request.query_params.get("control") or None
    try:
        found = queries.experiment(ask.conn, ask.scope, name, control=control)
    except ValueError as error:
        raise HTTPException(404, str(error)) from None
    if found is None:
        raise HTTPException(404, "There is no experiment of this name in this time.")
    return found


_PLAIN: Final = (
    "metric", "arm", "better", "control", "treatment", "n_control", "n_treatment", "unit",
    "difference", "verdict", "fixed_verdict",
)  # fmt: skip
_INTERVALS: Final = ("fixed", "always", "adjusted")


def _arm_stream(ask: Ask) -> RowStream:
    """Return the metrics of the experiment that the address names; an interval is two columns."""
    ends = [f"{name}_{end}" for name in _INTERVALS for end in ("low", "high")]
    numbers = ("control", "treatment", "difference", *ends)
    return RowStream(
        columns=(*_PLAIN, *ends),
        times=frozenset(),
        rows=iter([_cells(each) for each in _asked(ask).effects]),
        kinds={
            **dict.fromkeys(numbers, "number"),
            **dict.fromkeys(("n_control", "n_treatment"), "integer"),
        },
    )


def _cells(effect: ArmEffect) -> tuple[object, ...]:
    adjusted = effect.adjusted.always if effect.adjusted else None
    return (
        *(getattr(effect, name) for name in _PLAIN),
        *(
            end
            for interval in (effect.fixed, effect.always, adjusted)
            for end in ((interval.low, interval.high) if interval else (None, None))
        ),
    )


def _costs(ask: Ask, found: Experiment) -> list[ArmCost]:
    """Return what the failures of each arm cost; sums, since arms are of different sizes too."""
    prices = queries.prices_of(ask.conn, ask.scope.project_id)
    costs = queries.arm_costs(ask.conn, ask.scope, found.name, prices)
    return [
        ArmCost(
            arm=arm,
            conversations=found.balance.conversations[arm],
            chains=row.chains,
            round_trips=row.round_trips,
            tokens_lost=row.tokens_lost,
            time_lost_ms=row.time_lost_ms,
            money_lost=row.money_lost,
        )
        for arm in found.arms
        if (row := costs.get(arm)) is not None
    ]


def _tokens_per_conversation(row: ArmCost) -> str:
    if row.tokens_lost is None or not row.conversations:
        return decimal(None)
    return decimal(row.tokens_lost / row.conversations, 1)


EXPERIMENTS: Final = Table(
    Column("name", "Experiment", "code_link"),
    Column("arms", "Arms", "arms"),
    Column("effect", "Effect", "effect", "name", hidden=True, style="num"),
    Column("experiment", file={"experiment": ""}, value=itemgetter(0)),
    Column("arm", file={"arm": ""}, value=itemgetter(1)),
    file="experiments",
    rows=lambda ask: [
        (name, arm)
        for name, arms in queries.experiments(ask.conn, ask.scope).items()
        for arm in arms
    ],
)  # fmt: skip
ASSIGNMENT: Final = Table(
    Column("arm", "Arm", "arm", "name"),
    Column("conversations", "Conversations", "count"),
    Column("expected", "Expected", number=True, value=lambda row: decimal(row.expected, 1)),
    Column("share", "Share", "share", width=130),
    Column("failures", "Failures", "failures", "name", hidden=True, style="num", label=""),
)  # fmt: skip
ARMS: Final = Table(
    Column("title", "Metric", "metric"),
    Column("control", "Control", "side", lambda row: (row.control, row.n_control), number=True),
    Column("treatment", "Arm", "side", lambda row: (row.treatment, row.n_treatment),
           number=True, term=""),
    Column("difference", "Difference", number=True),
    Column("always", "Always-valid 95% interval", "always", term="always-valid",
           note="valid no matter how often you check", style="effect-cell"),
    Column("fixed", "Fixed-horizon 95% interval", "fixed", term="fixed-horizon",
           note="valid if you check once, now", style="effect-cell"),
    Column("verdict", "Verdict", "verdict_to_go", label=""),
    file="experiment", rows=_arm_stream,
)  # fmt: skip
COSTS: Final = Table(
    Column("arm", "Arm", "whole_code", "row.arm"),
    Column("chains", "Chains", "count_link", "row.chains"),
    Column("round_trips", "Round trips", "count", "row.round_trips"),
    Column("time", "Time lost", number=True, value=lambda row: duration(row.time_lost_ms)),
    Column("tokens", "Tokens lost", "known_count", "row.tokens_lost"),
    Column("per_conversation", "Tokens per conversation", number=True,
           value=_tokens_per_conversation),
    Column("money", "Money lost", "decimal", "row.money_lost"),
    file="experiment-costs", row=ArmCost, rows=lambda ask: _costs(ask, _asked(ask)),
)  # fmt: skip


@router.get("/experiment", name="experiment")
def experiment(ask: Asked, name: str = "") -> Response:
    """Render one trial. The name is a parameter: it may hold a slash."""
    found = _asked(ask)
    ours = ask.query.and_(Query((Clause("variant", (Pattern((f"{name}=", "")),)),)))
    narrowed = replace(ask, text=str(ours), fixed=ours)
    drawn = queries.failures_over_time(ask.conn, narrowed.scope, top=TOP_CODES)
    pace = _pace(ask, found, drawn)
    first = found.effects[0] if found.effects else None
    context = ExperimentContext(
        view=replace(ask.view("/experiment", name=name), copies=narrowed.copies()),
        name=name,
        verdict=first.verdict if first else "not enough data",
        sentence=_sentence(found, first),
        detail=_certainty(found, first, pace),
        arms=ASSIGNMENT.drawn(_arm_line(ask, found, arm) for arm in found.arms),
        balance=_balance(found.balance),
        mismatch=found.balance.mismatch,
        metrics=ARMS.drawn(
            _metrics(found, pace),
            titles={"treatment": first.arm} if first and len(found.arms) == 2 else {},
        ),
        costs=COSTS.drawn(_cost_line(ask, found, row) for row in _costs(ask, found)),
        days=days_of(ask, found),
        days_href=ask.here(days="", metric="")
        if "days" in ask.request.query_params
        else ask.here(days="1") + "#days",
        controls=tuple(
            Link(arm, ask.here(control=arm), arm == found.control) for arm in found.arms
        ),
        time=time_chart(narrowed, drawn, queries.changes(ask.conn, ask.scope)),
        csv=ask.link("/experiment.csv", name=name, control=found.control),
        costs_csv=ask.link("/experiment-costs.csv", name=name, control=found.control),
        back=ask.link("/experiments"),
    )
    return ask.render(context, title=name)


def _cost_line(ask: Ask, found: Experiment, row: ArmCost) -> ArmCostLine:
    clause = Clause("variant", (Pattern((f"{found.name}={row.arm}",)),))
    query = ask.query.without("variant").and_(Query((clause,)))
    return ArmCostLine(row=row, href=ask.link("/round-trips", query))


def _arm_line(ask: Ask, found: Experiment, arm: str) -> ArmLine:
    balance = found.balance
    total = sum(balance.conversations.values())
    clause = Clause("variant", (Pattern((f"{found.name}={arm}",)),))
    return ArmLine(
        name=arm,
        control=arm == found.control,
        conversations=balance.conversations[arm],
        expected=balance.expected[arm],
        share=balance.conversations[arm] / total if total else 0.0,
        href=ask.link("/failures", ask.query.without("variant").and_(Query((clause,)))),
    )


def _balance(balance: Balance) -> str:
    if balance.p_value is None:
        return "Not enough data to check the assignment."
    p = "p < 0.001" if balance.p_value < MISMATCH else f"p = {decimal(balance.p_value, 3)}"
    p = p.replace(" ", "\u00a0")  # in one line
    if balance.mismatch:
        return (
            f"Sample ratio mismatch ({p}): equal shares would hardly ever come out like this. Find "
            "out why conversations are missing from an arm before you believe any effect below."
        )
    return f"The assignment is as even as chance makes it ({p}, chi-squared test of equal shares)."


def _sentence(found: Experiment, first: ArmEffect | None) -> str:
    if first is None:
        return "Only one arm has been seen: there is nothing to compare it with."
    if found.balance.mismatch:
        return "The assignment is broken, so the figures below compare unlike conversations."
    rates = (
        f"{percent(first.treatment)} with {first.arm}, {percent(first.control)} with "
        f"{found.control}"
    )
    if first.verdict == "improved":
        return f"{first.arm} helps: the failure rate is {rates}."
    if first.verdict == "worse":
        return f"{first.arm} makes it worse: the failure rate is {rates}."
    if first.verdict == "no detectable change":
        return f"No detectable change so far: the failure rate is {rates}."
    return f"Not enough data yet: the failure rate is {rates}."


def _certainty(found: Experiment, first: ArmEffect | None, pace: float) -> str:
    if first is None or first.always is None or first.difference is None:
        return "Assignment is random per conversation, so a difference is the effect of the arm."
    return (
        f"The difference is {points(first.difference)}; its {found.confidence:.0%} always-valid "
        f"interval is {points(first.always.low)} to {points(first.always.high)}, valid no "
        f"matter how often you check.{_still(_to_go(found, first, pace))}"
    )


def _still(to_go: str) -> str:
    if to_go in {"", "decided"}:
        return ""
    return f" If this difference is the true one, it takes {to_go}, to tell it from chance."


def _pace(ask: Ask, found: Experiment, drawn: FailuresOverTime) -> float:
    """Return conversations per day since the first call of the trial that the window shows."""
    first = next((at for at, calls in zip(drawn.starts, drawn.calls, strict=True) if calls), None)
    if first is None or ask.now <= first:
        return 0.0
    return sum(found.balance.conversations.values()) * DAY / (ask.now - first)


def _to_go(found: Experiment, effect: ArmEffect, pace: float) -> str:
    """Return how long until the always-valid interval would decide, if the difference is true."""
    if effect.difference is None or effect.always is None:
        return ""
    here = found.balance.conversations
    both = here[effect.arm] + here[found.control]
    more = conversations_to_go(effect.difference, effect.always, both, confidence=found.confidence)
    if more == 0:
        return "decided"
    if more is None:
        return f"more than {FARTHEST} times as many conversations"
    share = both / max(1, sum(here.values()))
    days = more / (pace * share) if pace else 0.0
    if not 0 < days <= _LONGEST_DAYS:
        return plural(more, "more conversation")
    time = "less than a day" if days < 1 else plural(round(days), "day")
    return f"{plural(more, 'more conversation')}, {time} at this pace"


def _metrics(found: Experiment, pace: float) -> tuple[ArmMetricLine, ...]:
    drawn = _drawn(found.effects)
    lines = []
    for index, each in enumerate(found.effects):
        title, meaning = TITLES[each.metric]
        lines.append(
            ArmMetricLine(
                arm=each.arm,
                title=title,
                meaning=meaning,
                better=each.better,
                control=shown_value(each.metric, each.control),
                treatment=shown_value(each.metric, each.treatment),
                n_control=counted(each.n_control, each.unit),
                n_treatment=counted(each.n_treatment, each.unit),
                difference=shown_difference(each.metric, each.difference),
                fixed=_ends(each, each.fixed),
                always=_ends(each, each.always),
                fixed_drawn=drawn[2 * index],
                always_drawn=drawn[2 * index + 1],
                verdict=each.verdict,
                to_go=_to_go(found, each, pace),
                adjusted=_adjusted(each),
            )
        )
    return tuple(lines)


def _drawn(effects: tuple[ArmEffect, ...]) -> tuple[Estimate | None, ...]:
    """Draw both intervals of each metric, those of one metric on one scale."""
    groups = [
        [
            (each.difference, interval.low, interval.high) if interval else (None, None, None)
            for interval in (each.fixed, each.always)
        ]
        for each in effects
    ]
    return tuple(
        drawn
        for values in scaled(groups, [each.metric in SHARES for each in effects])
        for drawn in values
    )


def _adjusted(each: ArmEffect) -> str:
    """Return the effect adjusted for what conversations did before they got their arm."""
    if each.adjusted is None:
        return ""
    return (
        f"{_ends(each, each.adjusted.always)} adjusted for "
        f"{plural(each.adjusted.conversations, 'conversation')} seen before the trial "
        f"({percent(each.adjusted.variance_removed)} less variance)"
    )


def _ends(each: ArmEffect, interval: Interval | None) -> str:
    if interval is None:
        return ""
    low, high = (shown_difference(each.metric, end) for end in (interval.low, interval.high))
    return f"{low} to {high}"
