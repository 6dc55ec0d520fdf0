"""The CI gate."""

from __future__ import annotations

import random

import pytest
from tests.dashboard.analysis.sampled import cell, side

from toolfault_dashboard.analysis.by_code import effect_by_code
from toolfault_dashboard.analysis.effect import compare
from toolfault_dashboard.analysis.gates import GateError, parse_gate
from toolfault_dashboard.analysis.metrics import METRICS
from toolfault_dashboard.analysis.sides import SideData


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
    before, after = side(rng, 200, {"t": 0.2}), side(rng, 200, {"t": 0.5})
    failures = tuple(
        {"boom": {cell.conversation: cell.failures for cell in each.cells if cell.failures}}
        for each in (before, after)
    )
    codes = effect_by_code(before, after, (failures[0], failures[1]))
    assert parse_gate(text).holds(compare(before, after), codes) is shut


def test_mending_the_easy_failures_shuts_no_gate() -> None:
    """When failures that cost one round trip vanish and dear ones stay, nothing got worse."""

    def made(easy: int) -> SideData:
        # Every conversation: two operations; the easy ones fail once, every third is dear.
        cells = []
        for number in range(150):
            failed = 1 if number < easy else 4 if number % 3 == 0 else 0
            cells.append(cell(str(number), calls=2 + failed, failures=failed, round_trips=failed))
        return SideData("x", "", tuple(cells))

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
        before, after = side(rng, 150, {"t": 0.3}), side(rng, 150, {"t": 0.3})
        failures = []
        for each in (before, after):
            codes: dict[str, dict[str, int]] = {}
            for one in each.cells:
                for _ in range(int(one.failures)):
                    own = codes.setdefault(f"c{rng.randrange(40)}", {})
                    own[one.conversation] = own.get(one.conversation, 0) + 1
            failures.append(codes)
        rows = effect_by_code(before, after, (failures[0], failures[1]))
        wrong += any(row.verdict in {"improved", "worse"} for row in rows)
        alone += any(not row.low <= 0 <= row.high for row in rows)
    assert wrong <= 3
    assert alone >= 8


def test_codes_are_adjusted_as_benjamini_and_hochberg_say() -> None:
    """Each p is that of its code alone times codes / rank, and none is below that of a worse."""
    rng = random.Random(6)
    before, after = side(rng, 150, {"t": 0.4}), side(rng, 150, {"t": 0.3})
    shares = [1, 2, 4, 8, 16]
    failures: list[dict[str, dict[str, int]]] = []
    for each in (before, after):
        codes: dict[str, dict[str, int]] = {}
        for one in each.cells:
            for _ in range(int(one.failures)):
                own = codes.setdefault(f"c{rng.choices(range(5), shares)[0]}", {})
                own[one.conversation] = own.get(one.conversation, 0) + 1
        failures.append(codes)
        shares.reverse()
    found = {row.code: row for row in effect_by_code(before, after, (failures[0], failures[1]))}
    alone = {}
    for code in found:
        own_failures = tuple({code: each.get(code, {})} for each in failures)
        (row,) = effect_by_code(before, after, (own_failures[0], own_failures[1]))
        assert row.adjusted_p is not None
        alone[code] = row.adjusted_p
    assert len(found) == 5
    least = 1.0
    for rank, code in reversed(list(enumerate(sorted(alone, key=lambda each: alone[each]), 1))):
        least = min(least, alone[code] * len(alone) / rank)
        assert found[code].adjusted_p == pytest.approx(least)
    assert {row.verdict for row in found.values()} > {"no detectable change"}
