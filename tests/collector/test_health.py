"""What a supervisor asks: health, readiness, counters, and the id of a request in the log."""

from __future__ import annotations

import json
import re

from tests.factories import failure, success
from tests.running import RunningCollector

import toolfault_migrations as migrations
from toolfault_collector.engine import open_engine
from toolfault_collector.metrics import MAX_REASONS


def _metrics(server: RunningCollector) -> dict[str, float]:
    lines = server.get("/metrics").text.splitlines()
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))
    }


def test_counters_are_what_happened(sqlite_server: RunningCollector) -> None:
    """Events by what became of them, requests by their answer, groups by their size."""
    event = success()
    sqlite_server.post(event, failure(), failure(seq="x"))
    sqlite_server.post(event)
    sqlite_server.post(success(), key="tf_ingest_unknown")
    sqlite_server.client.post(f"{sqlite_server.url}/v1/events", content=b"{", headers=JSON)

    found = _metrics(sqlite_server)

    assert found['toolfault_events_total{result="accepted"}'] == 2
    assert found['toolfault_events_total{result="duplicate"}'] == 1
    assert found['toolfault_events_total{result="rejected"}'] == 1
    assert found['toolfault_requests_total{status="200"}'] == 2
    assert found['toolfault_requests_total{status="401"}'] == 1
    assert found['toolfault_requests_total{status="400"}'] == 1
    assert found["toolfault_queued_events"] == 0
    assert found["toolfault_group_events_sum"] == 4


JSON = {"Content-Type": "application/json"}


def test_reasons_of_senders_are_bounded(sqlite_server: RunningCollector) -> None:
    """Names that senders make up are counted under their own name up to a limit."""
    for number in range(3 * MAX_REASONS):
        sqlite_server.post(dropped={f"reason {number}": 2})

    found = {k: v for k, v in _metrics(sqlite_server).items() if "sender_dropped_total" in k}

    assert len(found) == MAX_REASONS + 1
    assert found['toolfault_sender_dropped_total{reason="other"}'] == 2 * 2 * MAX_REASONS


def test_alive_but_not_ready(sqlite_server: RunningCollector) -> None:
    """With a schema of another version the process lives, takes no traffic, and says why."""
    engine = open_engine(sqlite_server.database_url)
    with engine.begin() as conn:
        conn.exec_driver_sql("UPDATE alembic_version SET version_num = '0000'")

    ready = sqlite_server.get("/readyz")

    assert sqlite_server.get("/healthz").json() == {"status": "ok"}
    assert (ready.status_code, ready.json()["reason"]) == (503, "schema")
    assert int(ready.headers["retry-after"]) > 0
    with engine.begin() as conn:
        conn.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{migrations.head()}'")
    engine.dispose()


def test_every_answer_has_an_id_that_is_in_the_log(sqlite_server: RunningCollector) -> None:
    """The header, the problem document and the line of the log have the same id, each its own."""
    answers = [
        sqlite_server.post(success()),
        sqlite_server.get("/nothing"),
        sqlite_server.get("/healthz"),
        sqlite_server.client.get(f"{sqlite_server.url}/v1/events"),
        sqlite_server.client.get(sqlite_server.url, headers={"Host": "a/b"}),
        sqlite_server.client.get(sqlite_server.url, headers={"X-Request-Id": "mine"}),
    ]

    ids = [answer.headers["x-request-id"] for answer in answers]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch("[0-9a-f]{16}", each) for each in ids)
    lines = [json.loads(line) for line in sqlite_server.output().splitlines()]
    logged = {line["request_id"]: line["status"] for line in lines if line["event"] == "request"}
    for answer, request_id in zip(answers, ids, strict=True):
        if answer.status_code >= 400:
            assert answer.json()["request_id"] == request_id
            assert logged[request_id] == answer.status_code
