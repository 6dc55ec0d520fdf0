"""The metrics of a comparison as ratios of sums over conversations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from toolfault_dashboard.analysis.sides import Cell

__all__ = ["METRICS", "Metric", "MetricName"]

MetricName = Literal[
    "failure_rate", "first_try_success", "recovery_rate", "round_trips_per_failure"
]


@dataclass(frozen=True, slots=True)
class Metric:
    """One ratio: what is divided by what, and which way is better.

    Attributes:
        numerator: Added up per conversation. A conversation without a failure has none of it.
        denominator: Added up per conversation.
        complement: Show 1 - ratio: what is added up is the opposite of what is shown.
        share: Whether the ratio is a share (0 to 1) of the denominator.
        of_calls: Whether folded successes belong to the denominator.
    """

    name: MetricName
    better: Literal["lower", "higher"]
    unit: str
    numerator: Callable[[Cell], int]
    denominator: Callable[[Cell], int]
    complement: bool = False
    share: bool = True
    of_calls: bool = False


def _first_try_failures(cell: Cell) -> int:
    return cell.chains + cell.unchained


def _operations(cell: Cell) -> int:
    # A retry is no operation of its own. A chain may have begun before the window and leave fewer.
    return max(cell.calls - cell.round_trips, _first_try_failures(cell))


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
    ),
    Metric(
        "round_trips_per_failure",
        "lower",
        "failures",
        lambda cell: cell.round_trips,
        lambda cell: cell.failures,
        share=False,
    ),
)
