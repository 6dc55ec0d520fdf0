"""What a batch says of its sender is bounded and cleaned like the events in it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.factories import success
from tests.running import RunningCollector

HUGE = "1" + "0" * 400


def send(collector: RunningCollector, *, dropped: str) -> dict[str, Any]:
    """Send one good event in a batch whose ``dropped`` is the JSON text *dropped*."""
    body = f'{{"schema_version": 1, "dropped": {dropped}, "events": [{json.dumps(success())}]}}'
    answer = collector.client.post(
        f"{collector.url}/v1/events", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def metric(collector: RunningCollector, name: str) -> dict[str, float]:
    """Return the samples of *name* by the value of their only label."""
    answer = collector.get("/metrics")
    assert answer.status_code == 200, answer.text
    return {
        next(iter(sample.labels.values()), ""): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
        if sample.name == name
    }


@pytest.mark.parametrize(
    "dropped",
    [
        f'{{"queue": {HUGE}}}',
        HUGE,
        '{"\\ud800": 1}',
        '{"' + "x" * 10_000 + '": 1}',
        "{" + ", ".join(f'"reason-{n}": 1' for n in range(5_000)) + "}",
        '{"a": NaN, "b": -1, "c": true, "d": "2", "e": [1], "f": 1e999}',
        '"many"',
        "[1, 2]",
    ],
    ids=["huge", "huge number", "surrogate", "long", "many", "no counts", "text", "list"],
)
def test_whatever_was_dropped_the_events_are_stored_and_metrics_are_read(
    collector: RunningCollector, dropped: str
):
    """No value of ``dropped`` costs the batch its events, or the process its metrics."""
    assert send(collector, dropped=dropped)["accepted"] == 1

    found = metric(collector, "toolfault_sender_dropped_total")

    assert len(found) <= 31
    assert all(len(reason) <= 64 for reason in found)


def test_metrics_say_what_senders_dropped_and_what_was_answered(sqlite_server: RunningCollector):
    """Drops add up by reason (a bare number is "unknown"), and every answer counts by status."""
    send(sqlite_server, dropped='{"queue_full": 3}')
    send(sqlite_server, dropped='{"queue_full": 2}')
    send(sqlite_server, dropped="4")
    resent = success()
    for _ in range(2):
        assert sqlite_server.post(resent, dropped={"sampled": 7}).status_code == 200

    found = metric(sqlite_server, "toolfault_sender_dropped_total")

    assert found == {"queue_full": 5, "unknown": 4, "sampled": 7}  # said again, counted once

    # Answers count by status, those that no batch was read for too.
    assert sqlite_server.post(success(), key="wrong").status_code == 401
    url = f"{sqlite_server.url}/v1/events"
    assert sqlite_server.client.get(url).status_code == 405
    huge = {"X-Filler": "x" * 9_000, "X-More": "x" * 9_000}
    assert sqlite_server.client.post(url, headers=huge).status_code == 431

    found = metric(sqlite_server, "toolfault_requests_total")

    assert found == {"200": 5, "401": 1, "405": 1, "431": 1}
