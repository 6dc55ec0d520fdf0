"""Every example of protocol v1 that was ever released is answered as it says."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from sqlalchemy import Engine, select

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import now_us, parse_time
from toolfault_collector.http.openapi import json_schema
from toolfault_collector.protocol.receipt import Receipt
from toolfault_collector.protocol.steps import finish
from toolfault_collector.protocol.submission import read_batch
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_group
from toolfault_collector.storage.tables import issue, tool_call

GOLDEN = Path(__file__).parent.parent / "contract" / "v1"
EXAMPLES = sorted(GOLDEN.glob("ingest_*.json"))
SENT_BY_SDKS = sorted(GOLDEN.glob("sdk_*.json"))

SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
POSTGRESQL = pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)


def _store(engine: Engine, request: dict[str, Any], *, received_at: int | None = None) -> Receipt:
    body = json.dumps(request).encode()
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        batch = finish(read_batch(body, project_id=project_id, received_at=received_at or now_us()))
        return store_group(conn, [batch]).receipts[0]


def _answer(receipt: Receipt) -> dict[str, Any]:
    members = ("index", "event_id", "code", "pointer")
    rejected = [{name: getattr(each, name) for name in members} for each in receipt.rejected]
    return {"accepted": receipt.accepted, "duplicate": receipt.duplicate, "rejected": rejected}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_answered(sqlite_engine: Engine, path: Path) -> None:
    """The answer is the one frozen beside the request; sent again, all of it is a duplicate."""
    _check_example(sqlite_engine, path)


def _check_example(engine: Engine, path: Path) -> None:
    example = json.loads(path.read_text("utf-8"))

    first = _store(engine, example["request"])
    again = _store(engine, example["request"])

    assert _answer(first) == example["answer"]
    assert (again.accepted, again.conflicts) == (0, 0)
    assert again.duplicate == first.accepted + first.duplicate


@pytest.mark.parametrize("path", SENT_BY_SDKS, ids=lambda path: path.stem)
def test_whatever_an_sdk_ever_sent_is_accepted(sqlite_engine: Engine, path: Path) -> None:
    """Every batch that a released SDK emits is stored whole, with nothing changed or left over."""
    _check_sent(sqlite_engine, path)


def _check_sent(engine: Engine, path: Path) -> None:
    request = json.loads(path.read_text("utf-8"))["request"]

    receipt = _store(engine, request, received_at=parse_time(request["sent_at"]))

    assert _answer(receipt) == {"accepted": len(request["events"]), "duplicate": 0, "rejected": []}
    with read_connection(engine) as conn:
        flags = conn.execute(select(tool_call.c.flags, tool_call.c.extra)).all()
    assert set(flags) <= {(None, None)}


@POSTGRESQL
def test_every_type_is_stored_by_postgresql(engine: Engine) -> None:
    """One example of every type of event, and what an SDK sent, also pass the other engine."""
    _check_sent(engine, GOLDEN / "sdk_recovered_chain.json")
    _check_example(engine, GOLDEN / "ingest_every_type.json")


def test_members_reach_their_columns(engine: Engine) -> None:
    """Every member of the full example is kept where readers look for it."""
    example = json.loads((GOLDEN / "ingest_failure.json").read_text("utf-8"))
    sent = example["request"]["events"][0]
    _store(engine, example["request"])

    with read_connection(engine) as conn:
        row = conn.execute(select(tool_call).where(tool_call.c.seq == 7)).mappings().one()
        issues = conn.execute(select(issue).order_by(issue.c.position)).mappings().all()

    same = ["event_id", "turn", "seq", "call_id", "run_id", "trace_id", "span_id", "tool"]
    same += ["tool_requested", "agent", "model", "provider", "environment", "release", "variant"]
    same += ["session_id", "duration_ms", "success", "args_fingerprint", "args_recorded"]
    same += ["args_diff", "coercions", "tags"]
    assert {name: row[name] for name in same} == {name: sent[name] for name in same}
    error = sent["error"]
    same = ["code", "category", "audience", "kind", "phase", "issues_total", "retryable"]
    same += ["retry_hint", "retry_context", "adapter_failed"]
    assert {name: row[name] for name in same} == {name: error[name] for name in same}
    assert row["text_llm"] == error["renderings"]["llm"]
    assert row["exception_type"] == "ValidationError"
    assert row["extra"]["request_id"] == "req-1"
    assert [(each["field_pattern"], each["code"]) for each in issues] == [
        ("url", "wrong_type"),
        ("headers.*.value", "missing_field"),
        ("verify", "wrong_type"),
    ]
    assert issues[2]["near_miss"] == ["bool_from_string"]


@SQLITE
def test_what_was_changed_is_flagged(engine: Engine) -> None:
    """Tolerated events are stored with a flag for everything that is not as it was sent."""
    example = json.loads((GOLDEN / "ingest_tolerated.json").read_text("utf-8"))
    _store(engine, example["request"])

    with read_connection(engine) as conn:
        rows = conn.execute(select(tool_call).order_by(tool_call.c.id)).mappings().all()

    upper, _, odd, own = rows
    assert upper["event_id"] == "019c2e5a-7c00-7000-8000-000000000040"
    assert upper["extra"]["planet"] == "mars"
    assert (odd["code"], odd["category"], odd["audience"]) == ("wrong_type", "parameter", "system")
    assert set(odd["flags"]) == {"clock_skew", "duration", "audience", "category"}
    assert odd["duration_ms"] is None
    assert own["received"] == "a\ufffdb"
    assert "replaced:error.received" in own["flags"]


@pytest.mark.parametrize("path", SENT_BY_SDKS, ids=lambda path: path.stem)
def test_the_published_schema_fits_what_sdks_send(path: Path) -> None:
    """What any SDK sends is valid by `/v1/schema`."""
    request = json.loads(path.read_text())
    batch = request.get("request", request)
    assert [error.message for error in _validator().iter_errors(batch)] == []


@functools.cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(json_schema())


def test_the_published_schema_is_one() -> None:
    """It is a schema of its draft, and what is no event is not valid by it."""
    Draft202012Validator.check_schema(json_schema())
    assert not _validator().is_valid({"events": [{"type": "tool_call", "success": "yes"}]})
