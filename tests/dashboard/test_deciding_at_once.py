"""Two people who decide about a kind of failure in the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable

from sqlalchemy import Engine, select
from tests.factories import failure

from toolfault_collector.admin.audit import acts
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import now_us
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import signature
from toolfault_dashboard.writes.kind_states import Decision, decide


def test_decisions_at_once_take_turns(engine: Engine) -> None:
    """Each of eight is stored and in the log; the last one stands."""
    now = now_us()
    with write_transaction(engine) as conn:
        store_events(conn, ensure_project(conn, "demo"), [failure()], received_at=now)
    with read_connection(engine) as conn:
        number, fingerprint = conn.execute(
            select(signature.c.project_id, signature.c.fingerprint)
        ).one()
    ready = threading.Barrier(8)
    failed: list[Exception] = []

    def owner(name: str) -> Callable[[], None]:
        def run() -> None:
            ready.wait()
            try:
                decide(engine, number, [fingerprint], Decision(owner=name), actor=name, now=now)
            except Exception as error:
                failed.append(error)

        return run

    threads = [threading.Thread(target=owner(f"person-{n}")) for n in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert failed == []
    with read_connection(engine) as conn:
        told = [act.actor for act in acts(conn) if act.action == "kind_changed"]
    assert sorted(told[:8]) == [f"person-{n}" for n in range(8)]
