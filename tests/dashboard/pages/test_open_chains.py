"""What a recovery rate does not know about yet stands beside it."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.dashboard.generated import NOW
from tests.dashboard.pages.conftest import Browser, open_browser

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import MINUTE_US, format_time
from toolfault_collector.storage.database.engine import open_engine, write_transaction
from toolfault_collector.storage.store import store_events


@pytest.fixture(scope="module")
def browser(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Six chains of the last ten minutes: five recovered, one may yet do so."""
    path = tmp_path_factory.mktemp("open") / "toolfault.db"
    shutil.copyfile(sqlite_template, path)
    engine = open_engine(f"sqlite:///{path}")
    events = []
    for number in range(6):
        for call in range(1 if number == 5 else 2):
            event = {
                "type": "tool_call",
                "event_id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{number}-{call}")),
                "session_id": f"c{number}",
                "seq": call,
                "occurred_at": format_time(NOW - 10 * MINUTE_US + call * 1_000_000),
                "tool": "search",
                "success": call == 1,
            }
            if call == 0:
                event["error"] = {"code": "boom", "category": "internal", "audience": "system"}
            events.append(event)
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "p")
        store_events(conn, project, events, received_at=NOW, time_policy="import")
    yield from open_browser(engine)
    engine.dispose()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/", "1 chain open"),
        ("/round-trips", "1 chain open"),
        ("/round-trips?by=tool", "n = 5, 1 open"),
        ("/tools", "n = 5, 1 open"),
        ("/tool?name=search", "1 chain open"),
        ("/compare?before=tool:search&after=since:1h", "5 closed chains, 1 open"),
    ],
)
def test_open_chains_stand_beside_the_recovery_rate(browser: Browser, path: str, said: str) -> None:
    """A page that shows a recovery rate says how many chains are still open."""
    page = browser.client.get(path)
    assert page.status_code == 200
    text = " ".join(page.text.replace("\N{NO-BREAK SPACE}", " ").split())
    assert said in text
