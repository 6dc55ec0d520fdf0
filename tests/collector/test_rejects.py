"""Refused events: kept so that they can be stored once this version understands them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from sqlalchemy import Engine, func, insert, select
from tests.collector.poisons import poison
from tests.factories import event_id, failure, success

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.admin.reingest import retry_rejects
from toolfault_collector.clock import DAY_US, format_time, now_us
from toolfault_collector.doctor.recount import recount
from toolfault_collector.protocol.receipt import Receipt
from toolfault_collector.protocol.steps import finish
from toolfault_collector.protocol.submission import read_batch
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_group
from toolfault_collector.storage.tables import rejected_event, tool_call

SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def _send(engine: Engine, *events: Any, received_at: int | None = None, **members: Any) -> Receipt:
    """Store a batch the way the ingest path does."""
    body = json.dumps({"events": events, **members}).encode()
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        batch = finish(read_batch(body, project_id=project_id, received_at=received_at or now_us()))
        return store_group(conn, [batch]).receipts[0]


def _bodies(engine: Engine) -> list[str]:
    with read_connection(engine) as conn:
        query = select(rejected_event.c.body).order_by(rejected_event.c.id)
        return list(conn.execute(query).scalars())


def _understood(engine: Engine) -> None:
    """Do what an upgrade does to a member that was refused: the kept event is sound by now."""
    with write_transaction(engine) as conn:
        for row in conn.execute(select(rejected_event.c.id, rejected_event.c.body)).all():
            event = json.loads(row.body)
            event["seq"] = 7
            conn.execute(
                rejected_event.update()
                .where(rejected_event.c.id == row.id)
                .values(body=json.dumps(event))
            )


def test_understood_events_are_stored(engine: Engine) -> None:
    """What is sound by now is stored with the members of its batch and leaves the list."""
    first, second = failure(seq="x", agent=...), success(seq="y")
    _send(engine, first, second, resource={"agent": "travel-bot", "host": "h1"})
    assert retry_rejects(engine).refused == 2
    _understood(engine)

    done = retry_rejects(engine)

    assert (done.accepted, done.duplicate, done.refused) == (2, 0, 0)
    assert _bodies(engine) == []
    with read_connection(engine) as conn:
        rows = conn.execute(select(tool_call).order_by(tool_call.c.occurred_at)).all()
    assert [row.event_id for row in rows] == [first["event_id"], second["event_id"]]
    assert {row.agent for row in rows} == {"travel-bot"}
    assert rows[0].chain_id is not None
    assert recount(engine).right


def test_a_resend_keeps_nothing_twice(engine: Engine) -> None:
    """A refused event that names itself is kept once for each fault, wherever it stands."""
    bad = failure(seq="x")
    for events in (
        [bad, bad],
        [success(), bad],
        [failure(), success(), {**bad, "seq": 1, "tool": ""}],
    ):
        _send(engine, *events)
    with read_connection(engine) as conn:
        kept = conn.execute(select(rejected_event.c.pointer).order_by(rejected_event.c.id))
        pointers = list(kept.scalars())
    assert pointers == ["/events/0/seq", "/events/2/tool"]


@SQLITE
def test_a_second_try_changes_nothing(engine: Engine) -> None:
    """An event that came again meanwhile is a duplicate; trying twice stores nothing twice."""
    event = failure(seq="x")
    _send(engine, event)
    _send(engine, {**event, "seq": 7})
    _understood(engine)

    done = retry_rejects(engine)

    assert (done.accepted, done.duplicate, done.refused) == (0, 1, 0)
    assert retry_rejects(engine).duplicate == 0
    with read_connection(engine) as conn:
        assert conn.execute(select(func.count()).select_from(tool_call)).scalar_one() == 1


@SQLITE
def test_a_dry_run_stores_nothing(engine: Engine) -> None:
    """It only says how many could be stored."""
    _send(engine, failure(seq="x"), failure(seq="x", event_id="no id"))
    _understood(engine)

    done = retry_rejects(engine, dry_run=True)

    assert (done.accepted, done.refused) == (1, 1)
    assert len(_bodies(engine)) == 2


@SQLITE
def test_only_what_was_asked_for(engine: Engine) -> None:
    """Projects and codes are left alone unless they are meant."""
    _send(engine, failure(seq="x"), failure(seq=-1))
    _understood(engine)

    assert retry_rejects(engine, project_id=999).accepted == 0
    assert retry_rejects(engine, code="out_of_range").accepted == 1
    assert retry_rejects(engine).accepted == 1


@SQLITE
def test_time_is_believed_as_when_it_arrived(engine: Engine) -> None:
    """A client's time that was sound when the event arrived is sound a month later."""
    arrived = now_us() - 40 * DAY_US
    event = failure(seq="x", at=arrived - DAY_US)
    _send(engine, event, received_at=arrived)
    _understood(engine)

    retry_rejects(engine)

    with read_connection(engine) as conn:
        row = conn.execute(select(tool_call.c.occurred_at, tool_call.c.time_source)).one()
    assert (format_time(row.occurred_at), row.time_source) == (event["occurred_at"], "client")


@SQLITE
def test_what_is_cut_stays(engine: Engine) -> None:
    """An event too large to be kept whole is kept in part, shown, and not tried."""
    _send(engine, failure(seq="x", planet="y" * 40_000))

    assert len(_bodies(engine)[0]) == 16_384
    assert retry_rejects(engine).refused == 1


SECRETS: list[dict[str, Any]] = [
    {"password": "hunter2-correct"},
    {"password": 12345678},
    {"api_key": ["hunter2-correct", {"x": 12345678}]},
    {"note": "password=hunter2-correct, and so on"},
    {"note": json.dumps({"token": "hunter2-correct", "n": [1]})},
    {"note": "say 'password': 'hunter2-correct'"},
    {"note": "Authorization: Bearer hunter2-correct"},
    {"auth": {"client_secret": "hunter2-correct", "pwd": None}},
]


@SQLITE
def test_what_is_kept_is_json_without_secrets(engine: Engine) -> None:
    """Redaction leaves the event readable, so that it can be tried again."""
    _send(engine, *(failure(seq="x", **secrets) for secrets in SECRETS))

    for body, secrets in zip(_bodies(engine), SECRETS, strict=True):
        assert "hunter2" not in body
        assert "12345678" not in body
        assert "[redacted:" in body
        assert set(json.loads(body)) >= {"event_id", "type", "tool", *secrets}


def test_odd_texts_are_kept(engine: Engine) -> None:
    """Surrogates, NUL and NaN, for which events are refused, come back as they were."""
    body = json.dumps({"events": [failure(seq="x", planet="a\ud800\0b")]}).encode()
    body = body.replace(b'"duration_ms": 1.0', b'"duration_ms": NaN')
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        store_group(conn, [finish(read_batch(body, project_id=project_id, received_at=now_us()))])

    kept = json.loads(_bodies(engine)[0])

    assert kept["planet"] == "a\ud800\0b"
    assert kept["duration_ms"] != kept["duration_ms"]


def test_what_the_database_refuses_costs_itself_alone(engine: Engine) -> None:
    """One kept event that still cannot be stored keeps no other from being stored."""
    bad, good = failure("poison", seq="x"), failure(seq="y")
    _send(engine, good, bad, failure(seq="z"))
    _understood(engine)
    with write_transaction(engine) as conn:
        poison(conn)

    done = retry_rejects(engine)

    assert (done.accepted, done.refused) == (2, 1)
    assert [json.loads(body)["event_id"] for body in _bodies(engine)] == [bad["event_id"]]
    assert recount(engine).right


@SQLITE
def test_many_are_tried_in_parts(engine: Engine) -> None:
    """More than one transaction's worth is tried, each once."""
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        conn.execute(
            insert(rejected_event),
            [
                {
                    "project_id": project_id,
                    "received_at": now_us(),
                    "event_id": None,
                    "code": "wrong_type",
                    "pointer": "/events/0",
                    "body": msgspec.json.encode(success(event_id=event_id())).decode()
                    if number % 3
                    else "{}",
                }
                for number in range(501)
            ],
        )

    done = retry_rejects(engine)

    assert (done.accepted, done.refused) == (334, 167)
    assert len(_bodies(engine)) == 167
