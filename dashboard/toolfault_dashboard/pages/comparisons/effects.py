"""An effect in words: what changed, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated as Doc
from typing import Final

from toolfault_dashboard.analysis.comparisons.effect import FEWEST, Effect, MetricEffect
from toolfault_dashboard.analysis.comparisons.metrics import METRICS
from toolfault_dashboard.charts import Estimate, differences
from toolfault_dashboard.formats import count, decimal, percent, plural, points
from toolfault_dashboard.pages.shared.table import Column
from toolfault_dashboard.queries.comparisons.effects import Control

__all__ = [
    "METRIC_COLUMNS",
    "SHARES",
    "TITLES",
    "certainty",
    "control_sentence",
    "counted",
    "metric_lines",
    "scaled",
    "shown_difference",
    "shown_value",
    "verdict_sentence",
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


TITLES: Final = {
    "failure_rate": ("Failure rate", "Failures of all calls."),
    "first_try_success": ("First-try success", "Operations that needed no chain."),
    "recovery_rate": ("Recovery", "Closed chains that ended in a success of the same tool."),
    "round_trips_per_operation": (
        "Round trips per operation",
        "Retries per operation, which is a call that is no retry.",
    ),
    "round_trips_per_failure": (
        "Round trips per failure",
        "Retries that one failure costs. Rises when the easy failures are gone.",
    ),
    "seconds_lost_per_operation": (
        "Seconds lost per operation",
        "Time spent on failing calls and between attempts.",
    ),
    "tokens_lost_per_chain": (
        "Tokens lost per chain",
        "Of the chains whose calls reported tokens.",
    ),
}
METRIC_COLUMNS: Final = (
    Column("title", "Metric", "metric"),
    Column("before", "Before", "side", lambda row: (row.before, row.n_before), number=True),
    Column("after", "After", "side", lambda row: (row.after, row.n_after), number=True),
    Column("difference", "Difference", number=True, note="at the same mix",
           label="Difference at the same mix"),
    Column("interval", "95% interval around no difference", "difference", term="95% interval",
           label="95% interval", style="effect-cell"),
    Column("verdict", "Verdict", "detected", label=""),
)  # fmt: skip
"""Of every metric: both cohorts, the difference, its interval, the verdict."""
_SAME_MIX: Final = "At the same mix of tools, models and agents the"
SHARES: Final = ("failure_rate", "first_try_success", "recovery_rate")


def shown_value(metric: str, value: float | None) -> str:
    """Return a value of *metric* as a page shows it."""
    return percent(value) if metric in SHARES else decimal(value)


def shown_difference(metric: str, value: float | None) -> str:
    """Return a difference of *metric* as a page shows it, with its sign; zero has none."""
    if metric in SHARES:
        return points(value)
    text = decimal(value)
    return f"+{text}" if value is not None and value > 0 and text.strip("0.,") else text


def counted(number: int, unit: str) -> str:
    """Return what a value rests on: the units of metrics are written in the plural."""
    return plural(number, unit.removesuffix("s"), unit)


_Ends = tuple[float | None, float | None, float | None]


def scaled(
    groups: Sequence[Sequence[_Ends]], shares: Sequence[bool]
) -> list[tuple[Estimate | None, ...]]:
    """Draw the differences of each metric: all shares on one scale, any other on its own.

    Args:
        groups: The differences (value, low, high) of each metric.
        shares: Whether the metric is a share.
    """
    pairs = list(zip(groups, shares, strict=True))
    together = iter(differences([ends for group, share in pairs if share for ends in group]))
    return [
        tuple(next(together) for _ in group) if share else differences(group)
        for group, share in pairs
    ]


def metric_lines(effect: Effect) -> tuple[MetricLine, ...]:
    """Return every metric of *effect*, formatted and drawn.

    Shares have one scale, so that their bars compare; each mean has one of its own.
    """
    plots = scaled(
        [[(each.difference, each.low, each.high)] for each in effect.metrics],
        [each.metric in SHARES for each in effect.metrics],
    )
    lines = []
    for index, each in enumerate(effect.metrics):
        title, meaning = TITLES[each.metric]
        no_interval = each.low is None or each.high is None
        detectable = each.smallest_detectable
        waiting = _still_open(effect, each.metric)
        lines.append(
            MetricLine(
                title=title,
                meaning=meaning,
                before=shown_value(each.metric, each.before),
                after=shown_value(each.metric, each.after),
                n_before=counted(each.n_before, each.unit) + waiting[0],
                n_after=counted(each.n_after, each.unit) + waiting[1],
                difference=shown_difference(each.metric, each.difference),
                interval=""
                if no_interval
                else " to ".join(
                    shown_difference(each.metric, end) for end in (each.low, each.high)
                ),
                drawn=plots[index][0],
                better=each.better,
                detectable=shown_difference(each.metric, detectable).lstrip("+")
                if detectable is not None
                else "",
                method=each.method,
                verdict=each.verdict,
                too_little=_too_little(each) if each.verdict == "not enough data" else "",
            )
        )
    return tuple(lines)


def _too_little(metric: MetricEffect) -> str:
    """Return what a verdict on *metric* would need, in words."""
    of_calls = next(each.of_calls for each in METRICS if each.name == metric.metric)
    return (
        f"a verdict needs {FEWEST} {'conversations' if of_calls else metric.unit} in each cohort,"
        " with tools, models and agents that both cohorts have"
    )


def _still_open(effect: Effect, metric: str) -> tuple[str, str]:
    """Return what the recovery rate of each cohort does not know about yet."""
    if metric != "recovery_rate":
        return "", ""
    before, after = (f", {count(each)} open" if each else "" for each in effect.open_chains)
    return before, after


def verdict_sentence(effect: Effect) -> str:
    """Return the verdict on the failure rate as one sentence."""
    rate = effect.metrics[0]
    before, after = percent(rate.before), percent(rate.after)
    if effect.verdict in ("improved", "worse"):
        # The verdict is that of the same mix; the figures as they are may have moved otherwise.
        moved = "rose" if (rate.before or 0.0) < (rate.after or 0.0) else "fell"
        return f"The failure rate {moved} from {before} to {after}."
    if effect.verdict == "no detectable change":
        return f"No detectable change: the failure rate was {before} before and {after} after."
    return (
        "Not enough data: "
        f"{plural(effect.before.conversations, 'conversation')} before and "
        f"{count(effect.after.conversations)} after."
    )


def certainty(effect: Effect) -> str:
    """Return how sure the verdict is, as one sentence."""
    rate = effect.metrics[0]
    share = f"{effect.confidence:.0%}"
    if rate.low is None or rate.high is None:
        return _nothing_to_compare(effect)
    text = (
        f"{_SAME_MIX if effect.strata > 1 else 'The'} difference is "
        f"{points(rate.difference)}, {share} interval "
        f"{points(rate.low)} to {points(rate.high)}."
    )
    if effect.verdict == "no detectable change" and not rate.low <= 0 <= rate.high:
        return f"{text} It is not significant among all that this page compares at once."
    if effect.verdict == "not enough data":
        return f"{text} {_too_little(rate).capitalize()}."
    if effect.verdict == "no detectable change" and rate.smallest_detectable:
        least = points(rate.smallest_detectable).lstrip("+")
        text += f" A difference smaller than about {least} would have gone unseen."
    return text


def _nothing_to_compare(effect: Effect) -> str:
    empty = [not cohort.calls for cohort in (effect.before, effect.after)]
    if all(empty) and effect.excluded_untimed:
        without = plural(effect.excluded_untimed, "failure")
        return f"Neither cohort has a call with a time; {without} without one cannot be placed."
    if all(empty):
        return "Neither cohort has a call."
    if any(empty):
        return "One of the cohorts has no call."
    return "The cohorts have too few conversations, or no tool, model and agent that both have."


def control_sentence(control: Control | None) -> str:
    """Return how the tools fared that a change did not touch; empty where there is no such tool."""
    if control is None:
        return ""
    rate = control.metric
    text = (
        f"For comparison, all other tools ({counted(rate.n_before, rate.unit)} before,"
        f" {count(rate.n_after)} after): their failure rate was {percent(rate.before)} before"
        f" and {percent(rate.after)} after, {rate.verdict}"
    )
    if rate.low is not None and rate.high is not None:
        text += f" (95%: {points(rate.low)} to {points(rate.high)})"
    if rate.verdict in ("improved", "worse"):
        text += ". So something else happened at that time as well"
    return f"{text}."
