"""What senders say they lost, by project, hour and reason: kept, so that a rule can ask for it.

A batch that is sent again after an answer was lost says it again; the count is then too high.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import Connection

from toolfault_collector.clock import MINUTE_US
from toolfault_collector.storage.database.bulk import columns, upsert_rows
from toolfault_collector.storage.tables import drop_counts

__all__ = ["HOUR_US", "count_drops"]

HOUR_US: Final = 60 * MINUTE_US
_KEY: Final = columns("project_id period reason")
_LONGEST: Final = 64


def count_drops(conn: Connection, told: Sequence[tuple[int, int, Mapping[str, int]]]) -> None:
    """Add what senders say they dropped; the caller is in a write transaction.

    Args:
        conn: In the transaction of the batches.
        told: Of each batch its project, when it came (microseconds), and events by reason.
    """
    found: Counter[tuple[int, int, str]] = Counter()
    for project_id, received_at, dropped in told:
        for reason, events in dropped.items():
            found[project_id, received_at - received_at % HOUR_US, reason[:_LONGEST]] += events
    rows = [(*key, found[key]) for key in sorted(found) if found[key] > 0]
    upsert_rows(conn, drop_counts, (*_KEY, "events"), key=_KEY, rows=rows, add=True)
