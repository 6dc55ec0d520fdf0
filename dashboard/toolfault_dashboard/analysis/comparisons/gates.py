"""The gate of ``toolfault compare --fail-if``: a condition on a comparison, as CI states it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from toolfault_dashboard.analysis.comparisons.by_code import CodeEffect
from toolfault_dashboard.analysis.comparisons.effect import Effect
from toolfault_dashboard.analysis.comparisons.metrics import METRICS

__all__ = ["Gate", "GateError", "parse_gate"]

_NAMES: Final = tuple(metric.name for metric in METRICS)
_STATES: Final = {
    "worse": ("worse",),
    "improved": ("improved",),
    "not improved": ("worse", "no detectable change", "not enough data"),
    "undecided": ("not enough data",),
}
_STATED = re.compile(
    r"(?P<of>any|code:(?P<code>\S+)|[a-z_]+)\s+(?:is\s+)?"
    r"(?P<state>worse|improved|not improved|undecided)"
)
_BOUNDED = re.compile(
    r"(?P<of>[a-z_]+)\s*(?P<sign>>=|<=|>|<)\s*(?P<bound>\d+(?:\.\d+)?)(?P<percent>%?)"
)


class GateError(ValueError):
    """The condition cannot be read; the text says how to write one."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition under which a comparison fails."""

    text: str
    of: str  # metric, "any" or "code:NAME"
    states: tuple[str, ...] = ()
    sign: str = ""
    bound: float = 0.0

    def holds(self, effect: Effect, codes: Sequence[CodeEffect]) -> bool:
        """Say whether the condition holds, so that the gate is shut."""
        if self.of == "any":
            # A figure of failures alone may get worse because the easy ones are gone.
            verdicts = [each.verdict for each in effect.metrics if not each.conditional]
            verdicts += [row.verdict for row in codes]
            return any(verdict in self.states for verdict in verdicts)
        if self.of.startswith("code:"):
            name = self.of.removeprefix("code:")
            return any(row.verdict in self.states for row in codes if row.code == name)
        metric = next(metric for metric in effect.metrics if metric.metric == self.of)
        if self.states:
            return metric.verdict in self.states
        if metric.after is None:
            return False
        return {
            ">": metric.after > self.bound,
            ">=": metric.after >= self.bound,
            "<": metric.after < self.bound,
            "<=": metric.after <= self.bound,
        }[self.sign]


def parse_gate(text: str) -> Gate:
    """Read a condition on a comparison.

    Either a verdict (``failure_rate worse``, ``any worse``, ``code:timeout worse``,
    ``recovery_rate not improved``) or a bound on the value after (``failure_rate > 5%``). ``any``
    means every code and every metric that is not about failures alone (``Metric.conditional``).

    Raises:
        GateError: The text is none of these.
    """
    words = " ".join(text.lower().split())
    stated = _STATED.fullmatch(words)
    if stated is not None and (
        stated["of"] == "any" or stated["code"] is not None or stated["of"] in _NAMES
    ):
        return Gate(text, stated["of"], states=_STATES[stated["state"]])
    bounded = _BOUNDED.fullmatch(words)
    if bounded is not None and bounded["of"] in _NAMES:
        bound = float(bounded["bound"]) / (100 if bounded["percent"] else 1)
        return Gate(text, bounded["of"], sign=bounded["sign"], bound=bound)
    raise GateError(
        "Write --fail-if as 'failure_rate worse', 'any worse', 'code:timeout worse' or"
        f" 'failure_rate > 5%'; metrics are {', '.join(_NAMES)}."
    )
