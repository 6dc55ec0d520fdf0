"""The tables of the documentation are what was measured."""

from __future__ import annotations

import json

import pytest
from tests.integrations.compare import COMPARED, PAGE, measured, written
from tests.integrations.environments import is_made
from tests.integrations.observe import OBSERVERS
from tests.integrations.scenarios import SCENARIOS

STORED = json.loads(COMPARED.read_text(encoding="utf-8"))


def test_the_page_says_what_was_measured() -> None:
    """The tables of docs/frameworks.md are those that the stored results make."""
    page = PAGE.read_text(encoding="utf-8")

    assert STORED.keys() == OBSERVERS.keys()
    assert page == written(page, STORED)


@pytest.mark.parametrize("driver", OBSERVERS)
def test_no_scenario_is_left_out_in_silence(driver: str) -> None:
    """Every scenario is compared, or the reason is given why the framework does not have it."""
    rows = {scenario.name for scenario in SCENARIOS if not scenario.decorated}

    assert STORED[driver].keys() == rows
    assert all("toolfault" in seen or seen["lacks"] for seen in STORED[driver].values())


@pytest.mark.parametrize("driver", OBSERVERS)
def test_no_call_is_recorded_wrongly(driver: str) -> None:
    """In every scenario toolfault has one record per call, with the right outcome and all faults.

    What is wrong would be in bold.
    """
    for scenario, seen in STORED[driver].items():
        for line in seen.get("toolfault", ()):
            assert "**" not in line, scenario
            faults = [part.split() for part in line.split(", ") if part.endswith("faults")]
            assert all(named == of for named, _, of, _ in faults), scenario


@pytest.mark.long
@pytest.mark.parametrize("driver", OBSERVERS)
def test_the_stored_results_are_those_of_a_run(driver: str) -> None:
    """Running the comparison again gives what is stored."""
    environment = f"{driver.replace('_', '-')}-observed"
    if not is_made(environment):
        pytest.skip(f"not made: python -m tests.integrations.environments {environment}")

    assert measured(driver) == STORED[driver]
