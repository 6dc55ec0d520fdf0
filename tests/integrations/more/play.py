"""``python -m tests.integrations.more.play DRIVER``: play the whole table with one framework.

Each scenario runs in each mode of the framework and in four ways (``WAYS``). Stdout gets one line
of JSON about the driver and one for each run: way, scenario, mode, outcome and events.
``--only NAME`` plays one scenario, or several where it is given again.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from importlib import import_module
from typing import Any

from tests.integrations.more.scenes import SCENARIOS, Outcome, entered, released

WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "hooked": {"observed": True},
    "decorated": {"observed": True, "decorated": True},
    "improve": {"observed": True, "improve": True},
}
"""Without toolfault, with it, with it and decorated tools, and with better texts."""
# Where frameworks would call home.
QUIET = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_DISABLE_TRACKING": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
}


def main() -> None:
    """Play the table with the driver that the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("--only", choices=SCENARIOS, action="append")
    given = parser.parse_args()
    os.environ.update(QUIET)
    answers, sys.stdout = sys.stdout, sys.stderr  # frameworks print
    logging.disable(logging.CRITICAL)
    import toolfault

    driver = import_module(f"tests.integrations.more.drivers.{given.driver}")
    facts = {
        "modes": driver.MODES,
        "lacks": driver.LACKS,
        "expected": getattr(driver, "EXPECTED", {}),
        "decorated": getattr(driver, "DECORATED", {}),
        "side": getattr(driver, "SIDE", "agent"),
        "joined": getattr(driver, "JOINED", False),
        "names_agent": getattr(driver, "NAMES_AGENT", True),
        "idempotent": getattr(driver, "IDEMPOTENT", {}),
    }
    answers.write(json.dumps(facts) + "\n")
    names = given.only or list(SCENARIOS)
    for way, how in WAYS.items():
        if how and driver.FRAMEWORKS:
            toolfault.instrument(*driver.FRAMEWORKS, improve=how.get("improve", False))
        for run in _played(driver, way, names):
            answers.write(json.dumps(run) + "\n")
            answers.flush()
    answers.flush()


def _played(driver: Any, way: str, names: list[str]) -> Iterator[list[Any]]:
    for name in names:
        scenario = replace(SCENARIOS[name], **WAYS[way])
        if scenario.own_limit is not None and way == "plain":
            continue
        for mode in driver.MODES:
            if driver.LACKS.keys().isdisjoint((name, f"{name}, {mode}")):
                yield [way, name, mode, *_run(driver, scenario, mode)]


def _run(driver: Any, scenario: Any, mode: str) -> tuple[dict[str, Any], list[Any]]:
    from toolfault.testing import capture_events

    outcome = Outcome()
    entered.clear()
    released.clear()
    with capture_events(agent="process", integrations=False) as events:
        try:
            driver.run(scenario, outcome, mode=mode)
        except BaseException as error:  # a run may be cancelled
            outcome.error = f"{type(error).__name__}: {error}"
        finally:
            released.set()
    return asdict(outcome), [event for event in events if event["type"] != "conversation_end"]


if __name__ == "__main__":
    main()
