"""Received: the page that says why a failure is not there."""

from __future__ import annotations

import json
from typing import Any

from tests.collector.otlp.spans import as_json, span
from tests.dashboard.generated import NOW
from tests.dashboard.pages.conftest import Browser
from tests.factories import failure, success

from toolfault_collector.admin.keys import create_key
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US
from toolfault_collector.otlp.metric_calls import add_points
from toolfault_collector.otlp.points import Point
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_collector.storage.store import store_events


def test_received_says_what_became_of_each_span(own_browser: Browser) -> None:
    """A span is found by its name, with what was made of it and why; the file has the same."""
    with write_transaction(own_browser.engine) as conn:
        key = create_key(conn, ensure_project(conn, "spans"), "ingest")
    tool: dict[str, Any] = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "book"}
    spans = [
        span(1, 1, "execute_tool book", status="error", message="<b>full</b>", **tool),
        span(1, 2, "GET /<i>"),
        {**span(1, 3, "nameless"), "traceId": "x"},
    ]
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    sent = own_browser.client.post("/v1/traces", content=as_json(spans), headers=headers)
    assert sent.status_code == 200

    page = own_browser.page("/received?project=spans")
    (row,) = page.main.tables[0].rows
    assert row["Items"].text == "3"
    assert row["Calls"].text == "1"
    assert row["Rejected"].text == "1"
    told = row["What became of them"].text
    assert "book failure: status" in told
    assert "GET /<i> no call" in told
    assert "nameless rejected: its trace id is not 32 hexadecimal digits" in told

    lines = own_browser.get("/received.csv?project=spans").text.splitlines()
    assert len(lines) == 1 + 3
    assert "Nothing was received" in own_browser.page("/received").main.text


def test_who_sent_no_spans_is_told_how(own_browser: Browser) -> None:
    """The empty page names the variables that an exporter needs."""
    said = own_browser.page("/received").main.text
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in said
    assert "Authorization=Bearer%20KEY" in said


def test_calls_that_never_reached_a_span_are_a_number(own_browser: Browser) -> None:
    """A call that only messages tell of is counted among all that came this way."""
    with write_transaction(own_browser.engine) as conn:
        key = create_key(conn, ensure_project(conn, "messages"), "ingest")
    asked = [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "fly"}]}]
    told = [{"type": "tool_call_response", "id": "c1", "response": "Error: no tool named fly"}]
    chat: dict[str, Any] = {"gen_ai__operation__name": "chat"}
    tool: dict[str, Any] = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "t"}
    spans = [
        span(1, 1, "chat m", at=1, gen_ai__output__messages=json.dumps(asked), **chat),
        span(
            *(1, 2, "chat m"),
            at=3,
            gen_ai__input__messages=json.dumps([*asked, {"role": "tool", "parts": told}]),
            **chat,
        ),
        span(1, 3, "execute_tool t", at=5, **tool),
    ]
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    sent = own_browser.client.post("/v1/traces", content=as_json(spans), headers=headers)
    assert sent.status_code == 200
    said = own_browser.page("/received?project=messages").main.text
    assert "1 of the last 2 calls that came over OpenTelemetry never reached a span" in said


def test_what_metrics_count_stands_beside_what_is_stored(own_browser: Browser) -> None:
    """Of sampled traces the page says how many calls are missing, by tool and metric."""
    with write_transaction(own_browser.engine) as conn:
        project_id = ensure_project(conn, "sampled")
        points = [
            Point("execute_tool", "t", error, calls, NOW - 2, NOW - 1, False, error)
            for error, calls in (("", 90), ("timeout", 10))
        ]
        old = NOW - 30 * DAY_US
        points.append(Point("execute_tool", "t", "", 5, old - 1, old, False, "old"))
        assert add_points(conn, project_id, points) == 105
        events = [success("t", at=NOW - 5), failure("t", at=NOW - 3)]
        store_events(conn, project_id, events, received_at=NOW)
    table = own_browser.page("/received?project=sampled").section("Calls as metrics count them")
    (row,) = table.tables[0].rows
    told = [row[name].text for name in ("Tool", "Metric", "Counted", "of them failed")]
    assert told == ["t", "execute_tool", "100", "10"]
    assert [row[name].text for name in ("Stored", "of these failed", "Missing")] == ["2", "1", "98"]
    csv = own_browser.get("/counted.csv?project=sampled").text.splitlines()
    assert csv[1] == "execute_tool,t,100,10,2,1,98"
