"""What a successful tool call costs more when it is observed: toolfault beside others.

A run of an agent with a scripted model and one successful call is repeated without any observer,
with toolfault, and with each of the others. Every variant has a process of its own; they take
turns, block by block, so that whatever else the machine does falls on all of them. Counted is the
processor time of the whole process, background threads included, in microseconds per run; exporters
keep what they get in memory. The figure of a variant is the median over all blocks of its
difference to the block without observer, with the quartiles.

The second table is that of the frameworks of ``tests/integrations/more``, beside the tracing that
each brings itself. The third is what ``init(integrations="auto")`` costs more than
``integrations=False`` in a fresh process that has loaded no framework, in processor time, too.

Run from the root of the repository, where the environments ``<framework>-observed`` were made, or
``<framework>-new`` of a framework that has none::

    python -m benchmarks.integrations.overhead [--blocks 30] [--runs 20] [DRIVER...]
"""

from __future__ import annotations

import argparse
import gc
import importlib
import logging
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from tests.integrations.environments import NAMES, is_made, python_of
from tests.integrations.more import scenes
from tests.integrations.more.play import QUIET
from tests.integrations.observe import ITS_OWN, OBSERVERS, OWN, WITHOUT, started
from tests.integrations.scenarios import SCENARIOS

ROOT = Path(__file__).parents[2]
NOTHING = "nothing"
MORE = {**OWN, **WITHOUT}
_INIT = """
import time
import toolfault
from toolfault.testing import MemoryTransport
transport = MemoryTransport()
began = time.process_time()
toolfault.init(transport=transport, integrations={value!r})
print((time.process_time() - began) * 1e3)
"""


def _player(driver_name: str) -> Callable[[], object]:
    """Return what runs an agent that makes one successful call."""
    if driver_name not in MORE:
        driver = importlib.import_module(f"tests.integrations.drivers.{driver_name}")
        scenario = next(each for each in SCENARIOS if each.name == "success")
        return lambda: driver.run(scenario, mode="async")
    driver = importlib.import_module(f"tests.integrations.more.drivers.{driver_name}")
    mode = "async" if "async" in driver.MODES else "sync"
    of_more = scenes.SCENARIOS["success"]
    return lambda: driver.run(of_more, scenes.Outcome(), mode=mode)


def serve(driver_name: str, observer: str, runs: int) -> None:
    """Run a block for every line of stdin and print its processor time per run, microseconds."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    answers, sys.stdout = sys.stdout, sys.stderr  # frameworks print
    play = _player(driver_name)
    observed = started(driver_name, observer) if observer != NOTHING else None
    warm = False
    for _ in sys.stdin:
        began = time.process_time()
        for _ in range(runs):
            if observed is None:
                play()
            else:
                with observed.around():
                    play()
        took = time.process_time() - began
        if observed is not None and not observed.read() and observer == ITS_OWN:
            raise AssertionError("nothing was traced")
        if not warm:  # a collection of all that was loaded would fall on blocks at random
            gc.collect()
            gc.freeze()
            warm = True
        answers.write(f"{took / runs * 1e6}\n")
        answers.flush()
    os._exit(0)  # some leave threads behind


def measured(driver: str, blocks: int, runs: int) -> dict[str, list[float]]:
    """Return microseconds per run by variant, one figure for each block.

    Args:
        driver: Name of a driver of ``tests/integrations`` or of ``tests/integrations/more``.
        blocks: How often each variant takes its turn.
        runs: Runs in a block.
    """
    variants = (NOTHING, "toolfault", *_others(driver))
    module = [str(python_of(_environment(driver))), "-m", "benchmarks.integrations.overhead"]
    quiet = {name: value for name, value in QUIET.items() if name != "OTEL_SDK_DISABLED"}
    quiet |= {"PYTHONPATH": str(ROOT / "sdk"), "OPENAI_API_KEY": "none"}
    children = {
        each: subprocess.Popen(
            [*module, "--runs", str(runs), "--serve", each, driver],
            cwd=ROOT,
            env={**os.environ, **quiet},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for each in variants
    }
    took: dict[str, list[float]] = {each: [] for each in variants}
    for block in range(-1, blocks):  # the first one warms up
        for each, child in children.items():
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write("\n")
            child.stdin.flush()
            figure = float(child.stdout.readline())
            if block >= 0:
                took[each].append(figure)
    for child in children.values():
        child.communicate()
    return took


def _environment(driver: str) -> str:
    framework = driver.replace("_", "-")
    observed = f"{framework}-observed"
    return observed if observed in NAMES else f"{framework}-new"


def _others(driver: str) -> tuple[str, ...]:
    return OBSERVERS.get(driver) or ((ITS_OWN,) if driver in OWN else ())


def _added(took: dict[str, list[float]], variant: str) -> str:
    pairs = zip(took[variant], took[NOTHING], strict=True)
    low, middle, high = statistics.quantiles([with_ - without for with_, without in pairs], n=4)
    return f"{middle:.0f} ({low:.0f} to {high:.0f})"


def _init_costs(times: int) -> str:
    """Return what ``integrations="auto"`` adds to ``init``, milliseconds."""
    took: dict[object, list[float]] = {"auto": [], False: []}
    for _ in range(times):
        for value, figures in took.items():
            code = _INIT.format(value=value)
            done = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            )
            figures.append(float(done.stdout))
    auto, without = statistics.median(took["auto"]), statistics.median(took[False])
    return f"init: {auto:.2f} ms with auto, {without:.2f} ms without; {auto - without:.2f} ms more"


def _table(others: tuple[str, ...], drivers: list[str], blocks: int, runs: int) -> None:
    """Print a row for each of the drivers whose environment was made."""
    columns = ("a run without", "toolfault", *others)
    print(f"| framework | {' | '.join(columns)} |\n|---{'|---' * len(columns)}|")
    for driver in drivers:
        if not is_made(_environment(driver)):
            continue
        took = measured(driver, blocks, runs)
        cells = [_added(took, each) if each in took else "" for each in columns[1:]]
        if driver in MORE:
            cells[-1] += f" {MORE[driver]}"
        alone = statistics.median(took[NOTHING])
        print(f"| {driver} | {alone:.0f} | {' | '.join(cells)} |", flush=True)
    print()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    all_ = [*OBSERVERS, *MORE]
    parser.add_argument("drivers", nargs="*", metavar="DRIVER", help=", ".join(all_))
    parser.add_argument("--blocks", type=int, default=30)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.drivers[0], given.serve, given.runs)
        return
    drivers = given.drivers or all_
    foreign = ("OpenTelemetry", "OpenInference", "Logfire", "Sentry")
    for others, rows in ((foreign, OBSERVERS), ((ITS_OWN,), MORE)):
        asked = [driver for driver in drivers if driver in rows]
        if asked:
            _table(others, asked, given.blocks, given.runs)
    print(_init_costs(given.blocks))


if __name__ == "__main__":
    main()
