"""How fast the machine and the interpreter are at the moment, so that runs can be compared.

    python benchmarks/ingest/machine.py

The speed of a virtual machine changes by half within minutes, and an interpreter built without
optimisation needs a quarter more; every line of `durable.py` carries this figure.
"""

from __future__ import annotations

import sys
import time

ROUNDS = 5
STEPS = 200_000


def loop_ms() -> float:
    """Return the least of some rounds of a fixed loop, in milliseconds of the processor."""
    return min(_round() for _ in range(ROUNDS))


def _round() -> float:
    began = time.process_time()
    sums: dict[int, int] = {}
    for number in range(STEPS):
        sums[number % 97] = sums.get(number % 97, 0) + number
        tuple(part for part in (number, str(number)))
    return (time.process_time() - began) * 1_000


def main() -> None:
    """Print the figure."""
    sys.stdout.write(f"{loop_ms():.1f} ms, Python {sys.version.split()[0]}\n")


if __name__ == "__main__":
    main()
