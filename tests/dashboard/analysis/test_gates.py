"""The CI gate."""

from __future__ import annotations

import random

import pytest
from tests.dashboard.analysis.sampled import side

from toolfault_dashboard.analysis.by_code import effect_by_code
from toolfault_dashboard.analysis.effect import compare
from toolfault_dashboard.analysis.gates import GateError, parse_gate


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
            for cell in each.cells:
                for _ in range(cell.failures):
                    own = codes.setdefault(f"c{rng.randrange(40)}", {})
                    own[cell.conversation] = own.get(cell.conversation, 0) + 1
            failures.append(codes)
        rows = effect_by_code(before, after, (failures[0], failures[1]))
        wrong += any(row.verdict in {"improved", "worse"} for row in rows)
        alone += any(not row.low <= 0 <= row.high for row in rows)
    assert wrong <= 3
    assert alone >= 8
