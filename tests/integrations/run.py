"""Run the table through one framework: ``python -m tests.integrations.run NAME``, where it is.

Prints one JSON object: per scenario and mode, the outcome without toolfault, the outcome with it,
and the events. ``--first`` hooks the framework before it is imported, with the first few scenarios.
``--few`` plays all scenarios in one mode of the framework and four in the others.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import logging
import sys
import warnings
from typing import Any

from tests.integrations.example import OF_README, example, of_readme
from tests.integrations.native import handed_over
from tests.integrations.scenarios import SCENARIOS, Expected, Scenario

import toolfault
from toolfault.testing import capture_events

_FIRST = ("success", "three faults at once", "raise")
_IN_EVERY_MODE = (*_FIRST, "retry until success")


def main() -> None:
    """Run what the command line names and print the answer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--example", action="store_true", help="also that of the documentation")
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--only")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    if given.first:
        toolfault.instrument()
    driver = importlib.import_module(f"tests.integrations.drivers.{given.driver}")
    rows = [s for s in SCENARIOS if given.only in (None, s.name)]
    if given.first:
        rows = [s for s in rows if s.name in _FIRST]
    keys = _keys(driver, rows, few=given.few)
    plain = {} if given.first else {_id(key): _plain(driver, *key) for key in keys}
    handed = [] if given.first else [handed_over(driver, given.driver)]
    toolfault.instrument(*driver.FRAMEWORKS, improve=False)
    told = [_told(driver, key, plain.get(_id(key)), improve=False) for key in keys]
    if not given.first:
        toolfault.instrument(*driver.FRAMEWORKS, improve=True)
        told += [_told(driver, key, plain[_id(key)], improve=True) for key in keys]
        handed.append(handed_over(driver, given.driver))
    answer: dict[str, Any] = {"runs": told, "lacks": driver.LACKS, "handed_over": handed}
    if given.example:
        answer["example"] = example(given.driver)
        answer["readme"] = of_readme(given.driver) if given.driver in OF_README else None
    sys.stdout.write(json.dumps(answer, default=str))


def _keys(driver: Any, rows: list[Scenario], *, few: bool) -> list[tuple[Scenario, str]]:
    """Return what is played; of *few* the one mode is asynchronous, which every scenario can be."""
    return [
        (scenario, mode)
        for scenario in rows
        if scenario.name not in driver.LACKS
        for mode in driver.MODES
        if mode != "sync" or not scenario.async_only
        if not few or mode == "async" or scenario.name in _IN_EVERY_MODE
    ]


def _id(key: tuple[Scenario, str]) -> tuple[str, str]:
    return (key[0].name, key[1])


def _run(driver: Any, scenario: Scenario, mode: str) -> dict[str, Any]:
    return dataclasses.asdict(driver.run(scenario, mode=mode))


def _plain(driver: Any, scenario: Scenario, mode: str) -> dict[str, Any] | None:
    """Run without toolfault; the limit of a decorator holds only where a framework is hooked."""
    if scenario.decorated and scenario.limit:
        return None
    return _run(driver, scenario, mode)


def _told(driver: Any, key: tuple[Scenario, str], plain: Any, *, improve: bool) -> dict[str, Any]:
    scenario, mode = key
    with capture_events(capture_values=True, integrations=False) as events:
        outcome = _run(driver, scenario, mode)
    calls = [event for event in events if event["type"] != "conversation_end"]
    expected = driver.EXPECTED.get(scenario.name, scenario.events)
    if driver.OWN_IDS:
        _name_as_the_model_does(expected, calls)
    return {
        "scenario": scenario.name,
        "mode": mode,
        "improve": improve,
        "plain": plain,
        "outcome": outcome,
        "events": calls,
        "expected": [dataclasses.asdict(event) for event in expected],
        "frameworks": driver.FRAMEWORKS,
        "rung": driver.RUNG,
        "names_model": driver.NAMES_MODEL,
        "names_conversation": driver.NAMES_CONVERSATION,
        "secret": scenario.secret,
    }


def _name_as_the_model_does(expected: tuple[Expected, ...], calls: list[dict[str, Any]]) -> None:
    """Put the ids of the table in place of the integration's own, which must be different ones.

    Calls of one turn may end in any order; which is which is told by whether they succeeded.
    """
    if len({event["call_id"] for event in calls}) == len(calls) == len(expected):
        by_success = sorted(calls, key=lambda event: (event["success"], event["seq"]))
        named = sorted(expected, key=lambda each: each.code is None)
        for event, each in zip(by_success, named, strict=True):
            event["call_id"] = each.call_id


if __name__ == "__main__":
    main()
