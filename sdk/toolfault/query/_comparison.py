"""Before against after, as the server compared it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolfault.query._rows import Row, frame_of

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["Comparison"]


class Comparison:
    """One comparison; iterating gives its metrics.

    Attributes:
        verdict: ``improved``, ``worse``, ``no detectable change`` or ``not enough data``: of the
            failure rate.
        metrics: Before, after, difference with interval, verdict: one row for each metric.
        codes: The same for each code, false discoveries controlled.
        control: The failure rate of the tools that the change did not touch; None without any.
        answer: The whole answer of the server.
    """

    def __init__(self, answer: Mapping[str, Any]) -> None:
        effect = answer["effect"]
        self.answer = answer
        self.verdict: str = effect["verdict"]
        self.metrics: Sequence[Row] = effect["metrics"]
        self.codes: Sequence[Row] = answer["codes"]
        self.control: Row | None = answer["control"]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.metrics)

    def __repr__(self) -> str:
        return f"Comparison({self.verdict!r})"

    def to_frame(self) -> DataFrame:
        """Return the metrics as a pandas frame.

        Raises:
            ModuleNotFoundError: pandas is not installed.
        """
        return frame_of(self.metrics)
