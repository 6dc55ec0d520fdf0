"""The tasks of a newcomer on imported transcripts of real agents: three clicks at most each.

What the page shows last is counted again: over the transcripts, over the rows, or by the truth that
lies beside the transcripts. Their agents: Claude Code (times, models), an airline's (no times, no
models) and one that writes SQL (two variants).
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.dashboard.naive import Tables
from tests.dashboard.pages.conftest import Browser, open_browser
from tests.dashboard.pages.newcomers import (
    MOST,
    Newcomer,
    find_new_kinds,
    microseconds,
    newcomer_to,
)
from tests.dashboard.reading import Page
from tests.factories import failure
from tests.golden.filling import NOW, files_of

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US
from toolfault_collector.importers import import_paths
from toolfault_collector.storage.database.engine import open_engine, write_transaction

JANUARY = datetime(2026, 1, 24, 12, tzinfo=UTC)
"""The day after the last session but one of Claude Code: what is asked for by date is fresh."""

WEEK = 7 * DAY_US

SOURCES = {
    "claude": "claude_code_sessions",
    "airline": "tau_bench_airline",
    "retail": "agentrx_tau_retail",
    "sql": "intercode_sql",
}

Open = Callable[..., Newcomer]


@pytest.fixture(scope="module")
def imported(
    made_once: Callable[[str, Callable[[Path], None]], Path],
    sqlite_template: Path,
    shared_data: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A database of the transcripts, each set a project; ``january``: sessions until then."""
    if not all((shared_data / folder).is_dir() for folder in SOURCES.values()):
        pytest.skip("these transcripts are not there")

    def make(path: Path) -> None:
        shutil.copyfile(sqlite_template, path)
        engine = open_engine(f"sqlite:///{path}")
        folder = tmp_path_factory.mktemp("transcripts")
        paths = {
            name: [files_of(source, lambda: shared_data, folder)]
            for name, source in SOURCES.items()
        }
        paths["january"] = [
            each
            for each in _sessions(shared_data)
            if '"timestamp":"2026-04' not in each.read_text()
        ]
        for name, given in paths.items():
            with write_transaction(engine) as conn:
                project = ensure_project(conn, name)
            assert not import_paths(engine, project, given).errors
        engine.dispose()

    return made_once("transcripts.db", make)


def _sessions(shared_data: Path) -> list[Path]:
    return sorted((shared_data / SOURCES["claude"]).rglob("*.jsonl"))


@pytest.fixture(scope="module")
def opened(
    imported: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[datetime], Browser]]:
    """A function that returns the browser of a moment on one copy of the database."""
    path = tmp_path_factory.mktemp("real") / "real.db"
    shutil.copyfile(imported, path)
    engine = open_engine(f"sqlite:///{path}")
    browsers: dict[datetime, Browser] = {}
    with ExitStack() as closing:
        closing.callback(engine.dispose)

        def browser(now: datetime) -> Browser:
            if now not in browsers:
                here = contextmanager(open_browser)(engine, now=microseconds(now))
                browsers[now] = closing.enter_context(here)
            return browsers[now]

        yield browser


@pytest.fixture
def to(opened: Callable[[datetime], Browser]) -> Iterator[Open]:
    """A function that brings somebody new to a project, at a moment; all count their clicks."""
    came: list[Newcomer] = []

    def bring(project: str, now: datetime = NOW) -> Newcomer:
        came.append(Newcomer(opened(now), project, now))
        return came[-1]

    yield bring
    assert all(each.clicks <= MOST for each in came)


def _truth(shared_data: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((shared_data / SOURCES[name] / "truth.json").read_text("utf-8")))


def test_which_argument_costs_most(to: Open) -> None:
    """Round trips, by argument: calls spent as in the rows; above them the costliest argument."""
    expected = {
        "claude": "The costliest argument is Edit.old_string: 7 of 184 calls spent.",
        "airline": "No chain begins with a failure that names an argument",
    }
    for project, answer in expected.items():
        newcomer = to(project)
        page = newcomer.open("Round trips")
        page = newcomer.follow(page.link("Argument"))
        shown = page.section("Where calls go")
        assert answer in shown.text
        found = {
            row["Argument"].text: row["Calls spent"].number for row in shown.table("Argument").rows
        }
        assert found == _spent_by_argument(newcomer.rows)


def _spent_by_argument(rows: Tables) -> Counter[str]:
    spent: Counter[str] = Counter()
    failures = {each["event_id"]: each for each in rows.calls}
    for chain in rows.chains.values():
        named = [each["root_field"] for each in failures[chain["chain_id"]]["issues"]]
        argument = f".{named[0]}" if named and named[0] else " (no argument)"
        spent[chain["tool"] + argument] += chain["spent"]
    return spent


def test_whether_a_change_helped(to: Open, shared_data: Path) -> None:
    """Changes, the row: both rates as the truth has them, or why nothing can be said."""
    newcomer = to("sql")
    page = newcomer.open("Changes")
    page = newcomer.follow(page.link("new variant after"))
    truth = _truth(shared_data, "sql")["change"]
    before, after = (f"{truth[f'failure_rate_{side}']:.1%}" for side in ("before", "after"))
    assert f"The failure rate fell from {before} to {after}." in page.text
    assert f"{truth['failed_calls_before']:,} failures before" in page.text
    assert f"{truth['failed_calls_after']} failures after" in page.text

    newcomer = to("claude")
    page = newcomer.open("Changes")
    page = newcomer.follow(page.link("new model claude-sonnet-4-5"))
    moment = min(
        each["started_at"]
        for each in newcomer.rows.calls
        if (each["model"] or "").startswith("claude-sonnet-4-5")
    )
    sides = [
        [each for each in newcomer.rows.calls if begin <= each["occurred_at"] < begin + WEEK]
        for begin in (moment - WEEK, moment)
    ]
    assert "Not enough data: " in page.text
    for side, calls in zip(("before", "after"), sides, strict=True):
        failed = sum(not each["success"] for each in calls)
        talks = len({each["session_id"] for each in calls})
        said = f"{failed} {'failure' if failed == 1 else 'failures'} {side} in {talks} conversation"
        assert said in page.text


def test_a_csv_of_abandoned_chains_of_one_tool_last_week(to: Open) -> None:
    """Seven days, the number of abandoned chains of a tool, the file: those chains of the rows.

    Transcripts without times count as of the moment when they were imported.
    """
    for project, now in (("january", JANUARY), ("airline", NOW)):
        newcomer = to(project, now)
        page = newcomer.follow(newcomer.home.link("7 days"))
        # An empty drawing would say that nothing failed.
        assert page.has("Failures over time") == (project == "january")
        assert ("recorded no times" in page.text) == (project == "airline")
        row = next(row for row in page.table("Abandoned").rows if row["Abandoned"].href)
        page = newcomer.follow(row["Abandoned"].href)
        text = newcomer.fetch(page.link("These chains as CSV"))
        week = microseconds(now - timedelta(days=7))
        assert {each["chain_id"] for each in csv.DictReader(io.StringIO(text))} == {
            name
            for name, chain in newcomer.rows.chains.items()
            if chain["tool"] == row["Tool"].text
            and chain["outcome_now"] == "abandoned"
            and chain["first_failed_at"] >= week
        }
        assert row["Abandoned"].number == len(text.splitlines()) - 1 > 0


def test_last_week_of_old_transcripts(to: Open) -> None:
    """Where nothing is so young, the page leads to the last week that there is."""
    newcomer = to("claude")
    page = newcomer.follow(newcomer.home.link("7 days"))
    page = newcomer.follow(page.link("Look at the week until 18 Apr 2026"))
    last = [
        each
        for each in newcomer.rows.calls
        if not each["success"]
        and each["occurred_at"] >= microseconds(datetime(2026, 4, 12, tzinfo=UTC))
    ]
    assert page.figures["Failures"].startswith(f"{len(last)} ")
    week = Page(newcomer.fetch(newcomer.home.link("Weekly report"))).table("figure", "this week")
    assert week.row("failures")["this week"].number == len(last)
    assert last


def test_the_week_of_a_filter(to: Open) -> None:
    """The report of a filter is of the last week in which something of it failed."""
    newcomer = to("claude")
    edits = newcomer.follow("/?q=tool:Edit&window=all&project=claude")  # older than the newest
    week = Page(newcomer.fetch(edits.link("Weekly report"))).table("figure", "this week")
    assert week.row("failures")["this week"].number > 0


def test_kinds_new_since_yesterday(to: Open) -> None:
    """A link on Overview: the new kinds of the rows; where there are none, why."""
    assert find_new_kinds(to("january", JANUARY)).tables
    newcomer = to("claude")
    seen = [each for each in newcomer.rows.calls if each["first_seen"] is not None]
    newest = max(seen, key=lambda each: each["first_seen"])
    said = f"The newest, {newest['code']} in {newest['tool']}, was first seen on 23 Jan 2026"
    assert said in find_new_kinds(newcomer).text
    assert newest["first_seen"] >= microseconds(datetime(2026, 1, 23, tzinfo=UTC))
    assert "nothing tells which kinds of them are new" in find_new_kinds(to("airline")).text


def test_which_model_is_worst_at_which_tool(to: Open) -> None:
    """Break down: of each tool the model whose interval begins highest; without models, that."""
    newcomer = to("claude")
    page = newcomer.open("Break down")
    called: dict[str, dict[str, list[bool]]] = {}
    for each in newcomer.rows.calls:
        called.setdefault(each["tool"], {}).setdefault(each["model"], []).append(each["success"])
    expected = {}
    for tool, models in called.items():
        low = {name: _low(calls) for name, calls in models.items() if len(calls) >= 10}
        rates = {Fraction(sum(models[name]), len(models[name])) for name in low}
        expected[tool] = max(low, key=low.__getitem__) if len(rates) > 1 else "–"
    rows = page.table("Tool", "Worst").rows
    assert {row["Tool"].text: row["Worst"].text for row in rows} == expected
    assert expected["Bash"] == "claude-opus-4-5-20251101"

    page = to("airline").open("Break down")
    assert "No call here names its model" in page.text


def _low(calls: list[bool]) -> float:
    """Return where Wilson's 95% interval of the share of failures begins (Wilson, 1927)."""
    n, z = len(calls), 1.959964
    share = (n - sum(calls)) / n
    spread = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (share + z * z / (2 * n) - spread) / (1 + z * z / n)


def test_what_the_model_saw_and_did_next(to: Open, shared_data: Path) -> None:
    """The newest failure of Overview: its text and what followed, as in the transcript."""
    transcripts = {
        "claude": [list(_claude_calls(path)) for path in _sessions(shared_data)],
        "airline": [list(_chat_calls(run["traj"])) for run in _runs(shared_data)],
    }
    for project, talks in transcripts.items():
        newcomer = to(project)
        row = newcomer.page.table("Failure", "Message").rows[0]
        page = newcomer.follow(row["Failure"].href)
        name = page.figures["Call id"]
        (talk,) = [talk for talk in talks if name in [each.name for each in talk]]
        own = next(each for each in talk if each.name == name)
        assert own.failed
        assert " ".join(own.text.split()) in page.section("What the model was told").text
        later = talk[talk.index(own) + 1 :]
        again = next((each for each in later if each.tool == own.tool), None)
        told = page.section("What happened next").text
        if again is not None:
            assert not again.failed
            assert "Call 2 succeeded" in told
        else:
            other = next(each for each in later if not each.failed)
            assert f"It never succeeded; {other.tool} succeeded after it." in told


@dataclass
class Called:
    """A call as a transcript has it."""

    name: str
    tool: str
    text: str = ""
    failed: bool = False


def _claude_calls(path: Path) -> Iterator[Called]:
    """The calls of a session of Claude Code, in the order in which they were answered."""
    asked: dict[str, str] = {}
    for line in path.read_text("utf-8").splitlines():
        content = (json.loads(line).get("message") or {}).get("content")
        for part in content if isinstance(content, list) else ():
            if part["type"] == "tool_use":
                asked[part["id"]] = part["name"]
            if part["type"] == "tool_result" and part["tool_use_id"] in asked:
                text = part.get("content") or ""
                if isinstance(text, list):
                    text = " ".join(each.get("text", "") for each in text)
                name = part["tool_use_id"]
                yield Called(name, asked[name], text, bool(part.get("is_error")))


def _runs(shared_data: Path, name: str = "airline") -> list[dict[str, Any]]:
    (path,) = (shared_data / SOURCES[name]).glob("*.open.json")
    return list(json.loads(path.read_text("utf-8")))


def _chat_calls(messages: list[dict[str, Any]]) -> Iterator[Called]:
    for message in messages:
        if message["role"] == "tool":
            text = message["content"] or ""
            yield Called(message["tool_call_id"], message["name"], text, text.startswith("Error"))


def test_tell_me_when_a_tool_breaks(to: Open) -> None:
    """The costliest tool, "Alert me about this", Save: the rule, and what it would have measured.

    Transcripts that are old are looked at as they were then; without times, that is said.
    """
    past = {
        "claude": "In the 30 days that end with 18 Apr 2026, the day of the newest failure: ",
        "airline": "The calls of this project have no times",
    }
    for project, said in past.items():
        newcomer = to(project)
        row = newcomer.page.table("Tool", "Calls spent").rows[0]
        tool = row["Tool"].text
        page = newcomer.follow(row["Tool"].href)
        page = newcomer.follow(page.link("Alert me about this"))
        assert said in page.text
        begin, end = (microseconds(datetime(2026, *day, tzinfo=UTC)) for day in ((3, 20), (4, 19)))
        calls = [
            each["success"]
            for each in newcomer.rows.calls
            if each["tool"] == tool and begin <= each["occurred_at"] < end
        ]
        assert (f", n = {len(calls)} calls" in page.text) == (project == "claude")
        page = newcomer.save(page, "/alerts")
        (rule,) = page.table("Rule", "State").rows
        assert f"tool:{tool}" in rule["Rule"].text
        assert rule["State"].text == "quiet"


def test_the_first_own_event(imported: Path, tmp_path: Path) -> None:
    """Beside imported sessions: "Send data", the key, and the failure that is sent with it."""
    shutil.copyfile(imported, tmp_path / "real.db")
    for newcomer in newcomer_to("claude", tmp_path / "real.db", datetime.now(UTC)):
        page = newcomer.follow(newcomer.page.link("Send data"))
        page = newcomer.press(page, "/start")
        key = page.section("Your DSN").snippets[0].split("//")[1].split("@")[0]
        sent = newcomer.browser.client.post(
            "/v1/events",
            json={"schema_version": 1, "events": [failure("book_table")]},
            headers={"Authorization": f"Bearer {key}"},
        )
        assert sent.json()["accepted"] == 1
        page = newcomer.browser.page("/?project=claude").main
        row = page.table("Failure", "Message").rows[0]
        assert "book_table" in newcomer.follow(row["Failure"].href).heading
        assert "Send data" not in [link.text for link in page.links]


def test_what_to_fix_first(to: Open, shared_data: Path) -> None:
    """Fix next covers all calls spent; its first item leads to the failures of the transcripts.

    What was seen once is told as such: a model that called a tool once does not keep calling it.
    """
    expected = {
        "claude": (
            "Edit, MultiEdit and Write fail with precondition_failed",
            "has not been read|has been modified since",
        ),
        "airline": ("book_reservation fails with invalid_input", "payment amount does not add up"),
        "retail": (
            "exchange_delivered_order_items fails with precondition_failed",
            "non-delivered order",
        ),
    }
    talks = {
        "claude": map(_claude_calls, _sessions(shared_data)),
        "airline": (_chat_calls(run["traj"]) for run in _runs(shared_data)),
        "retail": (_chat_calls(run["traj"]) for run in _runs(shared_data, "retail")),
    }
    for project, (title, said) in expected.items():
        failed = sum(
            each.failed and re.search(said, each.text) is not None
            for talk in talks[project]
            for each in talk
        )
        newcomer = to(project)
        page = newcomer.open("Fix next")
        first = next(each for each in page.sections if "calls spent" in each.text)
        assert first.headings == [title]
        spent = sum(chain["spent"] for chain in newcomer.rows.chains.values())
        assert f"account for {spent} of {spent} calls spent." in page.lead
        if project == "claude":
            once = page.section("Seen once or twice").table("What", "Failures")
            assert once.row("The model calls AskUserQuestion, ")["Failures"].number == 1
        behind = next(each for each in first.links if each.href.startswith("/failures"))
        assert behind.text == f"{failed} failures"
        shown = newcomer.follow(behind.href).table("Failure").rows
        assert len(shown) == failed
