"""The demo: deterministic agents, real everything else, from the command to the page."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import select
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

import httpx2
import pytest
from tests.live_server import served
from tests.starting import completed

from toolfault_dashboard.cli.app import run
from toolfault_demo.chance import DAY, SimulatedPace, StoppedError
from toolfault_demo.fleet import FLEET, Assignment, Deployment, assignments
from toolfault_demo.history import converse, live_through
from toolfault_demo.ledger import Ledger
from toolfault_demo.live import go_on
from toolfault_demo.problems import (
    ARMS,
    CHANGES,
    EXPERIMENT,
    PLANTED,
    PLANTED_OTHERWISE,
    RecordedChange,
)
from toolfault_demo.toolkit import Toolkit
from toolfault_demo.world import World

pytestmark = pytest.mark.slow

SEED = 7
LONG = pytest.mark.long
Said = Callable[..., Any]


@pytest.fixture
def said(demo_database: Path, capfd: pytest.CaptureFixture[str]) -> Said:
    """A function that runs a command on the demo's database and returns the JSON it prints."""

    def run_it(*arguments: str) -> Any:
        url = f"sqlite:///{demo_database}"
        code = run([*arguments, "--project", "demo", "--database-url", url])
        printed = capfd.readouterr()
        assert code == 0, printed.err
        return json.loads(printed.out)

    return run_it


@cache
def lived(*, seed: int, until: float, days: int) -> Ledger:
    """The simulation's own count of a history that is sent nowhere; nobody may change it."""
    return asyncio.run(live_through(dsn=None, seed=seed, until=until, days=days))


def test_the_seed_decides_about_the_history():
    """With one seed and one moment the same calls are made, with another seed others."""
    until = 1_794_000_000.0
    live = lived.__wrapped__
    first, again, other = (live(seed=seed, until=until, days=1) for seed in (SEED, SEED, 8))
    assert first == again
    assert first.calls != other.calls


def test_the_server_counts_what_the_agents_did(said: Said, last_monday: float):
    """Calls and failures by tool, as summed up by the server, are the simulation's own."""
    ledger = lived(seed=SEED, until=last_monday, days=14)
    summary = said("summary", "--json")

    assert summary["conversations"] == ledger.conversations
    assert summary["calls"] == ledger.calls.total()
    assert summary["failures"] == ledger.failures.total()
    for tool, calls in ledger.calls.items():
        expected = {"calls": calls, "failures": ledger.failures[tool]}
        assert summary["tools"][tool] == expected, tool


def test_the_server_counts_what_the_agents_did_again(said: Said, last_monday: float):
    """Repeated executions are those of the simulation: no idempotent tool, one forgetful model."""
    reads = {"read_file", "run_sql", "search_flights", "get_weather", "convert_currency"}
    ledger = lived(seed=SEED, until=last_monday, days=14)
    rows = said("table", "repeated_executions", "--format", "json")

    found = {row["tool"]: row["calls"] for row in rows}
    assert found == {tool: calls for tool, calls in (+ledger.repeated).items() if tool not in reads}
    assert found.keys() == {"book_hotel", "send_email"}
    assert {(row["model"], row["idempotent"]) for row in rows} == {("atlas-mini", False)}


@pytest.fixture(
    scope="module", params=[SEED, pytest.param(1, marks=LONG), pytest.param(2, marks=LONG)]
)
def two_weeks(request: pytest.FixtureRequest, last_monday: float) -> Ledger:
    """The simulation's own count of two weeks, always the same days of the week."""
    return lived(seed=request.param, until=last_monday, days=14)


def test_the_planted_problems_rank_as_documented(two_weeks: Ledger):
    """The round trips that the planted problems cost fall in the order of ``PLANTED``."""
    costs = {(tool, field): trips for (tool, field), trips in two_weeks.round_trips.items()}
    cost = [costs[problem.tool, problem.field or ""] for problem in PLANTED]

    assert cost == sorted(cost, reverse=True)
    assert cost[-1] > 0


def test_the_recorded_changes_did_what_they_say(two_weeks: Ledger):
    """http_request fails far less after its change, get_weather more, read_file as before."""
    same, improved, worsened = CHANGES
    before = {c.tool: two_weeks.failure_rate(c.tool, 0, int(c.after_days) - 1) for c in CHANGES}
    after = {c.tool: two_weeks.failure_rate(c.tool, int(c.after_days), 13) for c in CHANGES}

    assert after[improved.tool] < before[improved.tool] / 2
    assert after[worsened.tool] > before[worsened.tool] + 0.05
    assert abs(after[same.tool] - before[same.tool]) < 0.05


@pytest.mark.parametrize(
    ("change", "verdict"),
    list(zip(CHANGES, ("no detectable change", "improved", "worse"), strict=True)),
    ids=lambda value: getattr(value, "tool", value),
)
def test_the_dashboard_sees_what_a_recorded_change_did(
    said: Said, change: RecordedChange, verdict: str
):
    """Before against after, the failure rate of each changed tool gets the planted verdict."""
    assert verdict_on(said, "--change", change.label) == verdict


def test_the_dashboard_sees_that_the_experiment_worked(said: Said):
    """Reporting all issues at once makes create_ticket fail less than one at a time."""
    arms = [f"{EXPERIMENT}={arm}" for arm in ARMS]

    assert verdict_on(said, "--variants", *arms, "tool:create_ticket") == "improved"


def verdict_on(said: Said, *comparison: str) -> str:
    """What ``toolfault compare`` says about the failure rate."""
    metrics = said("compare", *comparison, "--format", "json")["effect"]["metrics"]
    return str(next(one["verdict"] for one in metrics if one["metric"] == "failure_rate"))


def fixes_of(said: Said, *query: str) -> list[dict[str, Any]]:
    """The remedies that ``toolfault table fixes`` lists."""
    listed = said("table", "fixes", *query, "--format", "json")
    return [row for row in listed if row["remedy"] != "open"]


def test_fix_next_ranks_the_planted_problems_first(said: Said):
    """All planted problems are found, in their order, and the top of the list is theirs alone.

    On any day of the week: three weeks hold both that were lived through.
    """
    rows = [(row["tool"], row["field"], row["remedy"]) for row in fixes_of(said, "since:21d")]
    known = [(one.tool, one.field or "", one.remedy) for one in (*PLANTED, *PLANTED_OTHERWISE)]
    assert set(known) <= set(rows)
    places = [rows.index(one) for one in known[: len(PLANTED)]]
    assert places == sorted(places)
    # A message that names one mistake of three helps less than others: it is there twice.
    assert {row[:2] for row in rows[:8]} <= {one[:2] for one in known}


def true_saving(week: list[Assignment], start: float) -> int:
    """Round trips of http_request that the improvement spares: one week lived with and without."""
    spent = []
    for after_days in (6.9, None):
        ledger = Ledger()
        toolkit = Toolkit(World(SimulatedPace(start), started_at=start, scale=1.0))
        for one in week:
            assert isinstance(toolkit.world.pace, SimulatedPace)
            toolkit.world.pace.move_to(one.starts_at)
            lived = one if after_days is None else replace(one, after_days=after_days)
            asyncio.run(converse(lived, toolkit, seed=SEED, ledger=ledger))
        trips = ledger.round_trips.items()
        spent.append(sum(count for (tool, _), count in trips if tool == "http_request"))
    return spent[0] - spent[1]


def test_the_predicted_saving_comes_true(said: Said, last_monday: float):
    """The first week predicts what the improvement saves in the second, within the interval.

    The truth is the same week lived twice by the same agents, with the old tool and with the new.
    """
    moment = datetime.fromtimestamp(last_monday - 7 * 86_400, UTC).strftime("%Y-%m-%d")
    predicted = [row for row in fixes_of(said, f"tool:http_request until:{moment}")
                 if not row["estimated"]]  # fmt: skip
    assert {row["remedy"] for row in predicted} >= {"bool_from_string", "json_from_string"}
    # What no remedy is known for was mended by the same improvement: its cost is saved.
    weekly = [
        (row[f"{what}_per_week"], row[f"{what}_per_week_high"])
        for row in predicted
        for what in ("cost" if row["saved"] is None else "saved",)
    ]
    total = sum(saved for saved, _ in weekly)
    reach = math.sqrt(sum((high - saved) ** 2 for saved, high in weekly))

    every = assignments(seed=SEED, until=last_monday, days=14)
    week = sorted((one for one in every if one.after_days >= 7), key=lambda one: one.starts_at)
    truth = true_saving(week, last_monday - 14 * 86_400)
    assert total - reach < truth < total + reach

    # What the server says was saved since, in the week after, holds the truth too.
    rows = [row for row in fixes_of(said, "tool:http_request") if not row["estimated"]]
    assert {row["changed_by"] for row in rows} == {CHANGES[1].label}
    saved = sum(row["saved_since"] for row in rows)
    reach = math.sqrt(sum((row["saved_since_high"] - row["saved_since"]) ** 2 for row in rows))
    assert saved - reach < truth < saved + reach


class Fortnight(SimulatedPace):
    """Two weeks of simulated time, after which agents are told to stop."""

    def __init__(self, start: float) -> None:
        super().__init__(start)
        self._end = start + 14 * DAY

    def move_to(self, moment: float) -> None:
        """Move the clock, unless the two weeks are over by then."""
        if moment >= self._end:
            raise StoppedError
        super().move_to(moment)


def test_the_agents_go_on_at_the_pace_of_the_history(last_monday: float):
    """In two weeks the live fleet makes as many calls as in the history, within three errors."""
    by_day = [0] * 14
    for (_, day), calls in lived(seed=SEED, until=last_monday, days=14).calls_by_day.items():
        by_day[day] += calls
    kinds = ([*by_day[:5], *by_day[7:12]], [*by_day[5:7], *by_day[12:]])  # workdays and weekends
    error = math.sqrt(sum(len(kind) * statistics.variance(kind) for kind in kinds))

    ledger = Ledger()
    for post in FLEET:
        deployment = Deployment(post.agent, "prod", post.releases[-1][1])
        pace = Fortnight(last_monday - 14 * DAY)
        with suppress(StoppedError):
            asyncio.run(go_on(post, deployment, pace, seed=SEED, ledger=ledger))

    assert abs(ledger.calls.total() - sum(by_day)) < 3 * math.sqrt(2) * error
    assert error < sum(by_day) / 20  # so a pace that is wrong by a quarter is seen


def _environ(folder: Path) -> dict[str, str]:
    """The environment of a demo that makes its files in *folder*."""
    return {**os.environ, "TMPDIR": str(folder), "COLUMNS": "200", "NO_COLOR": "1"}


class Demo:
    """``toolfault demo`` as a person starts it, and what it says."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        command = [str(Path(sys.executable).with_name("toolfault")), "demo", *arguments]
        self.said: list[str] = []
        self._lines: Queue[str] = Queue()
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=_environ(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Read on until a line matches *pattern*."""
        until = time.monotonic() + 120
        while time.monotonic() < until:
            try:
                self.said.append(self._lines.get(timeout=1))
            except Empty:
                assert self.process.poll() is None, "".join(self.said)
                continue
            if match := re.search(pattern, self.said[-1]):
                return match
        pytest.fail("the demo did not say what was expected:\n" + "".join(self.said))

    def rest(self) -> list[str]:
        """Everything said until the end."""
        self._reader.join(10)
        while not self._lines.empty():
            self.said.append(self._lines.get())
        return self.said

    def close(self) -> None:
        """End it, however far it is, its server with it, and let go of its output."""
        if self.process.poll() is None:
            try:
                self.stop()
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def stop(self) -> int:
        """Press Ctrl-C and return the exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Demo]:
    """A running demo with a short history, in a shell without the command, as in `make demo`."""
    monkeypatch.setenv("PATH", os.defpath)
    running = Demo(tmp_path, "--port", "0", "--days", "1")
    try:
        yield running
    finally:
        running.close()


def test_the_command_serves_pages_that_grow_and_leaves_nothing_behind(
    demo: Demo, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    """It prints a link, tells its history, goes on, and on Ctrl-C removes what it made.

    The command that it prints makes another link.
    """
    link = demo.wait_for(r"(http://\S+/sign-in\?token=\S+)").group(1)
    calls = int(demo.wait_for(r"([\d,]+) calls, [\d,]+ of them failed").group(1).replace(",", ""))
    (database,) = tmp_path.rglob("demo.db")

    address, _, token = link.partition("/sign-in?token=")
    with httpx2.Client(base_url=address, trust_env=False, timeout=60) as browser:
        assert browser.get(link).status_code == 200
        assert browser.post("/sign-in", data={"token": token}).status_code == 303
        with browser.stream("GET", "/live/events") as arriving:  # its agents go on
            assert "event: failure" in arriving.iter_lines()
    assert run(["summary", "--database-url", f"sqlite:///{database}", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["calls"] > calls

    printed = re.search("Another link: +(.+)", "".join(demo.said))
    assert printed
    another = subprocess.run(
        shlex.split(printed[1]), capture_output=True, text=True, check=True
    ).stdout
    assert re.match(r"http://127\.0\.0\.1:\d+/sign-in\?token=", another)

    assert demo.stop() == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long  # a server that serves alone is asked in `collector/test_stop`
def test_a_second_ctrl_c_ends_the_demo_at_once(demo: Demo, tmp_path: Path):
    """While its server finishes a request: no traceback, no process, no folder left."""
    port = int(demo.wait_for(r"http://127.0.0.1:(\d+)/sign-in").group(1))
    demo.wait_for("[0-9,]+ calls, [0-9,]+ of them failed")
    started = _descendants(demo.process.pid)
    half = b"POST /sign-in HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nt"
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock:
        sock.sendall(half)
        demo.process.send_signal(signal.SIGINT)
        while any(b"toolfault_demo" in _command(pid) for pid in started):
            assert demo.process.poll() is None  # the agents end first
        assert demo.stop() == 0
        assert not any(_command(pid) for pid in started)
    assert "Traceback" not in "".join(demo.rest())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("killed", ["demo", pytest.param("fleet", marks=LONG)])
def test_agents_end_with_what_started_them(demo: Demo, tmp_path: Path, killed: str):
    """Whoever is killed can stop nobody, and the agents go on for nobody."""
    demo.wait_for("[0-9,]+ calls, [0-9,]+ of them failed")
    (fleet,) = (pid for pid in _descendants(demo.process.pid) if b"toolfault_demo" in _command(pid))
    while len(agents := [p for p in _descendants(fleet) if b"spawn_main" in _command(p)]) < len(
        FLEET
    ):
        assert demo.process.poll() is None
    ends = {pid: os.pidfd_open(pid) for pid in (*agents, fleet)}
    others = [pid for pid in _descendants(demo.process.pid) if pid not in ends]
    try:
        os.kill(demo.process.pid if killed == "demo" else fleet, signal.SIGKILL)
        for end in ends.values():
            assert select.select([end], [], [], 60)[0], "it goes on"
        if killed == "fleet":
            assert demo.process.wait(30) == 1
            assert "The agents have ended unasked" in "".join(demo.rest())
            assert list(tmp_path.iterdir()) == []
    finally:
        for pid in (*others, *ends):  # its server goes on, too, where the demo was killed
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for end in ends.values():
            os.close(end)


@pytest.mark.long  # half a minute: so long they try to deliver
def test_agents_without_an_input_say_how_it_went():
    """Where the input is closed they read none: no traceback, and the reason of their end."""
    command = [sys.executable, "-m", "toolfault_demo", "--days", "1"]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *command],
        env={**os.environ, "TOOLFAULT_DSN": "http://key@127.0.0.1:1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "did not take" in json.loads(done.stdout)["error"]
    assert "Traceback" not in done.stderr
    assert done.returncode == 1


def _descendants(pid: int) -> list[int]:
    """Return the processes that a process started, those of these, and so on."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    children = [int(each) for each in path.read_text().split()] if path.exists() else []
    return [one for child in children for one in (child, *_descendants(child))]


def _command(pid: int) -> bytes:
    """Return the command line of a process; nothing of one that has ended."""
    path = Path(f"/proc/{pid}/cmdline")
    return path.read_bytes() if path.exists() else b""


async def _ready(scope: Any, receive: Any, send: Any) -> None:
    """Another server, which answers everything with 200."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def test_a_demo_that_cannot_listen_says_so(tmp_path: Path):
    """A port that another server has ends the demo with its own server's words and status 1."""
    command = str(Path(sys.executable).with_name("toolfault"))
    with served(_ready, lifespan="off") as address:
        port = address.rpartition(":")[2]
        done = completed(command, "demo", "--port", port, environ=_environ(tmp_path))

    assert done.returncode == 1
    assert "did not start" in done.stdout
    assert "choose another --port" in done.stdout
