"""How many round trips a model needs that fixes only what it is told.

The model begins with three faults (one argument missing, two of a wrong type). Of every answer it
reads which arguments are named, and repairs those. Counted are the calls after the first one, up
to the one that succeeds: with the framework's own texts, and with ``improve=True``.

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
from pathlib import Path
from typing import Any

from tests.integrations.scenarios import RIGHT, WRONG, Expected, ModelCall, Scenario

import toolfault

ROOT = Path(__file__).parents[2]
MOST = 6  # a model that is told nothing would try for ever


def round_trips(driver: Any, *, improve: bool) -> int | None:
    """Return the round trips until the call succeeds; None where it never does.

    Args:
        driver: The driver of a framework, see ``tests/integrations/README.md``.
        improve: Whether toolfault tells the model what is wrong.
    """
    toolfault.instrument(*driver.FRAMEWORKS, improve=improve)
    arguments: dict[str, Any] = dict(WRONG)
    for trip in range(MOST + 1):
        call = ModelCall("book", dict(arguments))
        scenario = Scenario("round trips", ((call,),), (Expected("c1", "book"),))
        told = driver.run(scenario, mode="async").told.get("c1", "")
        if told.startswith("booked"):
            return trip
        arguments.update({name: value for name, value in RIGHT.items() if name in told})
    return None


def main() -> None:
    """Print a table over the newest frameworks, or the two numbers of the one it runs in."""
    if len(sys.argv) > 1:
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        driver = importlib.import_module(f"tests.integrations.drivers.{sys.argv[1]}")
        numbers = [round_trips(driver, improve=improve) for improve in (False, True)]
        print(*("never" if number is None else number for number in numbers))
        return
    from tests.integrations.environments import QUICK, driver_of, is_made, python_of

    print("| framework | with its own texts | with improve=True |\n|---|---|---|")
    for name in QUICK:
        if not is_made(name):
            continue
        module = ["-m", "benchmarks.integrations.round_trips", driver_of(name)]
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
