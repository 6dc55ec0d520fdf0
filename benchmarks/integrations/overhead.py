"""What a successful tool call costs more when it is observed: toolfault beside others.

A run of an agent with a scripted model and one successful call is repeated without any observer,
with toolfault, and with each of the others. Every variant has a process of its own; they take
turns, block by block, so that whatever else the machine does falls on all of them. Counted is the
processor time of the whole process, background threads included, in microseconds per run; exporters
keep what they get in memory. The figure of a variant is the median over all blocks of its
difference to the block without observer, with the quartiles.

The second table is what ``init(integrations="auto")`` costs more than ``integrations=False`` in a
fresh process that has loaded no framework, in processor time, too.

Run from the root of the repository, where the environments ``<framework>-observed`` were made::

    python -m benchmarks.integrations.overhead [--blocks 30] [--runs 20] [DRIVER...]
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

from tests.integrations.environments import is_made, python_of
from tests.integrations.observe import OBSERVERS, started
from tests.integrations.scenarios import SCENARIOS

ROOT = Path(__file__).parents[2]
NOTHING = "nothing"
_INIT = """
import time
import toolfault
from toolfault.testing import MemoryTransport
transport = MemoryTransport()
began = time.process_time()
toolfault.init(transport=transport, integrations={value!r})
print((time.process_time() - began) * 1e3)
"""


def serve(driver_name: str, observer: str, runs: int) -> None:
    """Run a block for every line of stdin and print its processor time per run, microseconds."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    driver = importlib.import_module(f"tests.integrations.drivers.{driver_name}")
    scenario = next(each for each in SCENARIOS if each.name == "success")
    observed = started(driver_name, observer) if observer != NOTHING else None
    for _ in sys.stdin:
        began = time.process_time()
        for _ in range(runs):
            if observed is None:
                driver.run(scenario, mode="async")
            else:
                with observed.around():
                    driver.run(scenario, mode="async")
        took = time.process_time() - began
        if observed is not None:
            observed.read()
        sys.stdout.write(f"{took / runs * 1e6}\n")
        sys.stdout.flush()


def measured(driver: str, blocks: int, runs: int) -> dict[str, list[float]]:
    """Return microseconds per run by variant, one figure for each block.

    Args:
        driver: Name of a driver of ``tests/integrations``.
        blocks: How often each variant takes its turn.
        runs: Runs in a block.
    """
    python = python_of(f"{driver.replace('_', '-')}-observed")
    variants = (NOTHING, "toolfault", *OBSERVERS[driver])
    module = [str(python), "-m", "benchmarks.integrations.overhead", "--runs", str(runs)]
    children = {
        each: subprocess.Popen(
            [*module, "--serve", each, driver],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT / "sdk"), "OPENAI_API_KEY": "none"},
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


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("drivers", nargs="*", metavar="DRIVER", help=", ".join(OBSERVERS))
    parser.add_argument("--blocks", type=int, default=30)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.drivers[0], given.serve, given.runs)
        return
    others = ("OpenTelemetry", "OpenInference", "Logfire", "Sentry")
    print(f"| framework | a run without | toolfault | {' | '.join(others)} |\n|---{'|---' * 6}|")
    for driver in given.drivers or OBSERVERS:
        if not is_made(f"{driver.replace('_', '-')}-observed"):
            continue
        took = measured(driver, given.blocks, given.runs)
        cells = [_added(took, each) if each in took else "" for each in ("toolfault", *others)]
        print(f"| {driver} | {statistics.median(took[NOTHING]):.0f} | {' | '.join(cells)} |")
    print(f"\n{_init_costs(given.blocks)}")


if __name__ == "__main__":
    main()
