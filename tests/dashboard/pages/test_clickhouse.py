"""Pages that read events from ClickHouse: behind, away, and with decisions of a minute ago."""

from __future__ import annotations

import re

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, func, select, update
from tests.clickhouse import copied_to_clickhouse
from tests.factories import change, failure

from toolfault_collector.admin.keys import create_key
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clickhouse.database import open_events
from toolfault_collector.clickhouse.shipper import Shipper
from toolfault_collector.clock import SECOND_US, now_us
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import tool_call
from toolfault_dashboard.access import signin
from toolfault_dashboard.app import create_app
from toolfault_dashboard.queries.reading import read_events_from, reading
from toolfault_dashboard.writes.picked_fixes import pick_fix

pytest.importorskip("chdb", reason="chdb, ClickHouse in the process, is not installed")

pytestmark = pytest.mark.slow

ORIGIN = "http://127.0.0.1:8321"


def _store(engine: Engine, number: int) -> None:
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "demo")
        calls = [failure("search", session_id=f"s{number}-{n}") for n in range(number)]
        store_events(conn, project, calls, received_at=now_us())


def _signed_in(engine: Engine, client: TestClient) -> TestClient:
    token = signin.create_link(engine, now=now_us(), name="ada", role="admin")
    assert client.post("/sign-in", data={"token": token}).status_code == 200
    return client


def _failures(client: TestClient) -> int:
    found = re.search(r"([\d,]+)\s+failures?\b", client.get("/failures?window=all").text)
    assert found is not None
    return int(found[1].replace(",", ""))


def test_a_page_that_is_behind_says_as_of_when(sqlite_engine: Engine) -> None:
    """What is stored and not shipped is on no page, and the page says so until it is shipped."""
    _store(sqlite_engine, 3)
    sql = sqlite_engine.url.render_as_string(hide_password=False)
    url = copied_to_clickhouse(sql)
    settings = Settings(database_url=sql, events_url=url)
    # Without its lifespan the server ships nothing by itself.
    app = create_app(settings, clock=lambda: now_us() + 60 * SECOND_US)
    client = _signed_in(sqlite_engine, TestClient(app, base_url=ORIGIN))
    assert _failures(client) == 3
    assert "Figures as of" not in client.get("/failures?window=all").text

    _store(sqlite_engine, 2)

    assert _failures(client) == 3
    assert "Figures as of" in client.get("/failures?window=all").text
    events = open_events(url)
    Shipper(sqlite_engine, events).ship_all()
    events.dispose()
    assert _failures(client) == 5
    assert "Figures as of" not in client.get("/failures?window=all").text
    app.state.collector.events.dispose()


def test_a_row_that_was_shipped_twice_counts_once(sqlite_engine: Engine) -> None:
    """A call that changed after it was shipped, as a finished chain does, is one failure still."""
    _store(sqlite_engine, 3)
    url = copied_to_clickhouse(sqlite_engine.url.render_as_string(hide_password=False))
    with write_transaction(sqlite_engine) as conn:
        conn.execute(update(tool_call).values(attempt=tool_call.c.attempt))
    events = open_events(url)
    assert Shipper(sqlite_engine, events).ship_all() >= 3
    read_events_from(sqlite_engine, events)
    with reading(sqlite_engine) as conn:
        assert conn.execute(select(func.count()).select_from(tool_call)).scalar_one() == 3
    events.dispose()


def test_without_clickhouse_events_are_stored_and_pages_say_why(sqlite_url: str) -> None:
    """ClickHouse is away: 202 for events, a sentence for readers, and Settings as ever."""
    away = "clickhousedb://localhost:1/default?connect_timeout=1"
    app = create_app(Settings(database_url=sqlite_url, events_url=away))
    with TestClient(app, base_url=ORIGIN) as client:
        engine = app.state.collector.engine
        with write_transaction(engine) as conn:
            project = ensure_project(conn, "demo")
            key = create_key(conn, project, "ingest")
        pick_fix(
            engine,
            project,
            tool="search",
            field="limit",
            remedy="int_from_string",
            event_id="x",
            actor="ada",
            now=now_us() - 3_600 * SECOND_US,
        )
        signed_in = signin.create_link(engine, now=now_us(), name="ada", role="admin")
        client.post("/sign-in", data={"token": signed_in}, follow_redirects=False)
        answer = client.post(
            "/v1/events",
            json={"events": [failure(), change(tool="search")]},
            headers={"Authorization": f"Bearer {key}"},
        )
        assert answer.json()["accepted"] == 2
        page = client.get("/failures")
        assert page.status_code == 503
        assert "ClickHouse does not answer" in page.text
        assert client.get("/api/v1/overview").json()["code"] == "events_unavailable"
        settings = client.get("/settings").text
        assert re.search(r"[\d,]+ changes? not copied yet", settings)
        assert "ClickHouse does not answer" in settings  # in the place of predictions
        app.state.collector.shipping.run_once()
        ready = client.get("/readyz")
        assert (ready.status_code, ready.json()["clickhouse"]) == (200, "unavailable")
        entries = re.search(r"^toolfault_outbox_entries (\S+)", client.get("/metrics").text, re.M)
        assert entries is not None
        assert float(entries[1]) > 0
