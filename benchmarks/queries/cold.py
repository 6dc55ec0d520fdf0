"""Every page while nothing is remembered, as the first reader after a start of the server gets it.

    python benchmarks/queries/cold.py --database sqlite:///million.db [--times 3] [--pages / /tools]

The database is one that queries/fill.py has filled. The application runs in this process, without
its network, and does not ask ahead; before each page it forgets all that it has counted. A page
that says that it still counts is asked for again until it is there. Prints the clock and the
processor's time of each page (on a busy machine only the latter says something), and at last the
most memory that the process held. What a start loads is loaded before, and its time printed.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from fastapi.testclient import TestClient
from sqlalchemy import Engine

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from ask import PAGES  # noqa: E402
from fill import PROJECT  # noqa: E402

from toolfault_collector.clock import now_us  # noqa: E402
from toolfault_collector.http.server import collect_garbage_rarely  # noqa: E402
from toolfault_collector.runtime import Collector  # noqa: E402
from toolfault_collector.settings import Settings  # noqa: E402
from toolfault_collector.storage.database.engine import (  # noqa: E402
    open_engine,
    read_connection,
)
from toolfault_dashboard import queries  # noqa: E402
from toolfault_dashboard.access import signin  # noqa: E402
from toolfault_dashboard.app import create_app  # noqa: E402
from toolfault_dashboard.queries import Scope  # noqa: E402
from toolfault_dashboard.queries.counting.segments import MOST_ROWS, keep_at_most  # noqa: E402
from toolfault_dashboard.search import parse  # noqa: E402

ORIGIN: Final = "http://127.0.0.1:8321"
TARGET: Final = 500.0  # milliseconds
TARGETS: Final = {"/compare": 1_000.0, "/changes/": 1_000.0}
STILL_COUNTING: Final = (202,)


def some_ids(url: str) -> dict[str, str]:
    """Return ids that addresses of pages name."""
    engine = open_engine(url)
    with read_connection(engine) as conn:
        project = queries.project_by_name(conn, PROJECT)
        assert project is not None, f"{url} has no project {PROJECT}"
        scope = Scope(project.id, parse(""), now_us())
        newest = queries.failure_list(conn, scope.narrowed("since:7d"), limit=1, total=1).rows[0]
        change = queries.changes(conn, scope)[0]
    engine.dispose()
    return {
        "failure": newest.event_id,
        "chain": newest.chain_id or "",
        "change": change.event_id,
    }


def measure(url: str, pages: Sequence[str], times: int) -> Iterator[tuple[str, float, float]]:
    """Yield each page with the milliseconds of the clock and of the processor that it took."""
    settings = Settings(database_url=url)
    engine = open_engine(url)
    app = create_app(settings, collector=Collector(settings, engine=engine))
    with TestClient(app, base_url=ORIGIN) as client:
        token = signin.create_link(engine, now=now_us(), name="bench", role="admin")
        client.post("/sign-in", data={"token": token})
        began = time.process_time()
        client.get("/compare?before=since%3A2h+until%3A1h&after=since%3A1h")
        collect_garbage_rarely()
        loading = (time.process_time() - began) * 1_000
        sys.stdout.write(f"loading what the first page needs: {loading:,.0f} ms\n\n")
        for page in pages:
            each = [_once(client, page, forget=engine) for _ in range(times)]
            clock, cpu = (statistics.median(column) for column in zip(*each, strict=True))
            yield page, clock, cpu
    engine.dispose()


def _once(client: TestClient, page: str, *, forget: Engine) -> tuple[float, float]:
    keep_at_most(forget, MOST_ROWS)
    began, used = time.perf_counter(), time.process_time()
    while (answer := client.get(page)).status_code in STILL_COUNTING:
        pass
    if answer.status_code != 200:
        raise RuntimeError(f"{page}: {answer.status_code} {answer.text[:300]}")
    return (time.perf_counter() - began) * 1_000, (time.process_time() - used) * 1_000


def main() -> None:
    """Ask for every page, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--database", required=True, help="URL of a database filled before")
    parser.add_argument("--times", type=int, default=3, help="how often each page is asked for")
    parser.add_argument("--pages", nargs="*", default=PAGES, help="only these")
    chosen = parser.parse_args()
    pages = [page.format(**some_ids(chosen.database)) for page in chosen.pages]
    lines = measure(chosen.database, pages, chosen.times)
    for number, (page, clock, cpu) in enumerate(lines):
        if not number:
            sys.stdout.write("| page, cold | clock ms | CPU ms | target ms |\n|---|---|---|---|\n")
        target = next((most for head, most in TARGETS.items() if page.startswith(head)), TARGET)
        shown = f"**{cpu:,.0f}**" if cpu > target else f"{cpu:,.0f}"
        sys.stdout.write(f"| {page} | {clock:,.0f} | {shown} | {target:,.0f} |\n")
        sys.stdout.flush()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(f"\npeak memory: {peak:,.0f} MiB\n")


if __name__ == "__main__":
    main()
