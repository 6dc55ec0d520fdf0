"""What a comparison at equal mix loses where successes are only counted.

Conversations call several tools, which fail at different rates; a conversation that fails, fails
more with every tool. Of conversations without a failure senders keep the calls by tool, the squares
of these, and the squares of all calls together, and no more. Prints a Markdown table: how often two
equal cohorts get a verdict on the failure rate, how often the interval of a true difference holds
it, and how wide it is beside the interval that knows every conversation.

    python benchmarks/comparisons/folded.py [REPETITIONS]
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict

import numpy as np

from toolfault_dashboard.analysis.comparisons.cells import Cell, Stratum
from toolfault_dashboard.analysis.comparisons.cohorts import Cohort, Folded
from toolfault_dashboard.analysis.comparisons.effect import MetricEffect, compare

SETTINGS = (
    # conversations of a cohort, tools, calls of a conversation, correlation of calls
    (300, 1, 6, 0.2),
    (300, 6, 6, 0.2),
    (300, 12, 8, 0.2),
    (1_000, 12, 8, 0.1),
)
WORST = 0.9
"""Failure rate of the tool that fails most; it gets a small share of the calls."""


def drawn(
    noise: np.random.Generator, setting: tuple[int, int, int, float], rates: np.ndarray
) -> tuple[Cohort, Cohort]:
    """Return a cohort as senders tell of it, and the same with every conversation known."""
    conversations, tools, size, alike = setting
    shares = np.ones(tools)
    shares[-1] = 0.2
    shares /= shares.sum()
    cells: list[Cell] = []
    every: list[Cell] = []
    calls_of: Counter[Stratum] = Counter()
    of_tools: defaultdict[str, list[float]] = defaultdict(lambda: [0, 0.0])
    folded, squared = 0, 0.0
    for number in range(conversations):
        own = noise.multinomial(1 + int(noise.poisson(size - 1)), shares)
        chance = noise.beta((1 - alike) / alike, (1 - alike) / alike) * 2
        failed = noise.binomial(own, np.minimum(1.0, rates * chance))
        made = [
            Cell(str(number), (f"t{tool}", "m", "a"), int(n), int(bad), int(bad > 0), 0, 0, 0,
                 int(bad > 0), timed=int(n))
            for tool, (n, bad) in enumerate(zip(own, failed, strict=True))
            if n
        ]  # fmt: skip
        every += made
        if failed.any():
            cells += made
            continue
        folded, squared = folded + 1, squared + float(own.sum()) ** 2
        for cell in made:
            calls_of[cell.stratum] += int(cell.calls)
            known = of_tools[cell.stratum[0]]
            known[0], known[1] = known[0] + 1, known[1] + cell.calls**2
    by_tool = {tool: (int(n), square) for tool, (n, square) in of_tools.items()}
    told = Cohort("", "", cells, Folded(dict(calls_of), folded, squared, by_tool))
    return told, Cohort("", "", every)


def measured(
    noise: np.random.Generator, setting: tuple[int, int, int, float], repetitions: int
) -> list[float]:
    """Return false verdicts, coverage, and the width beside that of full knowledge."""
    tools = setting[1]
    rates = np.linspace(0.05, 0.2, tools)
    rates[-1] = WORST / 2 if tools > 1 else 0.2
    better = rates * 0.8
    found, widths = np.zeros(2), np.zeros(2)
    for _ in range(repetitions):
        (left, _), (same, _) = (drawn(noise, setting, rates) for _ in range(2))
        found[0] += _of(left, same).verdict in ("improved", "worse")
        pair = drawn(noise, setting, rates), drawn(noise, setting, better)
        for place, (before, after) in enumerate(zip(*pair, strict=True)):
            effect = _of(before, after)
            assert effect.low is not None
            assert effect.high is not None
            assert effect.difference is not None
            widths[place] += effect.high - effect.low
            if place == 0:
                true = _true(left, rates, better)
                found[1] += effect.low <= true <= effect.high
    return [*(found / repetitions).tolist(), float(widths[0] / widths[1])]


def _true(cohort: Cohort, rates: np.ndarray, better: np.ndarray) -> float:
    """Return the difference of the rates at the mix of the calls, which is that of both cohorts."""
    shares = np.ones(len(rates))
    shares[-1] = 0.2
    return float(((better - rates) * shares).sum() / shares.sum())


def _of(before: Cohort, after: Cohort) -> MetricEffect:
    return compare(before, after).metrics[0]


def main() -> None:
    """Print the table."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    heads = ("conversations", "tools", "calls", "correlation", "false verdicts", "coverage",
             "width beside full knowledge")  # fmt: skip
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for number, setting in enumerate(SETTINGS):
        noise = np.random.default_rng([20, number])  # a line does not depend on those above it
        wrong, held, width = measured(noise, setting, repetitions)
        told = " | ".join(str(each) for each in setting)
        print(f"| {told} | {wrong:.1%} | {held:.1%} | {width:.2f} |", flush=True)


if __name__ == "__main__":
    main()
