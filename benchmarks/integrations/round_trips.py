"""How many round trips a model needs that fixes only what it is told.

The model begins with three faults (one argument missing, two of a wrong type). Of every answer it
reads which arguments are named, and repairs those. Counted are the calls after the first one, up
to the one that succeeds: with the framework's own texts, and with ``improve=True``. Then it makes
pairs of parallel calls of one tool, of which one fails: that the other succeeded is no recovery.

Run from the root of the repository, where the environments were made::

    python -m benchmarks.integrations.round_trips
"""

from __future__ import annotations

import importlib
import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.integrations.more import scenes
from tests.integrations.more.play import QUIET
from tests.integrations.scenarios import (
    RIGHT,
    SCENARIOS,
    WRONG,
    Expected,
    ModelCall,
    Scenario,
)

import toolfault
from toolfault.testing import capture_events

ROOT = Path(__file__).parents[2]
MOST = 6  # a model that is told nothing would try for ever
PAIRS = 30


Told = Callable[[dict[str, Any]], str]
"""Makes one call with arguments and returns what the model reads of it."""


def told_by(driver: Any) -> Told:
    """Return how a driver of ``tests/integrations/drivers`` or of ``more/drivers`` is asked."""
    if ".more." in driver.__name__:

        def told_of_more(arguments: dict[str, Any]) -> str:
            outcome = scenes.Outcome()
            call = scenes.ModelCall("book", dict(arguments))
            driver.run(scenes.Scenario([[call]], []), outcome)
            return "\n".join(outcome.told)

        return told_of_more

    def told(arguments: dict[str, Any]) -> str:
        call = ModelCall("book", dict(arguments))
        scenario = Scenario("round trips", ((call,),), (Expected("c1", "book"),))
        return str(driver.run(scenario, mode="async").told.get("c1", ""))

    return told


def round_trips(driver: Any, *, improve: bool) -> int | None:
    """Return the round trips until the call succeeds; None where it never does.

    Args:
        driver: The driver of a framework, see the README files of ``tests/integrations``.
        improve: Whether toolfault tells the model what is wrong.
    """
    toolfault.instrument(*driver.FRAMEWORKS, improve=improve)
    told, arguments = told_by(driver), dict[str, Any](WRONG)
    for trip in range(MOST + 1):
        text = told(arguments)
        if "booked" in text:
            return trip
        arguments.update({name: value for name, value in RIGHT.items() if name in text})
    return None


def told_apart(driver: Any) -> int:
    """Return of how many of ``PAIRS`` pairs of parallel calls none counts as the other's recovery.

    Args:
        driver: The driver of a framework.
    """
    name = "parallel, one failing"
    of_turn = next(scenario for scenario in SCENARIOS if scenario.name == name)
    apart = 0
    for _ in range(PAIRS):
        with capture_events(integrations=False) as events:
            if ".more." in driver.__name__:
                driver.run(scenes.SCENARIOS[name], scenes.Outcome())
            else:
                driver.run(of_turn, mode="async")
        calls = [event for event in events if event["type"] == "tool_call"]
        failed, other = sorted(calls, key=lambda call: bool(call["success"]))
        apart += failed["turn"] == other["turn"] and "chain_id" not in other
    return apart


def main() -> None:
    """Print a table over the newest frameworks, or the numbers of the one it runs in."""
    if len(sys.argv) > 1:
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        os.environ.update(QUIET)
        answers, sys.stdout = sys.stdout, sys.stderr  # frameworks print
        driver = importlib.import_module(f"tests.integrations.{sys.argv[1]}")
        numbers = [round_trips(driver, improve=improve) for improve in (False, True)]
        told = ("never" if number is None else number for number in numbers)
        print(*told, told_apart(driver), file=answers)
        answers.flush()
        os._exit(0)  # some leave threads behind
    from tests.integrations.environments import NAMES, driver_of, is_made, python_of

    print("| framework | with its own texts | with improve=True | pairs told apart |")
    print("|---|---|---|---|")
    for name in NAMES:
        if not name.endswith("-new") or not is_made(name):
            continue
        first = f"drivers.{driver_of(name)}"
        here = (ROOT / "tests/integrations/drivers" / f"{driver_of(name)}.py").exists()
        module = ["-m", "benchmarks.integrations.round_trips", first if here else f"more.{first}"]
        done = subprocess.run(
            [str(python_of(name)), *module],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT / "sdk")},
            capture_output=True,
            text=True,
            check=True,
        )
        print(f"| {name} | {' | '.join(done.stdout.split())} |")


if __name__ == "__main__":
    main()
