"""A comparison as rows of text: what the command prints and a person pastes."""

from __future__ import annotations

from toolfault_dashboard.analysis.comparisons.effect import Effect, MetricEffect
from toolfault_dashboard.analysis.comparisons.experiments import ArmComparison, ArmEffect
from toolfault_dashboard.exports.markdown import markdown_table, markdown_text
from toolfault_dashboard.queries.comparisons.effects import Comparison

__all__ = [
    "HEADINGS",
    "TRIAL_HEADINGS",
    "TRIAL_TITLE",
    "balance_sentence",
    "comparison_lines",
    "comparison_markdown",
    "metric_cells",
    "overlap_sentence",
    "trial_lines",
]

TRIAL_TITLE = "Assigned at random: valid no matter how often you check"
TRIAL_HEADINGS = ("metric", "difference", "always-valid interval", "verdict")

# Where the mix of tools, models and agents shifted, the difference is not after - before.
HEADINGS = (
    "metric",
    "before",
    "after",
    "difference at the same mix",
    "95% interval",
    "n",
    "verdict",
)

_SHARES = {"failure_rate", "first_try_success", "recovery_rate"}


def metric_cells(metric: MetricEffect) -> list[object]:
    """Return one line of the table for *metric*; its columns are ``HEADINGS``."""
    return [
        metric.metric.replace("_", " "),
        _value(metric, metric.before),
        _value(metric, metric.after),
        _difference(metric, metric.difference),
        _interval(metric),
        f"{metric.n_before} / {metric.n_after} {metric.unit}",
        metric.verdict,
    ]


def comparison_lines(effect: Effect) -> list[list[object]]:
    """Return the lines of the table of all metrics."""
    lines = [metric_cells(metric) for metric in effect.metrics]
    for metric, cells in zip(effect.metrics, lines, strict=True):
        if metric.metric == "recovery_rate" and any(effect.open_chains):
            still = " / ".join(str(each) for each in effect.open_chains)
            cells[5] = f"{cells[5]}, {still} open"
    return lines


def comparison_markdown(found: Comparison) -> str:
    """Return a comparison as Markdown: the verdict, the metrics and the codes."""
    effect = found.effect
    cohorts = " against ".join(
        f"{markdown_text(each.label)} ({each.calls} calls, {each.conversations} conversations)"
        for each in (effect.before, effect.after)
    )
    overlap = overlap_sentence(found)
    parts = [
        f"**{effect.verdict}**: {cohorts}\n",
        *([f"{overlap}\n"] if overlap else []),
        markdown_table(HEADINGS, comparison_lines(effect)),
    ]
    if found.trial is not None:
        parts.append(f"{TRIAL_TITLE}. {balance_sentence(found.trial)}\n")
        parts.append(markdown_table(TRIAL_HEADINGS, trial_lines(found.trial)))
    if found.codes:
        codes = [
            [row.code, row.before.count, row.after.count, f"{row.difference:+.2%}", row.verdict]
            for row in found.codes
        ]
        headings = ("code", "before", "after", "difference of rates", "verdict")
        parts.append(markdown_table(headings, codes))
    return "\n".join(parts)


def trial_lines(found: ArmComparison) -> list[list[object]]:
    """Return the always-valid intervals of all metrics; columns are ``TRIAL_HEADINGS``."""
    return [
        [
            effect.metric.replace("_", " "),
            _difference(effect, effect.difference),
            "–"
            if effect.always is None
            else f"{_difference(effect, effect.always.low)} to"
            f" {_difference(effect, effect.always.high)}",
            effect.verdict,
        ]
        for effect in found.effects
    ]


def balance_sentence(found: ArmComparison) -> str:
    """Say how many conversations each arm got and whether that can be chance."""
    counts = ", ".join(f"{n} in {arm}" for arm, n in found.balance.conversations.items())
    if found.balance.mismatch:
        return (
            f"Conversations: {counts}. Far from even shares (p = {found.balance.p_value:.1g}): if"
            " even shares were meant, the assignment is broken and no figure here can be trusted."
        )
    return f"Conversations: {counts}, as even shares may give."


def overlap_sentence(found: Comparison) -> str:
    """Say how many calls are in both cohorts and what that means; empty where none is."""
    if not found.overlap:
        return ""
    calls = "1 call is" if found.overlap == 1 else f"{found.overlap:,} calls are"
    return (
        f"{calls} in both cohorts. The difference is smaller than it would be between separate"
        " cohorts; intervals and verdicts, which take them for separate, cannot be relied on."
    )


def _value(metric: MetricEffect, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1%}" if metric.metric in _SHARES else f"{value:.2f}"


def _difference(metric: MetricEffect | ArmEffect, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value * 100:+.1f} pp" if metric.metric in _SHARES else f"{value:+.2f}"


def _interval(metric: MetricEffect) -> str:
    if metric.low is None or metric.high is None:
        return "–"
    return f"{_difference(metric, metric.low)} to {_difference(metric, metric.high)}"
