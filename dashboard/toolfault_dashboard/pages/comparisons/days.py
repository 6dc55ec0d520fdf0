"""A trial day by day: the always-valid interval as it was known at the end of each day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated as Doc
from typing import Final

from fastapi import HTTPException

from toolfault_dashboard import queries
from toolfault_dashboard.analysis.comparisons.experiments import Experiment
from toolfault_dashboard.analysis.comparisons.metrics import METRICS
from toolfault_dashboard.analysis.rates import Interval
from toolfault_dashboard.formats import count, day, plural
from toolfault_dashboard.pages.comparisons.effects import TITLES, shown_difference
from toolfault_dashboard.pages.shared.ask import Ask
from toolfault_dashboard.pages.shared.frame import Link
from toolfault_dashboard.pages.shared.table import Column, Drawn, Table
from toolfault_dashboard.queries.comparisons.trials import TrialLook, TrialLooks
from toolfault_dashboard.queries.lists.streams import RowStream
from toolfault_dashboard.whiskers import Reading, WhiskerChart, whisker_chart

__all__ = ["DAYS", "days_of"]


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
    looks: Doc[Drawn, "The table behind the drawing, newest first."]
    metrics: Doc[tuple[Link, ...], "The metrics to choose from."]
    arms: Doc[tuple[tuple[str, int], ...], "Each arm with its colour and pattern."]
    csv: Doc[str, "The looks as CSV."]


_METRICS: Final = {each.name: each for each in METRICS}


def _asked(ask: Ask) -> TrialLooks | None:
    given = ask.request.query_params
    wanted = given.get("metric", "")
    metric = next((each.name for each in METRICS if each.name == wanted), METRICS[0].name)
    try:
        return queries.experiment_looks(
            ask.conn, ask.scope, given.get("name", ""), control=given.get("control") or None,
            metric=metric,
        )  # fmt: skip
    except ValueError as error:
        raise HTTPException(404, str(error)) from None


def days_of(ask: Ask, found: Experiment) -> DaysContext | None:
    """Return the days of the trial; None unless the address asks for them.

    Each look costs what the whole trial costs, so they are read when somebody wants them.
    """
    if "days" not in ask.request.query_params or (looked := _asked(ask)) is None:
        return None
    metric = looked.metric
    arms = tuple(
        (arm, number) for number, arm in enumerate((a for a in found.arms if a != found.control), 1)
    )
    series = dict(arms)
    moments = sorted({look.until_at for look in looked.looks})
    readings = [
        Reading(
            moment=moments.index(look.until_at),
            series=series[look.arm],
            value=look.difference,
            low=look.always.low,
            high=look.always.high,
            title=f"{_day(look.until_at, ask.now)}, {look.arm}:"
            f" {shown_difference(metric, look.difference)}, {_ends(metric, look.always)}",
        )
        for look in looked.looks
        if look.always is not None and look.difference is not None
    ]
    title, _ = TITLES[metric]
    return DaysContext(
        title=title,
        better=_METRICS[metric].better,
        every="every day" if looked.days == 1 else f"every {plural(looked.days, 'day')}",
        chart=whisker_chart(
            [_day(each, ask.now) for each in moments],
            readings,
            shown=lambda value: shown_difference(metric, value),
        ),
        looks=DAYS.drawn(_line(metric, look, series[look.arm]) for look in reversed(looked.looks)),
        metrics=tuple(
            Link(
                TITLES[each.name][0],
                ask.here(metric="" if each is METRICS[0] else each.name) + "#days",
                each.name == metric,
            )
            for each in METRICS
        ),
        arms=arms,
        csv=ask.link("/experiment-days.csv", name=found.name, control=found.control, metric=metric),
    )


def _day(until: int, now: int) -> str:
    """Name the day that a look ends; midnight belongs to the day before it."""
    return day(datetime.fromtimestamp((until - 1) / 1_000_000, UTC), now)


def _ends(metric: str, interval: Interval | None) -> str:
    if interval is None:
        return ""
    low, high = (shown_difference(metric, end) for end in (interval.low, interval.high))
    return f"{low} to {high}"


def _line(metric: str, look: TrialLook, series: int) -> LookLine:
    always = look.always
    return LookLine(
        until_at=look.until_at,
        arm=look.arm,
        series=series,
        n=f"{count(look.n_control)} and {count(look.n_treatment)}",
        difference=shown_difference(metric, look.difference),
        always=_ends(metric, always),
        fixed=_ends(metric, look.fixed),
        decided=always is not None and (always.low > 0 or always.high < 0),
    )


_NUMBERS: Final = (
    "control", "treatment", "difference", "fixed_low", "fixed_high", "always_low", "always_high",
)  # fmt: skip


def _look_stream(ask: Ask) -> RowStream:
    """Return the looks at the trial that the address names; an interval is two columns."""
    looked = _asked(ask)
    if looked is None:
        raise HTTPException(404, "There is no experiment of this name in this time.")
    columns = ("until_at", "metric", "arm", "n_control", "n_treatment", *_NUMBERS)
    return RowStream(
        columns=columns,
        times=frozenset({"until_at"}),
        rows=iter([_cells(looked, look) for look in looked.looks]),
        kinds=dict.fromkeys(_NUMBERS, "number")
        | dict.fromkeys(("n_control", "n_treatment"), "integer"),
    )


def _cells(looked: TrialLooks, look: TrialLook) -> tuple[object, ...]:
    ends = [
        end
        for interval in (look.fixed, look.always)
        for end in ((interval.low, interval.high) if interval else (None, None))
    ]
    return (
        look.until_at, looked.metric, look.arm, look.n_control, look.n_treatment, look.control,
        look.treatment, look.difference, *ends,
    )  # fmt: skip


DAYS: Final = Table(
    Column("until_at", "Until", "moment"),
    Column("arm", "Arm", "whole_code"),
    Column("n", "n of control and arm", number=True),
    Column("difference", "Difference", number=True),
    Column("always", "Always-valid", "plain", number=True),
    Column("fixed", "Fixed-horizon", "plain", number=True),
    Column("decided", "Decided", "decided", hidden=True),
    file="experiment-days", rows=_look_stream,
)  # fmt: skip
