"""The metrics of a comparison as ratios of sums over conversations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

__all__ = ["METRICS", "Metric", "MetricName"]

MetricName = Literal[
    "failure_rate",
    "first_try_success",
    "recovery_rate",
    "round_trips_per_operation",
    "round_trips_per_failure",
    "seconds_lost_per_operation",
    "tokens_lost_per_chain",
]


@dataclass(frozen=True, slots=True)
class Metric:
    """One ratio: what is divided by what, and which way is better.

    Attributes:
        numerator: Of one cell, or of `columns.Columns`: added up per conversation. A conversation
            without a failure has none of it.
        denominator: Likewise.
        complement: Show 1 - ratio: what is added up is the opposite of what is shown.
        share: Whether the ratio is a share (0 to 1) of the denominator.
        of_calls: Whether folded successes belong to the denominator.
        conditional: Whether it is about failures only. It may get worse while everything improves:
            when the failures that were mended easily are gone, those left are the dear ones.
    """

    name: MetricName
    better: Literal["lower", "higher"]
    unit: str
    numerator: Callable[[Any], Any]
    denominator: Callable[[Any], Any]
    complement: bool = False
    share: bool = True
    of_calls: bool = False
    conditional: bool = False


def _first_try_failures(cell: Any) -> Any:
    return cell.chains + cell.unchained


def _operations(cell: Any) -> Any:
    # A retry is no operation of its own. A chain may have begun before the window and leave fewer:
    # the larger of the two, written so that it holds for columns too.
    operations, least = cell.calls - cell.round_trips, _first_try_failures(cell)
    return operations + (least - operations) * (least > operations)


METRICS: Final = (
    Metric(
        "failure_rate",
        "lower",
        "calls",
        lambda cell: cell.failures,
        lambda cell: cell.calls,
        of_calls=True,
    ),
    Metric(
        "first_try_success",
        "higher",
        "operations",
        _first_try_failures,
        _operations,
        complement=True,
        of_calls=True,
    ),
    Metric(
        "recovery_rate",
        "higher",
        "closed chains",
        lambda cell: cell.recovered,
        lambda cell: cell.closed,
        conditional=True,
    ),
    Metric(
        "round_trips_per_operation",
        "lower",
        "operations",
        lambda cell: cell.round_trips,
        _operations,
        share=False,
        of_calls=True,
    ),
    Metric(
        "round_trips_per_failure",
        "lower",
        "failures",
        lambda cell: cell.round_trips,
        lambda cell: cell.failures,
        share=False,
        conditional=True,
    ),
    Metric(
        "seconds_lost_per_operation",
        "lower",
        "timed operations",
        lambda cell: cell.time_lost_ms / 1_000 * (cell.timed > 0),
        lambda cell: _operations(cell) * (cell.timed > 0),
        share=False,
        of_calls=True,
    ),
    Metric(
        "tokens_lost_per_chain",
        "lower",
        "chains that report tokens",
        lambda cell: cell.tokens_lost,
        lambda cell: cell.with_tokens,
        share=False,
        conditional=True,
    ),
)
