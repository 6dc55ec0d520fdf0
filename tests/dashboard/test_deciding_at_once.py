"""Two people who decide about a kind of failure in the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable

from sqlalchemy import Engine, select
from tests.dashboard.generated import NOW, fill

from toolfault_collector.admin.audit import acts
from toolfault_collector.storage.database.engine import read_connection
from toolfault_collector.storage.tables import project, signature
from toolfault_dashboard.writes.kind_states import Decision, decide


def test_decisions_at_once_take_turns(engine: Engine) -> None:
    """Each of eight is stored and in the log; the last one stands."""
    fill(engine)
    with read_connection(engine) as conn:
        number, fingerprint = conn.execute(
            select(signature.c.project_id, signature.c.fingerprint)
            .join(project, project.c.id == signature.c.project_id)
            .limit(1)
        ).one()
    ready = threading.Barrier(8)
    failed: list[Exception] = []

    def owner(name: str) -> Callable[[], None]:
        def run() -> None:
            ready.wait()
            try:
                decide(engine, number, [fingerprint], Decision(owner=name), actor=name, now=NOW)
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
