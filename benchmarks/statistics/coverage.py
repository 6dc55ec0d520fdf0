"""How often the interval of a rate covers the true rate, when calls of a conversation are alike.

Conversations have a beta-binomial number of failures: the rate of each is drawn from a beta
distribution whose mean is the true rate and whose intra-class correlation (ICC) says how alike the
calls of one conversation are. Printed beside the interval that every page shows is the one that
counts calls as independent.

    python benchmarks/statistics/coverage.py --repetitions 1000
"""

from __future__ import annotations

import argparse
import itertools
import json
from dataclasses import dataclass

import numpy as np

from toolfault_dashboard.analysis.clusters import Moments
from toolfault_dashboard.analysis.weights import Amount, weighed_rate


@dataclass(frozen=True)
class Setting:
    """One kind of data.

    Attributes:
        conversations: How many.
        calls: Mean calls of a conversation; their number is geometric, at least 1.
        icc: Intra-class correlation.
        rate: True failure rate.
    """

    conversations: int
    calls: int
    icc: float
    rate: float


def coverage(setting: Setting, repetitions: int, seed: int) -> dict[str, object]:
    """Return the share of intervals, in percent, that cover the true rate."""
    rng = np.random.default_rng(seed)
    covered = independent = 0
    widths = []
    for _ in range(repetitions):
        n = rng.geometric(1 / setting.calls, setting.conversations)
        rates = np.full(setting.conversations, setting.rate)
        if setting.icc:
            more = 1 / setting.icc - 1
            rates = rng.beta(setting.rate * more, (1 - setting.rate) * more, setting.conversations)
        f = rng.binomial(n, rates)
        part, whole = (Amount(int(each), int(each), int(each)) for each in (f.sum(), n.sum()))
        moments = Moments(len(n), float(f @ f), float(f @ n), float(n @ n))
        shown, plain = weighed_rate(part, whole, moments), weighed_rate(part, whole)
        low, high = shown.low or 0.0, shown.high or 1.0
        covered += low <= setting.rate <= high
        independent += (plain.low or 0.0) <= setting.rate <= (plain.high or 1.0)
        widths.append(high - low)
    return {
        **vars(setting),
        "covered_percent": round(100 * covered / repetitions, 1),
        "independent_percent": round(100 * independent / repetitions, 1),
        "mean_width_points": round(100 * float(np.mean(widths)), 1),
    }


def main() -> None:
    """Print one line of JSON for each setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    grid = itertools.product((40, 200, 1000), (5, 10, 20), (0.0, 0.2, 0.5), (0.03, 0.2))
    for setting in itertools.starmap(Setting, grid):
        print(json.dumps(coverage(setting, asked.repetitions, asked.seed)), flush=True)


if __name__ == "__main__":
    main()
