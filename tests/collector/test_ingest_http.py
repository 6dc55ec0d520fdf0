"""The thin end-to-end path: a batch over HTTP is in the database once it is acknowledged."""

from __future__ import annotations

from sqlalchemy import func, select
from tests.factories import failure, success
from tests.running import RunningCollector

from toolfault_collector.clock import now_us
from toolfault_collector.storage.database.engine import open_engine, read_connection
from toolfault_collector.storage.tables import api_key, chain, tool_call


def test_acknowledged_events_are_stored(server: RunningCollector) -> None:
    """An acknowledged batch is in the database with its chain, and a resend changes nothing.

    When its key was last used is noted with the events.
    """
    began = now_us()
    events = [failure(), success()]

    first, second = server.post(*events), server.post(*events)

    assert first.json() == {"accepted": 2, "duplicate": 0, "rejected": []}
    assert second.json() == {"accepted": 0, "duplicate": 2, "rejected": []}
    engine = open_engine(server.database_url)
    with read_connection(engine) as conn:
        calls = conn.execute(select(func.count()).select_from(tool_call)).scalar_one()
        chains = conn.execute(select(chain.c.outcome, chain.c.round_trips)).all()
        used = conn.execute(select(api_key.c.last_used_at)).scalar_one()
    engine.dispose()
    assert calls == 2
    assert chains == [("recovered", 1)]
    assert began <= used <= now_us()
