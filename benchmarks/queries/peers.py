"""Phoenix's answers to its nearest questions beside ours, at the same number of failures.

    python benchmarks/queries/peers.py [--failures 100000] [--environments DIR] [--times 15]

Phoenix is installed by pip into an environment of its own (kept in --environments for the next
time) and runs as its documentation says, on SQLite. Taking spans in at its rate would last an hour:
1,000 failed spans go in over OTLP as in ``ingest/peers.py``, and their rows are then copied in its
database, later in time, until there are as many as failures of ours (``fill.py``). Both servers
run at once and are asked in turns over HTTP, so that both have the same machine:

* the latest 50 failures of one tool and how many there are (Phoenix: ``spans`` with a filter and
  ``recordCount`` with the same filter, one GraphQL request; ours: ``/api/v1/failures``);
* failures by day over 90 days (Phoenix: ``spanCountTimeSeries``; ours: ``failures-over-time``,
  which has them by code as well);
* failures by tool: Phoenix has no such question, so it is asked for the count of each of 20 names
  in one request (ours: ``/api/v1/frequencies/tool``, all tools with rates and intervals).

Prints one line of JSON per question.
"""

from __future__ import annotations

import argparse
import http.client
import importlib.util
import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from urllib.parse import urlencode

HERE = Path(__file__).resolve().parent
INGEST = HERE.parent / "ingest"
sys.path[:0] = [str(HERE), str(INGEST)]

from ask import running  # noqa: E402
from fill import PROJECT, fill  # noqa: E402
from load import run  # noqa: E402
from processes import free_port  # noqa: E402

BASE: Final = 1_000
DAYS: Final = 90
NAMES: Final = 20
API: Final = "/api/v1"


def _ingest_peers() -> ModuleType:
    """Return ``ingest/peers.py``, whose name is that of this program."""
    spec = importlib.util.spec_from_file_location("ingest_peers", INGEST / "peers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ingest_peers"] = module
    spec.loader.exec_module(module)
    return module


def copy_spans(path: Path, wanted: int) -> int:
    """Copy the spans of Phoenix's database at *path* over 90 days until there are *wanted*."""
    with closing(sqlite3.connect(path, timeout=60)) as conn, conn:
        (have,) = conn.execute("SELECT count(*) FROM spans").fetchone()
        (traces,) = conn.execute("SELECT max(id) FROM traces").fetchone()
        copies = max(1, wanted // have)
        for copy in range(1, copies):
            back = f"-{copy * DAYS * 1_440 // copies} minutes"
            for table, changed in (
                ("traces", {"id": f"id + {copy * traces}", "trace_id": f"trace_id || '{copy:x}'"}),
                (
                    "spans",
                    {
                        "trace_rowid": f"trace_rowid + {copy * traces}",
                        "span_id": f"span_id || '{copy:x}'",
                    },
                ),
            ):
                names = [row[1] for row in conn.execute(f"PRAGMA table_info({table})")]
                if table == "spans":
                    names.remove("id")
                for at in ("start_time", "end_time"):
                    changed[at] = f"strftime('%Y-%m-%d %H:%M:%f', {at}, '{back}') || '000'"
                chosen = ", ".join(changed.get(name, f'"{name}"') for name in names)
                listed = ", ".join(f'"{name}"' for name in names)
                only = f"WHERE id <= {traces if table == 'traces' else have}"
                conn.execute(f"INSERT INTO {table} ({listed}) SELECT {chosen} FROM {table} {only}")
        (found,) = conn.execute("SELECT count(*) FROM spans").fetchone()
    with closing(sqlite3.connect(path, timeout=60)) as conn:
        conn.execute("ANALYZE")
    return int(found)


class Phoenix:
    """What is asked of a running Phoenix."""

    def __init__(self, port: int) -> None:
        self._conn = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        edges = self.ask("{ projects { edges { node { id name } } } }")["projects"]["edges"]
        self._project = next(e["node"]["id"] for e in edges if e["node"]["name"] == "default")

    def ask(self, query: str) -> Any:
        """Return the data of one GraphQL request."""
        body = json.dumps({"query": query})
        self._conn.request("POST", "/graphql", body, {"Content-Type": "application/json"})
        answer = self._conn.getresponse()
        found = json.loads(answer.read())
        if answer.status != 200 or found.get("errors"):
            raise RuntimeError(str(found)[:500])
        return found["data"]

    def _of_project(self, fields: str) -> Any:
        return self.ask(f'{{ node(id: "{self._project}") {{ ... on Project {{ {fields} }} }} }}')[
            "node"
        ]

    def latest(self, name: str) -> int:
        """Return how many failed spans *name* has; the latest 50 of them come with it."""
        where = json.dumps(f"status_code == 'ERROR' and name == '{name}'")
        found = self._of_project(
            f"recordCount(filterCondition: {where})"
            f" spans(first: 50, sort: {{col: startTime, dir: desc}}, filterCondition: {where})"
            " { edges { node { name statusCode statusMessage startTime latencyMs spanId } } }"
        )
        assert len(found["spans"]["edges"]) == min(50, found["recordCount"])
        return int(found["recordCount"])

    def by_day(self) -> int:
        """Return the failed spans of 90 days, counted by day."""
        now = datetime.now(UTC)
        begin = (now - timedelta(days=DAYS)).isoformat()
        found = self._of_project(
            f'spanCountTimeSeries(timeRange: {{start: "{begin}", end: "{now.isoformat()}"}},'
            " timeBinConfig: {scale: DAY}) { data { timestamp errorCount } }"
        )
        return sum(int(each["errorCount"] or 0) for each in found["spanCountTimeSeries"]["data"])

    def by_name(self, names: list[str]) -> int:
        """Return the failed spans of *names*, one count each."""
        fields = " ".join(
            f"n{place}: recordCount(filterCondition: "
            + json.dumps(f"status_code == 'ERROR' and name == '{name}'")
            + ")"
            for place, name in enumerate(names)
        )
        return sum(int(each) for each in self._of_project(fields).values())


def _timed(ask: Callable[[], int]) -> tuple[float, int]:
    began = time.perf_counter()
    found = ask()
    return (time.perf_counter() - began) * 1_000, found


def _line(question: str, peer: str, cpu_s: float, seen: list[tuple[float, int]]) -> str:
    times = [each for each, _ in seen[1:]]
    return json.dumps(
        {
            "question": question,
            "product": peer,
            "median_ms": round(statistics.median(times), 1),
            "worst_ms": round(max(times), 1),
            "first_ms": round(seen[0][0], 1),
            "server_cpu_ms": round(cpu_s / len(seen) * 1_000, 1),
            "counted": seen[-1][1],
        }
    )


def main() -> None:
    """Install, load, ask in turns, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--failures", type=int, default=100_000)
    parser.add_argument("--environments", type=Path, default=Path(tempfile.gettempdir()) / "peers")
    parser.add_argument("--times", type=int, default=15)
    chosen = parser.parse_args()
    peers = _ingest_peers()
    environment = chosen.environments / "phoenix"
    peers.install("arize-phoenix", environment)
    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = Path(folder) / "phoenix", f"sqlite:///{folder}/toolfault.db"
        theirs.mkdir()
        fill(ours, chosen.failures, now=int(time.time()) // 3_600 * 3_600 * 1_000_000)
        peer = peers.phoenix(theirs, environment)
        with peer.server as server:
            batches = BASE // peers.BATCH
            run([server.port], list(peer.requests(batches)), connections=2, at_most_seconds=120)
            until = time.monotonic() + 300
            while (stored := peer.count()) < BASE and time.monotonic() < until:
                time.sleep(0.5)
        spans = copy_spans(theirs / "phoenix.db", chosen.failures)
        sys.stdout.write(json.dumps({"spans": spans, "over_otlp": stored}) + "\n")
        peer = peers.phoenix(theirs, environment)
        with peer.server as server, running(ours, free_port()) as own:
            _ask_in_turns(Phoenix(server.port), server, own, chosen.times)


def _ask_in_turns(phoenix: Phoenix, server: Any, own: Any, times: int) -> None:
    def get(path: str, **given: Any) -> Any:
        return json.loads(own.get(f"{API}/{path}?{urlencode({'project': PROJECT, **given})}"))

    def by_day() -> int:
        found = get("failures-over-time", q=f"since:{DAYS}d", bucket="day", top=50)
        rest = found["other"]["total"] if found["other"] else 0
        return rest + sum(int(each["total"]) for each in found["series"])

    names = [f"tool_{number}" for number in range(NAMES)]
    questions: dict[str, tuple[Callable[[], int], Callable[[], int]]] = {
        "latest 50 of a tool, with total": (
            lambda: phoenix.latest("tool_0"),
            lambda: int(get("failures", q="tool:tool_00")["total"]),
        ),
        "failures by day, 90 days": (phoenix.by_day, by_day),
        "failures by tool": (
            lambda: phoenix.by_name(names),
            lambda: sum(int(row["failures"]) for row in get("frequencies/tool")["rows"]),
        ),
    }
    for question, (theirs, ours) in questions.items():
        seen: dict[str, list[tuple[float, int]]] = {"phoenix": [], "toolfault": []}
        cpu = {"phoenix": 0.0, "toolfault": 0.0}
        for _ in range(times + 1):
            for product, ask, used in (
                ("phoenix", theirs, server.cpu_seconds),
                ("toolfault", ours, own.cpu_s),
            ):
                before = used()
                seen[product].append(_timed(ask))
                cpu[product] += used() - before
        for product, found in seen.items():
            sys.stdout.write(_line(question, product, cpu[product], found) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
