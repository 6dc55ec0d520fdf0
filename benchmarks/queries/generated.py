"""Generated queries on a large history: how long the latest 50 with their total take.

    python benchmarks/queries/generated.py --database sqlite:///million.db [--queries 2000]

Draws queries of one to four clauses over every key of the language, with values that the history
of ``fill.py`` has and with values that it has not, negated or not. Each is asked for as the page
and the API do: the latest 50 failures and how many there are, within ``--window`` unless it names
moments of its own. Nothing is written. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from typing import Final

from toolfault_collector.clock import now_us
from toolfault_collector.engine import open_engine, read_connection
from toolfault_dashboard.queries import Scope, failure_list
from toolfault_dashboard.queries.deadline import TooSlow, deadline
from toolfault_dashboard.search import KEYS, parse

KNOWN: Final = {
    "tool": ("tool_00", "tool_07", "tool_39", "tool_0*", "*"),
    "agent": ("code-bot", "shop-bot", "1", "c*"),
    "model": ("gpt-5", "claude-y", "claude*", "o9"),
    "release": ("1.11.1", "1.4.0", "1.*"),
    "environment": ("staging", "prod", "p*"),
    "variant": ("control", "treatment", "a=1", "*"),
    "conversation": ("002f-conv-00000673", "*-00000673", "nobody"),
    "code": ("wrong_type", "missing_field", "timeout", "not_*", "nothing"),
    "field": ("port", "items", "items.1.name", "items.*.name", "nowhere"),
    "field_pattern": ("items.*.name", "port", "it*"),
    "issue": ("wrong_type", "missing_field", "un*"),
    "near_miss": ("any", "int_from_string", "bool*"),
    "reason": ("paused", "not_registered", "*"),
    "phase": ("validation", "handler", "x"),
    "detection": ("explicit", "soft*"),
    "signature": ("df4d618f768bbdcf5ead3c94604b1ec0", "df*", "0"),
    "message": ("*must be*", "*light*", "f6dbdda3a127e0cd0a46da2b8bf5613a"),
    "exception": ("TimeoutError", "*Error", "x"),
    "user": ("u-7", "*"),
    "event": ("002f0000-428f-73da-fa46-7ae0e249ffa7", "*", "002f*"),
    "tag.team": ("blue", "*"),
}
MOMENTS: Final = ("7d", "24h", "3w", "60d", "2026-11-01", "0s")
TEXTS: Final = ('"must be an integer"', '"port"', "zzz", "%", "_", '"got \'"')


def draw(rng: random.Random) -> str:
    """Return the text of one query."""
    return " ".join(_clause(rng) for _ in range(rng.randrange(1, 5)))


def _clause(rng: random.Random) -> str:
    name = rng.choice((*KEYS, "text", "tag.team"))
    sign = "-" if rng.random() < 0.3 else ""
    if name == "text":
        return sign + rng.choice(TEXTS)
    kind = KEYS[name].kind if name in KEYS else "pattern"
    if kind == "time":
        return f"{name}:{rng.choice(MOMENTS)}"
    if kind in {"number", "milliseconds"}:
        low = rng.choice((0, 1, 2, 5, 100, 730.25))
        return f"{sign}{name}:{rng.choice(('>', '<', '>=', ''))}{low}"
    if kind == "presence":
        known = ("model", "field", "near_miss", "chain", "issue", "message", "user", "attempt")
        return f"{sign}{name}:{rng.choice(known)}"
    values = KEYS[name].choices if kind == "choice" else KNOWN[name]
    chosen = rng.sample(values, rng.randrange(1, min(3, len(values)) + 1))
    quoted = (f'"{each}"' if set(each) & set(" ,") else each for each in chosen)
    return f"{sign}{name}:{','.join(quoted)}"


def main() -> None:
    """Ask and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--database", required=True, help="URL of a filled database")
    parser.add_argument("--project", type=int, default=1)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--window", default="14d", help="default window; 'all' for none")
    parser.add_argument("--limit", type=float, default=2.0, help="seconds that none may take")
    parser.add_argument("--seconds", type=float, default=3_600, help="end after this long")
    chosen = parser.parse_args()
    rng = random.Random(chosen.seed)
    engine = open_engine(chosen.database)
    clock: list[float] = []
    slow: list[tuple[float, float, str]] = []
    found = 0
    until = time.monotonic() + chosen.seconds
    while len(clock) < chosen.queries and time.monotonic() < until:
        text = draw(rng)
        query = parse(text)
        if chosen.window != "all" and not query.has("since", "until"):
            query = query.and_(parse(f"since:{chosen.window}"))
        began, used = time.perf_counter(), time.process_time()
        try:
            with read_connection(engine) as conn, deadline(conn):
                found += failure_list(conn, Scope(chosen.project, query, now_us())).total > 0
        except TooSlow:
            sys.stderr.write(f"stopped: {query}\n")
        took, cpu = time.perf_counter() - began, time.process_time() - used
        clock.append(took)
        slow.append((took, cpu, str(query)))
    engine.dispose()
    slow.sort(reverse=True)
    ordered = sorted(clock)
    result = {
        "queries": len(clock),
        "seed": chosen.seed,
        "window": chosen.window,
        "with_rows": found,
        "median_ms": round(statistics.median(clock) * 1_000, 1),
        "p99_ms": round(ordered[int(0.99 * len(ordered))] * 1_000, 1),
        "worst_ms": round(ordered[-1] * 1_000, 1),
        "over_limit": sum(each > chosen.limit for each in clock),
        "over_limit_cpu": sum(cpu > chosen.limit for _, cpu, _ in slow),
        "slowest": [
            {"ms": round(took * 1_000), "cpu_ms": round(cpu * 1_000), "query": text}
            for took, cpu, text in slow[:25]
        ],
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
