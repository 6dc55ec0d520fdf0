"""Processor time of what the pages ask, question by question, with nothing kept from before.

    python benchmarks/queries/reads.py --database sqlite:///shop.db [--times 9]

In process and on a database that queries/fill.py has filled. To compare two versions, run it in a
checkout of each in turns. Prints the least that each question took, in milliseconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from toolfault_collector.clock import now_us
from toolfault_collector.storage.database.engine import open_engine, read_connection
from toolfault_dashboard import queries
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.counting.segments import keep_at_most
from toolfault_dashboard.search import parse

QUESTIONS: Final[dict[str, tuple[Callable[..., Any], str]]] = {
    "overview, 90 days": (queries.overview, "since:90d"),
    "round trips, 90 days": (queries.round_trips, "since:90d"),
    "failures, 14 days": (queries.failure_list, "since:14d"),
    "failures, given up, 90 days": (queries.failure_list, "chain:abandoned,switched since:90d"),
    "failures, not recovered, 14 days": (queries.failure_list, "-chain:recovered since:14d"),
    "facets, 14 days": (queries.facets, "since:14d"),
    "facets, given up, 90 days": (queries.facets, "chain:abandoned,switched since:90d"),
    "chains, 90 days": (queries.chain_list, "since:90d"),
    "chains, given up, 90 days": (queries.chain_list, "chain:abandoned,switched since:90d"),
    "messages, 14 days": (queries.message_efficacy, "since:14d"),
    "fix next, 14 days": (queries.fix_next, "since:14d"),
}


def main() -> None:
    """Ask everything so many times, and print what it took."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--database", required=True)
    parser.add_argument("--times", type=int, default=9)
    chosen = parser.parse_args()
    engine = open_engine(chosen.database)
    keep_at_most(engine, 0)
    now = now_us()
    taken: dict[str, list[float]] = {name: [] for name in QUESTIONS}
    for _ in range(chosen.times):
        for name, (ask, text) in QUESTIONS.items():
            with read_connection(engine) as conn:
                began = time.process_time()
                ask(conn, Scope(1, parse(text), now))
                taken[name].append((time.process_time() - began) * 1_000)
    for name, seen in taken.items():
        sys.stdout.write(f"{name:34} {min(seen):8.1f}\n")
    engine.dispose()


if __name__ == "__main__":
    main()
