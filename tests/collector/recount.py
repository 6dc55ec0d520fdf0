"""Everything that is kept beside the calls, counted again from the calls."""

from __future__ import annotations

from collections import defaultdict

from sqlalchemy import Engine, select
from tests.collector.naive_chains import chains_of

from toolfault_collector.chains.fold import Call
from toolfault_collector.storage.database.engine import read_connection
from toolfault_collector.storage.tables import chain, tool_call

__all__ = ["assert_counts_hold"]


def assert_counts_hold(engine: Engine) -> None:
    """Compare the stored chains with those of a naive reading of the stored calls."""
    by_key: dict[tuple[int, str, str], list[Call]] = defaultdict(list)
    with read_connection(engine) as conn:
        for row in conn.execute(select(tool_call).where(tool_call.c.session_id.is_not(None))):
            by_key[row.project_id, row.session_id, row.tool].append(
                Call(
                    row.event_id,
                    row.started_at,
                    row.occurred_at,
                    row.seq,
                    row.turn,
                    row.success,
                    row.time_source,
                )
            )
        stored = {
            row.chain_id: (row.calls, row.failures, row.round_trips, row.recovered_at is not None)
            for row in conn.execute(select(chain))
        }
    expected = {
        one.failures[0].event_id: (
            len(one.members),
            len(one.failures),
            len(one.round_trips),
            one.success is not None,
        )
        for calls in by_key.values()
        for one in chains_of(calls)
    }
    assert stored == expected
