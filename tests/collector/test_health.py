"""What a supervisor asks: health, readiness, counters, and the id of a request in the log."""

from __future__ import annotations

import json
import re

from sqlalchemy import Engine, text
from tests.factories import failure, success
from tests.running import RunningCollector

import toolfault_migrations as migrations
from toolfault_collector.metrics import MAX_REASONS
from toolfault_collector.storage.database.engine import open_engine

JSON = {"Content-Type": "application/json"}


def _metrics(server: RunningCollector) -> dict[str, float]:
    lines = server.get("/metrics").text.splitlines()
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))
    }


def _more(server: RunningCollector, before: dict[str, float]) -> dict[str, float]:
    """How much each number has grown since *before*."""
    found = _metrics(server).items()
    return {name: value - before.get(name, 0) for name, value in found}


def test_counters_are_what_happened(collector: RunningCollector) -> None:
    """Events by what became of them, requests by their answer, groups by their size."""
    before, event = _metrics(collector), success()
    collector.post(event, failure(), failure(seq="x"))
    collector.post(event)
    collector.post(success(), key="tf_ingest_unknown")
    collector.client.post(f"{collector.url}/v1/events", content=b"{", headers=JSON)

    found = _more(collector, before)

    assert found['toolfault_events_total{result="accepted"}'] == 2
    assert found['toolfault_events_total{result="duplicate"}'] == 1
    assert found['toolfault_events_total{result="rejected"}'] == 1
    assert found['toolfault_requests_total{status="200"}'] == 2
    assert found['toolfault_requests_total{status="401"}'] == 1
    assert found['toolfault_requests_total{status="400"}'] == 1
    assert found["toolfault_queued_events"] == 0
    assert found["toolfault_group_events_sum"] == 4


def test_reasons_of_senders_are_bounded(collector: RunningCollector) -> None:
    """Names that senders make up are counted under their own name up to a limit."""
    before = _metrics(collector)
    for number in range(2 * MAX_REASONS):
        collector.post(dropped={f"reason {number}": 2})

    named = [name for name in _metrics(collector) if "sender_dropped_total" in name]
    found = {k: v for k, v in _more(collector, before).items() if "sender_dropped_total" in k}

    assert len(named) == MAX_REASONS + 1
    assert sum(found.values()) == 2 * 2 * MAX_REASONS
    assert found['toolfault_sender_dropped_total{reason="other"}'] >= 2 * MAX_REASONS


def test_a_collector_of_another_schema_stores_nothing(collector: RunningCollector) -> None:
    """It lives, is not ready and says why, and answers 503, until the schema is its own again."""
    events = [failure(), success()]
    assert collector.post(failure()).status_code == 200
    engine = open_engine(collector.database_url)
    try:
        _rename_schema(engine, "9999")
        refused, ready = collector.post(*events), collector.get("/readyz")
        assert collector.get("/healthz").json() == {"status": "ok"}
    finally:
        _rename_schema(engine, migrations.HEAD)
        engine.dispose()
    answer = collector.post(*events)

    assert refused.status_code == 503
    assert refused.headers["content-type"] == "application/problem+json"
    assert 1 <= int(refused.headers["retry-after"]) <= 300
    assert (ready.status_code, ready.json()["reason"]) == (503, "schema")
    assert int(ready.headers["retry-after"]) > 0
    assert answer.json() == {"accepted": 2, "duplicate": 0, "rejected": []}


def _rename_schema(engine: Engine, revision: str) -> None:
    with engine.begin() as conn:
        conn.execute(text("UPDATE alembic_version SET version_num = :name"), {"name": revision})


def test_every_answer_has_an_id_that_is_in_the_log(collector: RunningCollector) -> None:
    """The header, the problem document and the line of the log have the same id, each its own."""
    answers = [
        collector.post(success()),
        collector.get("/nothing"),
        collector.get("/healthz"),
        collector.client.get(f"{collector.url}/v1/events"),
        collector.client.get(collector.url, headers={"Host": "a/b"}),
        collector.client.get(collector.url, headers={"X-Request-Id": "mine"}),
    ]

    ids = [answer.headers["x-request-id"] for answer in answers]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch("[0-9a-f]{16}", each) for each in ids)
    lines = [json.loads(line) for line in collector.output().splitlines()]
    logged = {line["request_id"]: line for line in lines if line["event"] == "request"}
    for answer, request_id in zip(answers, ids, strict=True):
        if answer.status_code >= 400:
            assert answer.json()["request_id"] == request_id
            assert logged[request_id]["status"] == answer.status_code
            assert logged[request_id]["duration_ms"] >= 0
