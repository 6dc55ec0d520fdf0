"""Headline figures stand beside those of the period before."""

from __future__ import annotations

import csv
import io
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.dashboard.generated import NOW
from tests.dashboard.pages.conftest import Browser, open_browser

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, SECOND_US, format_time
from toolfault_collector.storage.database.engine import open_engine, write_transaction
from toolfault_collector.storage.store import store_events

MOMENT = NOW - 7 * DAY_US
CHAINS = {"a": (30, 10), "b": (12, 9)}
"""Conversations of two calls before and after the moment, and how many of them fail at first."""


def _conversation(name: str, at: int, *, fails: bool) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [
        {
            "type": "tool_call",
            "event_id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{name}-{call}")),
            "session_id": name,
            "seq": call,
            "occurred_at": format_time(at + call * SECOND_US),
            "tool": "search",
            "success": call == 1 or not fails,
        }
        for call in range(2)
    ]
    if fails:
        events[0]["error"] = {"code": "boom", "category": "internal", "audience": "system"}
    return events


@contextmanager
def _browser(url: str, *, youngest: int = NOW - 14 * DAY_US) -> Iterator[Browser]:
    """Of 30 conversations before the moment 10 failed, of the 12 after it 9."""
    engine = open_engine(url)
    events = _conversation("first", youngest - 2 * SECOND_US, fails=False)
    for side, (conversations, failing) in CHAINS.items():
        at = MOMENT + (DAY_US if side == "b" else -DAY_US)
        for number in range(conversations):
            events += _conversation(f"{side}{number}", at, fails=number < failing)
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "p")
        receipt = store_events(conn, project, events, received_at=NOW, time_policy="import")
        assert not receipt.rejected
    yield from open_browser(engine)
    engine.dispose()


def test_every_tile_shows_the_period_before_and_what_is_certain(sqlite_url: str) -> None:
    """Counts stand as they were; rates with the interval of their change, or that none is seen."""
    with _browser(sqlite_url) as browser:
        for path in ("/", "/tool?name=search"):
            tiles = browser.page(f"{path}{'&' if '?' in path else '?'}window=7d").main.figures
            said = {
                name: tile.rpartition("7 days before: ")[2].replace(
                    "\N{NARROW NO-BREAK SPACE}", " "
                )
                for name, tile in tiles.items()
            }
            assert said["Calls"] == "60"
            assert said["Failures"] == "10"
            assert said["Calls spent"] == "10"
            assert said["Failure rate"].startswith("16.7%; +20.8 pp, 95%: +")
            assert said["Recovery rate"] == "100%; no detectable change"
            assert said["First-try success"].startswith("80.0%; −40.0 pp, 95%: −")
        trips = browser.page("/round-trips?window=7d").main.figures
        assert trips["Same again"].endswith("7 days before: 0")
        assert trips["Calls spent"].endswith("7 days before: 10")
        rows = {
            row["figure"]: row
            for row in csv.DictReader(io.StringIO(browser.get("/overview.csv?window=7d").text))
        }
    assert (rows["failures"]["value"], rows["failures"]["before"]) == ("9", "10")
    assert float(rows["failure_rate"]["before"]) == pytest.approx(10 / 60)
    assert float(rows["failure_rate"]["change_low"]) > 0
    assert (
        float(rows["recovery_rate"]["change_low"]) < 0 < float(rows["recovery_rate"]["change_high"])
        or rows["recovery_rate"]["change_low"] == "-0.0"
    )


@pytest.mark.parametrize(
    "address",
    [
        "/?window=all",
        pytest.param("/?window=30d", marks=pytest.mark.long),
        pytest.param("/?window=7d&q=until:30d", marks=pytest.mark.long),
        "/?window=7d&q=first_seen:7d",
    ],
)
def test_no_period_before_where_there_is_no_data_of_all_of_it(
    sqlite_url: str, address: str
) -> None:
    """A window without a beginning, or one that the project is too young for, has none."""
    with _browser(sqlite_url) as browser:
        tiles = browser.page(address).main.figures
    assert not any("before" in tile for tile in tiles.values())


def test_a_project_that_began_within_the_period_before_has_none(sqlite_url: str) -> None:
    """One second short of the whole period is short."""
    with _browser(sqlite_url, youngest=NOW - 14 * DAY_US + 3 * SECOND_US) as browser:
        tiles = browser.page("/?window=7d").main.figures
    assert not any("before" in tile for tile in tiles.values())
