"""What is kept of refused events is bounded for each batch and made before its transaction."""

from __future__ import annotations

import json

import pytest
from tests.factories import failure

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import now_us
from toolfault_collector.protocol.refused import MAX_BODY, MAX_REDACTED, Rejection, with_bodies
from toolfault_collector.storage.database.engine import open_engine, write_transaction
from toolfault_collector.storage.store import store_events


def test_only_so_much_of_a_batch_is_redacted():
    """A batch of large refused events costs its neighbours a bounded time: the rest has no body."""
    source = json.dumps({"type": "nope", "text": "word " * 12_000}).encode()
    refused = [Rejection(n, None, "unknown_type", f"/events/{n}", source) for n in range(100)]

    kept = with_bodies(refused, {"agent": "travel-bot"})

    bodies = [each.body for each in kept if each.body is not None]
    assert len(kept) == 100
    assert len(bodies) == -(-MAX_REDACTED // len(source))
    assert all(len(body) == MAX_BODY and "travel-bot" in body for body in bodies)


@pytest.mark.parametrize("slash", ["/", "\\/", "\\u002f"])
def test_a_password_in_an_address_is_found_however_json_writes_its_slashes(
    sqlite_url: str, slash: str
):
    """A sender that escapes slashes, as PHP's does, hides no password from the second net."""
    address = "postgres://app:hunter2hunter2@db.example.com/main"
    text = {"renderings": {"llm": f"no answer from {address}"}}
    event = json.dumps(failure(error=text)).replace(address, address.replace("/", slash))
    engine = open_engine(sqlite_url)

    with write_transaction(engine) as conn:
        project = ensure_project(conn, "demo")
        receipt = store_events(conn, project, [event.encode()], received_at=now_us())
        assert receipt.accepted == 1
        stored = str(conn.exec_driver_sql("SELECT * FROM tool_call").all())
    engine.dispose()

    assert "no answer from" in stored
    assert "hunter2hunter2" not in stored
