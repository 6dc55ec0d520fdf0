"""How often a comparison of two equal cohorts is wrong, and how often a change is seen.

Conversations differ in how often they fail (beta-binomial, the ICC says how much) and in which code
they fail with (four of five failures of a conversation have the code of the conversation). Prints a
Markdown table: of all runs without any change, the share with a false verdict on the failure rate,
on any metric, on any code, on anything at all, and those in which ``any worse`` shuts the gate; and
of runs in which one code became twice as frequent, those that call this code worse.

    python benchmarks/comparisons/false_verdicts.py [REPETITIONS]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from toolfault_dashboard.analysis.comparisons.by_code import compare_by_code
from toolfault_dashboard.analysis.comparisons.cells import Cell
from toolfault_dashboard.analysis.comparisons.cohorts import Cohort
from toolfault_dashboard.analysis.comparisons.gates import parse_gate

SETTINGS = (
    # conversations before, after, ICC, calls of a conversation, codes
    (200, 200, 0.0, 8, 6),
    (200, 200, 0.2, 8, 6),
    (200, 200, 0.5, 8, 6),
    (40, 40, 0.5, 8, 6),
    (400, 40, 0.5, 8, 6),
    (40, 400, 0.5, 8, 6),
    (400, 40, 0.2, 8, 6),
    (40, 400, 0.2, 8, 6),
    (1_000, 50, 0.5, 8, 6),
    (400, 40, 0.2, 20, 20),
    (40, 400, 0.2, 5, 1),
)
RATE = 0.15
_SAID = ("improved", "worse")
_NOISE = np.random.Generator


def drawn(
    noise: _NOISE, label: str, conversations: int, icc: float, size: int, shares: Sequence[float]
) -> tuple[Cohort, dict[str, dict[str, float]]]:
    """Return one cohort and its failures by code and conversation.

    Args:
        noise: Where chance comes from.
        label: Of the cohort.
        conversations: How many.
        icc: Correlation of two calls of one conversation, 0 to below 1.
        size: Calls of a conversation, on average.
        shares: How often a failure has each code; what they exceed 1 by raises the failure rate.
    """
    total = float(sum(shares))
    rate = RATE * total
    chances = np.asarray(shares) / total
    cells = []
    failures: dict[str, dict[str, float]] = {}
    for number in range(conversations):
        name = f"{label}{number}"
        calls = 1 + int(noise.poisson(size - 1))
        own = noise.beta(rate * (1 - icc) / icc, (1 - rate) * (1 - icc) / icc) if icc else rate
        failed = int(noise.binomial(calls, own))
        trips = min(max(failed - 1, 0) + int(noise.random() < 0.7), calls - 1) if failed else 0
        recovered = int(0 < failed < calls and noise.random() < 0.8)
        chains = int(failed > 0)
        cells.append(
            Cell(
                name, ("t", "m", "a"), calls, failed, chains, 0, trips, recovered, chains,
                timed=calls, time_lost_ms=500.0 * trips,
            )
        )  # fmt: skip
        if failed:
            codes = noise.choice(len(shares), size=failed + 1, p=chances)
            codes[1:][noise.random(failed) < 0.8] = codes[0]
            for code in codes[1:].tolist():
                counts = failures.setdefault(f"code_{code}", {})
                counts[name] = counts.get(name, 0) + 1
    return Cohort(label, "", cells), failures


def measured(
    noise: _NOISE, setting: tuple[int, int, float, int, int], repetitions: int
) -> list[float]:
    """Return the shares of one *setting*: rate, metrics, codes, anything, gate, power."""
    before, after, icc, size, codes = setting
    usual = [1 / codes] * codes
    more = [2 / codes, *usual[1:]]
    gate = parse_gate("any worse")
    found = np.zeros(6)
    for _ in range(repetitions):
        left, right, changed = (
            drawn(noise, label, number, icc, size, shares)
            for label, number, shares in (
                ("b", before, usual), ("a", after, usual), ("c", after, more),
            )
        )  # fmt: skip
        effect, rows = compare_by_code(left[0], right[0], (left[1], right[1]))
        metrics = any(each.verdict in _SAID for each in effect.metrics)
        by_code = any(row.verdict in _SAID for row in rows)
        _, seen = compare_by_code(left[0], changed[0], (left[1], changed[1]))
        found += (
            effect.verdict in _SAID, metrics, by_code, metrics or by_code, gate.holds(effect, rows),
            any(row.verdict == "worse" and row.code == "code_0" for row in seen),
        )  # fmt: skip
    return [float(each) for each in found / repetitions]


def main() -> None:
    """Print the table."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    noise = np.random.default_rng(16)
    heads = (
        "conversations", "ICC", "calls", "codes", "failure rate", "any metric", "any code",
        "anything", "gate `any worse` shut", "twice as frequent code found",
    )  # fmt: skip
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for setting in SETTINGS:
        shares = " | ".join(f"{share:.1%}" for share in measured(noise, setting, repetitions))
        before, after, icc, size, codes = setting
        print(f"| {before} / {after} | {icc} | {size} | {codes} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
