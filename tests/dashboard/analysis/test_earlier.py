"""Variance reduction from before the trial: a regression, unbiased, narrower, honest."""

from __future__ import annotations

import random

import pytest
from tests.dashboard.analysis.sampled import cell

from toolfault_dashboard.analysis.comparisons.cohorts import Cohort, Folded
from toolfault_dashboard.analysis.comparisons.earlier import adjusted
from toolfault_dashboard.analysis.comparisons.estimates import crude
from toolfault_dashboard.analysis.comparisons.experiments import arm_effects
from toolfault_dashboard.analysis.comparisons.metrics import METRICS

RATE = METRICS[0]


def _arms(
    rng: random.Random, conversations: int, *, effect: float = 0.0, lasting: bool = True
) -> tuple[Cohort, Cohort, dict[str, tuple[int, int]]]:
    """Two arms of conversations that differ, with what each did before.

    Args:
        rng: Source of chance.
        conversations: Of each arm.
        effect: Added to every failure rate of the treatment.
        lasting: Whether a conversation has the same rate before the trial and in it.
    """
    cohorts: list[list[tuple[str, int, int]]] = [[], []]
    earlier: dict[str, tuple[int, int]] = {}
    for number in range(2 * conversations):
        arm = number % 2
        own = rng.uniform(0.05, 0.75)
        before = own if lasting else rng.uniform(0.05, 0.75)
        calls, past = rng.randrange(2, 15), rng.randrange(5, 30)
        if number % 5:
            earlier[str(number)] = (sum(rng.random() < before for _ in range(past)), past)
        failures = sum(rng.random() < own + effect * arm for _ in range(calls))
        cohorts[arm].append((str(number), calls, failures))
    control, treatment = (
        Cohort(name, "", tuple(cell(key, calls=y, failures=x) for key, y, x in rows))
        for name, rows in zip(("control", "treatment"), cohorts, strict=True)
    )
    return control, treatment, earlier


def test_it_is_a_regression_on_the_time_before() -> None:
    """With one call per conversation it is the arm's coefficient of a least squares fit."""
    sm = pytest.importorskip("statsmodels.api")
    np = pytest.importorskip("numpy")
    rng = random.Random(3)
    outcomes, arms, past = [], [], []
    for number in range(300):
        own = rng.random()
        past.append((sum(rng.random() < own for _ in range(10)), 10))
        outcomes.append(int(rng.random() < own))
        arms.append(number % 2)
    cells = [cell(str(n), calls=1, failures=failed) for n, failed in enumerate(outcomes)]
    cohorts = [Cohort(str(arm), "", tuple(cells[arm::2])) for arm in (0, 1)]
    earlier = {str(n): each for n, each in enumerate(past)}
    found = adjusted(RATE, cohorts[0], cohorts[1], earlier)
    assert found is not None
    assert found.conversations == 300
    usual = sum(x for x, _ in past) / sum(y for _, y in past)
    columns = np.column_stack([np.ones(300), np.array(arms), [x - usual * y for x, y in past]])
    fit = sm.OLS(np.array(outcomes, dtype=float), columns).fit()
    assert found.control.value is not None
    assert found.treatment.value is not None
    assert found.treatment.value - found.control.value == pytest.approx(fit.params[1], abs=1e-12)
    # The variances are those of each arm by itself, which the pooled one of the fit lies between.
    assert found.control.variance is not None
    assert found.treatment.variance is not None
    pooled = float(fit.bse[1]) ** 2
    assert found.control.variance + found.treatment.variance == pytest.approx(pooled, rel=0.03)


def test_a_lasting_habit_makes_the_interval_narrower() -> None:
    """Where conversations stay as they were much of the variance goes; else next to none does."""
    rng = random.Random(5)
    effects = arm_effects(*(cohorts := _arms(rng, 200))[:2], earlier=cohorts[2])
    first = effects[0].adjusted
    assert first is not None
    assert effects[0].always is not None
    assert first.variance_removed > 0.15
    assert first.always.high - first.always.low < effects[0].always.high - effects[0].always.low
    assert first.conversations == 320
    control, treatment, unrelated = _arms(rng, 200, lasting=False)
    nothing = adjusted(RATE, control, treatment, unrelated)
    assert nothing is not None
    assert abs(nothing.variance_removed) < 0.05
    assert adjusted(RATE, control, treatment, {}) is None
    assert arm_effects(control, treatment)[0].adjusted is None


def test_conversations_that_are_only_counted_stay_in() -> None:
    """Folding away conversations without a failure or a past changes neither value nor variance."""
    rng = random.Random(9)
    control, treatment, earlier = _arms(rng, 60)
    quiet = [c for c in control.cells if not c.failures]
    for each in quiet:
        earlier.pop(each.conversation, None)
    folded = Cohort(
        "control",
        "",
        tuple(c for c in control.cells if c.failures),
        Folded(
            {("t", "m", "a"): int(sum(c.calls for c in quiet))},
            len(quiet),
            float(sum(c.calls**2 for c in quiet)),
        ),
    )
    whole, less = (adjusted(RATE, cohort, treatment, earlier) for cohort in (control, folded))
    assert whole is not None
    assert less is not None
    assert less.control.value == pytest.approx(whole.control.value, rel=1e-9)
    assert less.control.variance == pytest.approx(whole.control.variance, rel=1e-9)
    assert less.variance_removed == pytest.approx(whole.variance_removed, rel=1e-9)


@pytest.mark.parametrize("rounds", [300, pytest.param(2_000, marks=pytest.mark.long)])
def test_the_adjusted_intervals_are_honest_and_find_more(rounds: int) -> None:
    """A/A trials are called wrong in at most 6 %, and a real effect is seen more often."""
    rng = random.Random(17)
    wrong = seen = plainly = 0
    for _ in range(rounds):
        control, treatment, earlier = _arms(rng, 100)
        found = arm_effects(control, treatment, earlier=earlier)[0].adjusted
        assert found is not None
        wrong += not found.fixed.low <= 0 <= found.fixed.high
        control, treatment, earlier = _arms(rng, 100, effect=-0.05)
        effect = arm_effects(control, treatment, earlier=earlier)[0]
        assert effect.adjusted is not None
        assert effect.fixed is not None
        seen += effect.adjusted.fixed.high < 0
        plainly += effect.fixed.high < 0
        assert crude(RATE, control).value == effect.control
    assert wrong / rounds <= (0.06 if rounds >= 2_000 else 0.08)
    assert seen > plainly * 1.15
