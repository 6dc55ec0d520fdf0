"""What a page costs: server time, bytes, paint and long tasks, at a database of your choice.

    python benchmarks/pages/pages.py                             on three days of the demo
    python benchmarks/pages/pages.py --database-url sqlite:///FILE --project NAME
    python benchmarks/pages/pages.py --phoenix DIR               and Phoenix, installed into DIR

Each page is asked for by a plain client (server time: median and 95th percentile, one request at a
time, the body read to its end) and opened by a headless Chromium with an empty cache, then again
(bytes over the wire, Largest Contentful Paint, tasks above 50 ms). The targets are those of the
dashboard: 200 ms at the 95th percentile, 250 KB and then 60 KB, 1 s, no task above 100 ms.

Phoenix draws its pages in the browser from several answers. Its nearest pages, the lists of a
project's spans and traces, are opened in the same way, after --spans failed tool calls as OTLP
spans; its server time is that of all answers that the page waits for, as the browser timed them.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from playwright.sync_api import TimeoutError as NothingDrawn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the checkout: tests are beside us
from phoenix import ASKED, filled_phoenix
from phoenix import PAGES as PHOENIX_PAGES
from tests.dashboard.addresses import LISTS
from tests.e2e.browsing import chromium_path, launched, lived_through, signed_in

PAGES = (
    *(path for path in LISTS if path not in ("/compare", "/start", "/views", "/help")),
    "/failures?group=kind",
    "/changes/{change}",
    "/compare?before=since:14d+until:7d&after=since:7d",
)
WATCH = """
window.paint = 0;
window.long = [];
const watch = (type, note) => new PerformanceObserver(list => list.getEntries().forEach(note))
  .observe({type, buffered: true});
watch("largest-contentful-paint", each => { window.paint = each.startTime; });
watch("longtask", each => { window.long.push(each.duration); });
"""
VISITS = 6  # of each page, each with an empty cache and then again
COMMAND = Path(sys.executable).parent / "toolfault"


@dataclass(frozen=True)
class Measured:
    """One page."""

    path: str
    cold_ms: float  # the first request, when nothing was counted yet
    median_ms: float
    p95_ms: float
    first_bytes: int
    again_bytes: int
    paint_ms: float
    longest_task_ms: float
    worst_task_ms: float  # of all visits; the others are medians over them


@contextmanager
def serving(database_url: str, folder: Path) -> Iterator[str]:
    """Run ``toolfault serve`` while the block lasts and yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [COMMAND, "serve", "--port", str(port), "--database-url", database_url]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
        try:
            _await(f"{address}/readyz", process)
            yield address
        finally:
            process.terminate()
            process.wait(10)


def _await(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("The server did not start; its log is in the folder of the run.")


def said(database_url: str, *arguments: str) -> str:
    """Return the last line that a command said."""
    environment = {**os.environ, "TOOLFAULT_DATABASE_URL": database_url}
    done = subprocess.run(
        [COMMAND, *arguments], env=environment, capture_output=True, text=True, check=True
    )
    return (done.stdout or done.stderr).strip().splitlines()[-1].strip()


def fill(database_url: str, address: str) -> None:
    """Send three days of the demo's history."""
    key = said(database_url, "keys", "create", "--project", "demo", "--kind", "ingest")
    lived_through(address.replace("http://", f"http://{key}@"), days=3)


def measure(
    browser: Browser, address: str, link: str, pages: Sequence[str], project: str, rounds: int
) -> Iterator[Measured]:
    """Measure the pages, one after the other."""
    cookies = signed_in(browser, link)
    header = "; ".join(f"{each['name']}={each['value']}" for each in cookies)
    for path in pages:
        url = address + path
        if "{change}" in path:
            url = url.format(change=_newest_change(address, project, header))
        if project:
            url += f"{'&' if '?' in path else '?'}project={project}"
        cold = _cold_time(url, header)
        times = sorted(_server_time(url, header) for _ in range(rounds))
        visits = [_visit(browser, url, cookies) for _ in range(VISITS)]
        firsts, agains = zip(*visits, strict=True)
        tasks = [max(first[2], again[2]) for first, again in visits]
        yield Measured(
            path=path,
            cold_ms=cold,
            median_ms=statistics.median(times),
            p95_ms=_percentile(times),
            first_bytes=round(statistics.median(each[0] for each in firsts)),
            again_bytes=round(statistics.median(each[0] for each in agains)),
            paint_ms=statistics.median(each[1] for each in firsts),
            longest_task_ms=statistics.median(tasks),
            worst_task_ms=max(tasks),
        )


_Opened = tuple[int, float, float, float]


def _visit(browser: Browser, url: str, cookies: object) -> tuple[_Opened, _Opened]:
    """Open *url* with an empty cache, and again."""
    fresh = browser.new_context()
    fresh.add_cookies(cookies)  # type: ignore[arg-type]
    first, again = opened(fresh, url), opened(fresh, url)
    fresh.close()
    return first, again


def _newest_change(address: str, project: str, cookie: str) -> str:
    """Return the id of the first change in the list."""
    url = f"{address}/changes?project={project}" if project else f"{address}/changes"
    request = urllib.request.Request(url, headers={"Cookie": cookie})
    with urllib.request.urlopen(request, timeout=120) as answer:
        found = re.search(r"/changes/([0-9a-f-]{36})", answer.read().decode())
    if found is None:
        raise SystemExit("No change is recorded in this project; name others with --only.")
    return found[1]


def measure_phoenix(browser: Browser, home: Path, folder: Path, spans: int) -> Iterator[Measured]:
    """Measure the nearest pages of Phoenix: opened some times, each time with an empty cache."""
    with filled_phoenix(home, folder, spans) as address:
        for path, name in PHOENIX_PAGES.items():
            cold = _phoenix_page(browser, address + path).cold_ms
            visits = [_phoenix_page(browser, address + path) for _ in range(VISITS)]
            times = sorted(each.median_ms for each in visits)
            middle = visits[len(visits) // 2]
            yield Measured(
                path=name,
                cold_ms=cold,
                median_ms=statistics.median(times),
                p95_ms=_percentile(times),
                first_bytes=middle.first_bytes,
                again_bytes=middle.again_bytes,
                paint_ms=statistics.median(each.paint_ms for each in visits),
                longest_task_ms=statistics.median(each.longest_task_ms for each in visits),
                worst_task_ms=max(each.worst_task_ms for each in visits),
            )


def _percentile(times: list[float]) -> float:
    """Return the 95th percentile of sorted *times*."""
    return times[max(0, round(0.95 * len(times)) - 1)]


def _phoenix_page(browser: Browser, url: str) -> Measured:
    fresh = browser.new_context()
    fresh.add_init_script(ASKED)
    first = opened(fresh, url, settled=True)
    again = opened(fresh, url, settled=True)
    fresh.close()
    longest = max(first[2], again[2])
    return Measured(
        url, first[3], again[3], again[3], first[0], again[0], first[1], longest, longest
    )


def _cold_time(url: str, cookie: str) -> float:
    """Ask until there is an answer: a page is stopped after ten seconds, and goes on from there."""
    begun = time.perf_counter()
    for _ in range(6):
        try:
            _server_time(url, cookie)
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
        else:
            break
    return (time.perf_counter() - begun) * 1000


def _server_time(url: str, cookie: str) -> float:
    request = urllib.request.Request(url, headers={"Cookie": cookie, "Accept-Encoding": "gzip"})
    begun = time.perf_counter()
    with urllib.request.urlopen(request, timeout=120) as answer:
        answer.read()
    return (time.perf_counter() - begun) * 1000


def opened(context: object, url: str, *, settled: bool = False) -> tuple[int, float, float, float]:
    """Open *url* in a new tab: bytes over the wire, largest paint, longest task, server time.

    Args:
        context: The browser's window.
        url: What to open.
        settled: Whether to wait until nothing was asked for half a second, which a page that
            listens for events never is.
    """
    page = context.new_page()  # type: ignore[attr-defined]
    page.add_init_script(WATCH)
    wire = context.new_cdp_session(page)  # type: ignore[attr-defined]
    wire.send("Network.enable")
    sizes: list[float] = []
    wire.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    page.goto(url, wait_until="networkidle" if settled else "load")
    if settled:  # what the scripts draw comes after what they asked for
        with suppress(NothingDrawn):
            page.wait_for_function("window.paint > 0", timeout=5_000)
    page.wait_for_timeout(400)
    paint, long, asked = page.evaluate(
        "[window.paint, Math.max(0, ...window.long), window.asked ? window.asked() : 0]"
    )
    page.close()
    return round(sum(sizes)), paint, long, asked


def _short(path: str) -> str:
    return path if path.startswith("Phoenix") or "group" in path else path.partition("?")[0]


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--database-url", default="", help="by default three days of the demo")
    parser.add_argument("--project", default="", help="by default the oldest one")
    parser.add_argument("--only", nargs="*", help="pages whose path begins like this")
    parser.add_argument("--rounds", type=int, default=20, help="requests per page, default 20")
    parser.add_argument(
        "--phoenix", type=Path, help="measure Phoenix too, installed into this folder"
    )
    parser.add_argument("--spans", type=int, default=20_000, help="sent to Phoenix, default 20,000")
    given = parser.parse_args()
    chromium = chromium_path()
    if chromium is None:
        raise SystemExit("No Chromium found; set TOOLFAULT_CHROMIUM to its path.")
    pages = [each for each in PAGES if not given.only or each.startswith(tuple(given.only))]
    heads = ("cold", "median", "p95", "first", "again", "paint", "task", "worst")
    print(f"{'page':<22}" + "".join(f"{head:>11}" for head in heads), flush=True)
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        folder = Path(made)
        browser = launched(playwright, chromium)
        if given.phoenix:
            home = given.phoenix.resolve()
            for row in measure_phoenix(browser, home, folder, given.spans):
                print(_line(row), flush=True)
        url = given.database_url or f"sqlite:///{folder / 'toolfault.db'}"
        with serving(url, folder) as address:
            if not given.database_url:
                fill(url, address)
            link = said(url, "sign-in-link", "--url", address)
            for row in measure(browser, address, link, pages, given.project, given.rounds):
                print(_line(row), flush=True)
        browser.close()


def _line(row: Measured) -> str:
    sizes = "".join(f"{each / 1000:>8.1f} KB" for each in (row.first_bytes, row.again_bytes))
    before, after = (
        "".join(f"{each:>8.0f} ms" for each in part)
        for part in (
            (row.cold_ms, row.median_ms, row.p95_ms),
            (row.paint_ms, row.longest_task_ms, row.worst_task_ms),
        )
    )
    return f"{_short(row.path):<22}{before}{sizes}{after}"


if __name__ == "__main__":
    main()
