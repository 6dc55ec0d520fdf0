"""What a fix will save in a time to come, from what it would have saved in the past.

An interval of the past says how well the average week is known. The weeks to come have a chance of
their own beside that: the next one is not average. A *prediction interval* allows for both.

Savings come by conversation, in jumps of different size (a compound Poisson process, see `fixes`).
Its variance is that of a Poisson count in units of d = sum(s_i ** 2) / sum(s_i) calls, where s_i is
what conversation i would have saved; in these units the closed form for two Poisson counts with one
common rate applies, which holds for small counts too: K. Krishnamoorthy and J. Peng, Improved
closed-form prediction intervals for binomial and Poisson distributions, J. Statist. Plann.
Inference 141 (2011) 1709-1718 (the interval by the joint sampling approach). The unit is the
dispersion of P. McCullagh and J. A. Nelder, Generalized Linear Models, 2nd ed. (1989), 6.2.3.
"""

from __future__ import annotations

from math import sqrt

from toolfault_dashboard.analysis.rates import critical_value

__all__ = ["prediction_interval"]


def prediction_interval(
    saved: float, squares: float, weeks: float, *, ahead: float, confidence: float = 0.95
) -> tuple[float, float]:
    """Return between what and what the calls saved a week will lie, averaged over weeks to come.

    Args:
        saved: Calls that would have been saved in the past; more than 0.
        squares: Of what each conversation would have saved, added up; more than 0.
        weeks: Length of the past.
        ahead: Length of the time to come, in weeks: the shorter, the more is chance.
        confidence: Two-sided coverage.

    Returns:
        Lower and upper end in calls a week; the lower one is at least 0.

    Raises:
        ValueError: Nothing would have been saved, or a time has no length.
    """
    if min(saved, squares, weeks, ahead) <= 0:
        raise ValueError("Nothing can be predicted of nothing, or for no time.")
    unit, ratio, z = squares / saved, ahead / weeks, critical_value(confidence)
    expected = ratio * saved / unit  # in units, in all weeks to come
    middle = expected + z * z * ratio / 2
    reach = z * sqrt(expected * (1 + ratio) + (z * ratio / 2) ** 2)
    return max(0.0, middle - reach) * unit / ahead, (middle + reach) * unit / ahead
