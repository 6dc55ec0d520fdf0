"""What one call costs that arrives late in a long chain, beside those that come in order.

    python benchmarks/ingest/late.py [--sizes 1000,5000,20000] [--postgresql]

Every chain is stored in order first, 500 calls to a transaction, and of the last 500 the time per
call is noted. Then one call comes late, in a transaction of its own: a failure or a success before
the chain, at its front, in its middle or 10 calls from its end, each into a chain of its own. One
line of JSON for each: microseconds and milliseconds of the clock, and of the processor in this
process (on SQLite all of the work; beside other load the better figure).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent)]

from databases import postgres_database, sqlite_database  # noqa: E402
from sqlalchemy import Engine  # noqa: E402

import toolfault_migrations  # noqa: E402
from toolfault_collector.admin.projects import ensure_project  # noqa: E402
from toolfault_collector.clock import DAY_US, SECOND_US, format_time, now_us  # noqa: E402
from toolfault_collector.storage.database.engine import open_engine, write_transaction  # noqa: E402
from toolfault_collector.storage.store import store_events  # noqa: E402

BATCH = 500
BEGAN = now_us() - 10 * DAY_US
PLACES = ("before", "front", "middle", "end")


def main() -> None:
    """Print what late calls cost."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--sizes", default="1000,5000,20000", help="calls of the chains")
    parser.add_argument("--postgresql", action="store_true", help="instead of SQLite")
    asked = parser.parse_args()
    with (postgres_database if asked.postgresql else sqlite_database)() as (url, _):
        engine = open_engine(url)
        toolfault_migrations.upgrade(engine)
        for size in map(int, asked.sizes.split(",")):
            for success in (False, True):
                for place in PLACES:
                    late = {"size": size, "late": "success" if success else "failure"}
                    measured = _measure(engine, size, place=place, success=success)
                    print(json.dumps({**late, "place": place, **measured}), flush=True)
        engine.dispose()


def _measure(engine: Engine, size: int, *, place: str, success: bool) -> dict[str, float]:
    session = f"{size}-{place}-{success}"
    behind = {"before": -1, "front": 0, "middle": size // 2, "end": size - 10}[place]
    took = cpu = 0.0
    for first in range(0, size, BATCH):
        numbers = range(first, min(size, first + BATCH))
        took, cpu = _store(engine, [_event(session, number) for number in numbers])
    late, late_cpu = _store(engine, [_event(session, behind + 0.5, success=success)])
    return {
        "in_order_us": round(took / len(numbers) * 1e6, 1),
        "in_order_cpu_us": round(cpu / len(numbers) * 1e6, 1),
        "late_ms": round(late * 1e3, 2),
        "late_cpu_ms": round(late_cpu * 1e3, 2),
    }


def _store(engine: Engine, events: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """Store *events* and return the seconds it took, by the clock and of the processor."""
    began, worked = time.perf_counter(), time.process_time()
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "late")
        receipt = store_events(conn, project, events, received_at=now_us())
    took = time.perf_counter() - began, time.process_time() - worked
    assert receipt.accepted == len(events), receipt
    return took


def _event(session: str, number: float, *, success: bool = False) -> dict[str, Any]:
    at = BEGAN + int(number * 2 * SECOND_US)
    event: dict[str, Any] = {
        "type": "tool_call",
        "event_id": f"01890a5d-ac96-774b-bcce-{hash((session, number)) % 2**48:012x}",
        "occurred_at": format_time(at),
        "session_id": session,
        "turn": f"t{number}",
        "tool": "http",
        "success": success,
        "duration_ms": 1.0,
    }
    if not success:
        issue = {"code": "wrong_type", "field": "port"}
        event["error"] = {
            "code": "wrong_type",
            "audience": "llm",
            "category": "parameter",
            "issues": [issue],
            "renderings": {"llm": "port must be an integer"},
        }
    return event


if __name__ == "__main__":
    main()
