"""Limits at their edges: what is just within is taken, what is one beyond is refused as said."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from sqlalchemy import Engine, select
from starlette.types import Receive, Scope, Send
from tests.factories import conversation_end, counts, failure, success
from tests.running import RunningCollector

from toolfault_collector.doctor.recount import recount
from toolfault_collector.http.app import RequestScope
from toolfault_collector.storage.database.engine import (
    is_sqlite,
    open_engine,
    read_connection,
    writer_connection,
)
from toolfault_collector.storage.tables import tool_call

JSON = {"Content-Type": "application/json"}
GZIP = {**JSON, "Content-Encoding": "gzip"}
KIB = 1024
MIB = 1024 * KIB


def _send(collector: RunningCollector, body: bytes, **headers: str) -> httpx2.Response:
    address = f"{collector.url}/v1/events"
    return collector.client.post(address, content=body, headers=headers or JSON)


def _stored(collector: RunningCollector, sent: dict[str, Any]) -> dict[str, Any]:
    engine = open_engine(collector.database_url)
    with read_connection(engine) as conn:
        query = select(tool_call).where(tool_call.c.event_id == sent["event_id"])
        found = dict(conn.execute(query).mappings().one())
    engine.dispose()
    return found


def _padded(size: int, *events: Any) -> bytes:
    """A batch of exactly *size* bytes."""
    body = json.dumps({"events": events, "planet": ""}).encode()
    return body[:-2] + b"x" * (size - len(body)) + body[-2:]


@pytest.mark.parametrize(
    ("size", "packed", "status"),
    [
        (5 * MIB, False, 200),
        (5 * MIB + 1, False, 413),
        (20 * MIB, True, 200),
        (20 * MIB + 1, True, 413),
    ],
)
def test_a_body_at_its_limits(
    collector: RunningCollector, size: int, packed: bool, status: int
) -> None:
    """5 MiB on the wire and 20 MiB unpacked are taken; one byte more is 413 with the limit."""
    body = _padded(size, success())
    if packed:
        # Nothing that packs a hundred to one: that is refused for being a bomb.
        noise = random.Random(7).randbytes(MIB).hex().encode()
        body = body.replace(b"x" * len(noise), noise, 1)
        body = gzip.compress(body, 1, mtime=0)

    answer = _send(collector, body, **(GZIP if packed else JSON))

    assert answer.status_code == status
    if status == 413:
        assert answer.json()["limit"] == (20 if packed else 5) * MIB


@pytest.mark.parametrize(("count", "status"), [(1_000, 200), (1_001, 413)])
def test_a_batch_at_its_limit(collector: RunningCollector, count: int, status: int) -> None:
    """A thousand events are one batch."""
    assert collector.post(*[success() for _ in range(count)]).status_code == status


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def _of_size(size: int) -> dict[str, Any]:
    event = success(planet="")
    room = size - len(json.dumps(event, separators=(",", ":")))
    return {**event, "planet": "x" * room}


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (_of_size(256 * KIB), None),
        (_of_size(256 * KIB + 1), "event_too_large"),
        # The event itself is one level, the member the next.
        (success(planet=_nested(31)), None),
        (success(planet=_nested(32)), "too_deep"),
        (failure(error={"retry_context": {"a": _nested(29)}}), None),
        (failure(error={"retry_context": {"a": _nested(30)}}), "too_deep"),
        (success(planet={f"k{n}": 1 for n in range(200)}), None),
        (success(planet={f"k{n}": 1 for n in range(201)}), "too_many_keys"),
        (success(tags={f"k{n}": "v" for n in range(201)}), "too_many_keys"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_event_at_its_limits(
    collector: RunningCollector, event: dict[str, Any], code: str | None
) -> None:
    """Bytes, depth and keys of one event: the last that is taken, the first that is not."""
    body = json.dumps({"events": [event]}, separators=(",", ":")).encode()

    answer = _send(collector, body).json()

    assert [each["code"] for each in answer["rejected"]] == ([] if code is None else [code])


MOST = 2**40


@pytest.mark.parametrize(
    ("make", "pointer"),
    [
        (lambda most: counts(calls=most), "/calls"),
        (lambda most: counts(conversations=most), "/conversations"),
        (lambda most: counts(calls_squared=most), "/calls_squared"),
        (lambda most: counts(repairs={"url": most}), "/repairs"),
        (lambda most: counts(phantom_arguments={"pet": most}), "/phantom_arguments"),
        (lambda most: counts(repeated=most), "/repeated"),
        (lambda most: conversation_end(calls={"t": most}), "/calls"),
        (lambda most: counts(duration_ms={"sum": most * 1e15 / MOST}), "/duration_ms/sum"),
        (lambda most: failure(error={"issues_total": most >> 9}), "/error/issues_total"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_amount_at_its_limit(
    collector: RunningCollector, make: Callable[[int], dict[str, Any]], pointer: str
) -> None:
    """What is added up is bounded, so that no sum of what was taken can overflow a column."""
    within = 2**40 - (2**9 if "total" in pointer else 0)
    events = [make(within), make(within), make(within), make(MOST * 2)]

    answer = _send(collector, json.dumps({"events": events}).encode()).json()

    assert answer["accepted"] == 3
    (rejected,) = answer["rejected"]
    assert (rejected["index"], rejected["code"]) == (3, "out_of_range")
    assert rejected["pointer"] == f"/events/3{pointer}"
    engine = open_engine(collector.database_url)
    assert recount(engine).right
    engine.dispose()


@pytest.mark.parametrize("count", [100, 101])
def test_tags_at_their_limit(collector: RunningCollector, count: int) -> None:
    """A hundred tags are kept; the rest is cut off, and a flag says so."""
    event = success(tags={f"k{n}": "v" for n in range(count)})

    assert collector.post(event).json()["accepted"] == 1

    stored = _stored(collector, event)
    assert len(stored["tags"]) == 100
    assert ("truncated:tags" in (stored["flags"] or [])) == (count > 100)


@pytest.mark.parametrize("length", [16_384, 16_385])
def test_a_text_at_its_limit(collector: RunningCollector, length: int) -> None:
    """A text of 16 KiB is stored as it came; a longer one is cut and says how long it was."""
    event = failure(error={"received": "é" * length})

    assert collector.post(event).json()["accepted"] == 1

    stored = _stored(collector, event)
    assert len(stored["received"]) == 16_384
    cut = stored["received"].endswith(f"…[{length} characters]")
    flagged = "truncated:error.received" in (stored["flags"] or [])
    assert cut == flagged == (length > 16_384)


@pytest.mark.parametrize(("length", "statuses"), [(15_000, {200}), (16_500, {431, 400})])
def test_headers_at_their_limit(
    collector: RunningCollector, length: int, statuses: set[int]
) -> None:
    """16 KiB of headers are far more than anybody needs; beyond that nothing is read."""
    assert _send(collector, b'{"events": []}', **JSON, **{"X-A": "a" * length}).status_code in (
        statuses
    )


def test_what_would_be_read_is_said(collector: RunningCollector) -> None:
    """An answer of 415 names the codings and the type that are read."""
    coding = _send(collector, b"{}", **JSON, **{"Content-Encoding": "br"})
    kind = _send(collector, b"{}", **{"Content-Type": "text/plain"})

    assert coding.headers["accept-encoding"] == "gzip, identity"
    assert kind.headers["accept"] == "application/json"


def test_a_fault_says_nothing_but_its_id() -> None:
    """A bug is 500 with an id that is in the log, and nothing of what went wrong."""

    async def broken(_scope: Scope, _receive: Receive, _send: Send) -> None:
        message = "SELECT hunter2 FROM secrets"
        raise RuntimeError(message)

    async def ask() -> httpx2.Response:
        transport = httpx2.ASGITransport(app=RequestScope(broken))
        async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.post("/v1/events", content=b"{}")

    answer = asyncio.run(ask())

    assert answer.status_code == 500
    assert answer.json()["error_id"] == answer.headers["x-request-id"]
    assert "hunter2" not in answer.text
    assert "RuntimeError" not in answer.text


def test_every_commit_is_synced(engine: Engine) -> None:
    """The writer's connection waits for the disk at every commit (power loss takes nothing)."""
    with writer_connection(engine) as conn:
        if is_sqlite(engine):
            assert conn.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
            assert conn.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2  # FULL
        else:
            wanted = "SHOW synchronous_commit"
            assert conn.exec_driver_sql(wanted).scalar_one() == "on"
