"""The CI gate."""

from __future__ import annotations

import random

import numpy as np
import pytest
from benchmarks.comparisons.false_verdicts import measured
from tests.dashboard.analysis.sampled import cell, cohort

from toolfault_dashboard.analysis.comparisons.by_code import compare_by_code
from toolfault_dashboard.analysis.comparisons.cohorts import Cohort
from toolfault_dashboard.analysis.comparisons.effect import compare
from toolfault_dashboard.analysis.comparisons.family import adjusted
from toolfault_dashboard.analysis.comparisons.gates import GateError, parse_gate
from toolfault_dashboard.analysis.comparisons.metrics import METRICS


@pytest.mark.parametrize(
    ("text", "shut"),
    [
        ("failure_rate worse", True),
        ("Failure_Rate is worse", True),
        ("any worse", True),
        ("failure_rate improved", False),
        ("failure_rate not improved", True),
        ("recovery_rate undecided", False),
        ("failure_rate > 30%", True),
        ("failure_rate > 0.9", False),
        ("first_try_success < 50%", False),
        ("code:boom worse", True),
        ("code:other worse", False),
    ],
)
def test_gates_shut_when_they_say(text: str, shut: bool) -> None:
    """A gate is shut exactly when what it states holds."""
    rng = random.Random(1)
    before, after = cohort(rng, 200, {"t": 0.2}), cohort(rng, 200, {"t": 0.5})
    failures = tuple(
        {"boom": {cell.conversation: cell.failures for cell in each.cells if cell.failures}}
        for each in (before, after)
    )
    found, codes = compare_by_code(before, after, (failures[0], failures[1]))
    assert parse_gate(text).holds(found, codes) is shut


def test_mending_the_easy_failures_shuts_no_gate() -> None:
    """When failures that cost one round trip vanish and dear ones stay, nothing got worse."""

    def made(easy: int) -> Cohort:
        # Every conversation: two operations; the easy ones fail once, every third is dear.
        cells = []
        for number in range(150):
            failed = 1 if number < easy else 4 if number % 3 == 0 else 0
            cells.append(cell(str(number), calls=2 + failed, failures=failed, round_trips=failed))
        return Cohort("x", "", tuple(cells))

    before, after = made(100), made(5)
    found = {each.metric: each for each in compare(before, after).metrics}
    assert found["round_trips_per_operation"].verdict != "worse"
    (dear,) = (each for each in METRICS if each.name == "round_trips_per_failure")
    assert dear.conditional
    assert not parse_gate("any worse").holds(compare(before, after), ())


@pytest.mark.parametrize("text", ["", "worse", "colour worse", "failure_rate better", "any > 3"])
def test_what_is_no_gate_is_refused(text: str) -> None:
    """A gate that cannot be read is an error, never an open gate."""
    with pytest.raises(GateError):
        parse_gate(text)


def test_false_discoveries_among_codes_are_few() -> None:
    """Of 40 codes without any change hardly one gets a verdict; taken one by one several would."""
    rng = random.Random(4)
    wrong = alone = 0
    for _ in range(20):
        before, after = cohort(rng, 150, {"t": 0.3}), cohort(rng, 150, {"t": 0.3})
        failures = []
        for each in (before, after):
            codes: dict[str, dict[str, int]] = {}
            for one in each.cells:
                for _ in range(int(one.failures)):
                    own = codes.setdefault(f"c{rng.randrange(40)}", {})
                    own[one.conversation] = own.get(one.conversation, 0) + 1
            failures.append(codes)
        _, rows = compare_by_code(before, after, (failures[0], failures[1]))
        wrong += any(row.verdict in {"improved", "worse"} for row in rows)
        alone += any(not row.low <= 0 <= row.high for row in rows)
    assert wrong <= 3
    assert alone >= 8


@pytest.mark.parametrize(
    ("first", "others", "corrected"),
    [
        # No answer to the first question: half of the level is left for the others.
        (0.2, [0.01, 0.04, None, 0.03], [0.4, 0.06, 0.12, None, 0.12]),
        # An answer leaves them all of it, and none gets a smaller p-value than the first.
        (0.001, [0.01, 0.04, None, 0.03], [0.002, 0.03, 0.06, None, 0.06]),
        (0.02, [0.001, 0.9], [0.04, 0.004, 0.9]),
        (None, [0.01, 0.04], [None, 0.02, 0.04]),
        (0.9, [], [1.0]),
    ],
)
def test_one_correction_covers_all_questions(
    first: float | None, others: list[float | None], corrected: list[float | None]
) -> None:
    """The first question has half of the level for itself, the others share the rest after Holm."""
    assert adjusted(first, others) == pytest.approx(corrected)


def test_four_failures_against_none_are_not_enough_data() -> None:
    """With 4 of 10 conversations failing before and none of 10 after, no code gets a verdict."""
    before = Cohort("x", "", [cell(str(n), calls=8, failures=int(n < 4)) for n in range(10)])
    after = Cohort("x", "", [cell(str(n), calls=8, failures=0) for n in range(10)])
    _, (row,) = compare_by_code(before, after, ({"boom": {str(n): 1 for n in range(4)}}, {}))
    assert (row.verdict, row.adjusted_p) == ("not enough data", None)


def test_a_code_needs_five_expected_failing_conversations_on_the_smaller_side() -> None:
    """Of 440 conversations 50 fail: 4.5 of 40 are expected. Of 60 it is 5.5, and judged."""
    after = Cohort("x", "", [cell(str(n), calls=8, failures=0) for n in range(40)])
    verdicts = []
    for failing in (50, 60):
        before = Cohort(
            "x", "", [cell(str(n), calls=8, failures=4 * (n < failing)) for n in range(400)]
        )
        failures = {"boom": {str(n): 4 for n in range(failing)}}
        _, (row,) = compare_by_code(before, after, (failures, {}))
        verdicts.append(row.verdict)
    assert verdicts[0] == "not enough data"
    assert verdicts[1] != "not enough data"


@pytest.mark.long  # sixty comparisons would not show that the half of a variance is missing
@pytest.mark.parametrize("rounds", [1_000])
@pytest.mark.parametrize("sizes", [(400, 40), (40, 400)])
def test_sides_of_unequal_size_rarely_get_a_false_verdict(
    sizes: tuple[int, int], rounds: int
) -> None:
    """Without any change at most 5 % of comparisons say that any metric or any code changed."""
    noise = np.random.default_rng(16)
    setting = (*sizes, 0.5, 8, 6)
    *_, anything, gate, _power = measured(noise, setting, rounds)
    # Two standard errors above what is promised: a run is a sample, too.
    most = 0.05 + 2 * (0.05 * 0.95 / rounds) ** 0.5
    assert anything <= most
    assert gate <= most
