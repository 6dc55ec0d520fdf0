"""Generated queries on a large history: how long the latest 50 with their total take.

    python benchmarks/queries/generated.py --database sqlite:///million.db [--queries 2000]
        [--skip 10000] [--into portions.ndjson]

Draws queries of one to four clauses over every key of the language, with values that the history
of ``fill.py`` has and with values that it has not, negated or not. Each is asked for as the page
and the API do: the latest 50 failures and how many there are, within ``--window`` unless it names
moments of its own, seen from a minute after the newest failure: conversations are going on then,
and a run of another day asks the same. The canonical text of each is parsed once more and must be
the same text. Nothing is written to the database. Prints JSON.

Many queries can be asked in portions: ``--skip`` draws the first of the seed and passes over them,
``--into`` adds the result of the portion to a file, one line each.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from toolfault_collector.clock import MINUTE_US, now_us
from toolfault_collector.storage.database.engine import open_engine, read_connection
from toolfault_dashboard.queries import Scope, failure_list
from toolfault_dashboard.queries.counting.deadline import TooSlow, deadline
from toolfault_dashboard.queries.periods import last_call
from toolfault_dashboard.search import KEYS, Query, parse

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


@dataclass(frozen=True, slots=True)
class _Asked:
    """One query, the seconds of the clock and of the processor that it took, and what came."""

    text: str
    seconds: float
    cpu: float
    total: int
    error: str  # "stopped" by the deadline, or what the database said


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


def _drawn(chosen: argparse.Namespace) -> Iterator[str]:
    """Yield the texts of the portion, until its time is over."""
    rng = random.Random(chosen.seed)
    until = time.monotonic() + chosen.seconds
    for _ in range(chosen.skip):
        draw(rng)
    for _ in range(chosen.queries):
        if time.monotonic() >= until:
            return
        yield draw(rng)


def _in_window(query: Query, window: str) -> Query:
    if window == "all" or query.has("since", "until"):
        return query
    return query.and_(parse(f"since:{window}"))


def _newest(engine: Engine, project: int) -> int:
    everything = Scope(project, parse(""), now_us())
    with read_connection(engine) as conn:
        return last_call(conn, everything) or now_us()


def _ask(engine: Engine, scope: Scope) -> _Asked:
    """Ask for the latest 50 failures of *scope* and how many there are."""
    total, error = 0, ""
    began, used = time.perf_counter(), time.process_time()
    try:
        with read_connection(engine) as conn, deadline(conn):
            total = failure_list(conn, scope).total
    except TooSlow:
        error = "stopped"
    except SQLAlchemyError as failed:
        error = str(failed)
    took, cpu = time.perf_counter() - began, time.process_time() - used
    if error:
        sys.stderr.write(f"{error.splitlines()[0]}: {scope.query}\n")
    return _Asked(str(scope.query), took, cpu, total, error)


def _is_same_text(text: str) -> bool:
    """Return whether the canonical text of the query *text* is parsed to itself again."""
    canonical = str(parse(text))
    return str(parse(canonical)) == canonical and parse(canonical) == parse(text)


def _summary(asked: list[_Asked], chosen: argparse.Namespace) -> dict[str, object]:
    clock = sorted(each.seconds for each in asked)
    slowest = sorted(asked, key=lambda each: -each.cpu)[: chosen.slowest]
    return {
        "queries": len(asked),
        "seed": chosen.seed,
        "skipped": chosen.skip,
        "window": chosen.window,
        "with_rows": sum(each.total > 0 for each in asked),
        "errors": sum(each.error not in {"", "stopped"} for each in asked),
        "stopped": sum(each.error == "stopped" for each in asked),
        "median_ms": round(statistics.median(clock) * 1_000, 1),
        "p99_ms": round(clock[int(0.99 * len(clock))] * 1_000, 1),
        "worst_ms": round(clock[-1] * 1_000, 1),
        "cpu_s": round(sum(each.cpu for each in asked), 1),
        "over_limit": sum(each.seconds > chosen.limit for each in asked),
        "over_limit_cpu": sum(each.cpu > chosen.limit for each in asked),
        "slowest": [
            {
                "ms": round(each.seconds * 1_000),
                "cpu_ms": round(each.cpu * 1_000),
                "total": each.total,
                "query": each.text,
            }
            for each in slowest
        ],
    }


def main() -> None:
    """Ask and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--database", required=True, help="URL of a filled database")
    parser.add_argument("--project", type=int, default=1)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--skip", type=int, default=0, help="queries of the seed to pass over")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--window", default="14d", help="default window; 'all' for none")
    parser.add_argument("--limit", type=float, default=2.0, help="seconds that none may take")
    parser.add_argument("--seconds", type=float, default=3_600, help="end after this long")
    parser.add_argument("--slowest", type=int, default=25, help="how many of them to name")
    parser.add_argument("--into", type=Path, help="file to add the result to as one line")
    chosen = parser.parse_args()
    engine = open_engine(chosen.database)
    now = _newest(engine, chosen.project) + MINUTE_US
    asked: list[_Asked] = []
    other_text = []
    for text in _drawn(chosen):
        if not _is_same_text(text):
            other_text.append(text)
        query = _in_window(parse(text), chosen.window)
        asked.append(_ask(engine, Scope(chosen.project, query, now)))
    engine.dispose()
    result = {**_summary(asked, chosen), "other_text": other_text}
    if chosen.into is not None:
        with chosen.into.open("a") as file:
            file.write(json.dumps(result) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
