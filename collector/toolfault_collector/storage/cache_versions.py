"""Versions of days: numbers that a transaction raises for each quarter whose rows it changes.

What a reader counted of a whole day stays true for as long as the versions of its four quarters
(UTC) stay what they were, so it need not be counted again
(``toolfault_dashboard.queries.counting.segments``); of today that holds for the quarters that are
over. To a quarter belong the calls that ended in it, with their issues, the chains whose first
failure did, and the minutes of folded successes whose middle lies in it. What a chain came to
depends on its whole conversation, so a change of a conversation raises every quarter from its first
moment to its last.

A version grows by the number of calls, minutes and conversations that were written: it says too
how much a quarter holds at least. It is raised in the transaction of the rows themselves, last,
since every writer wants the row of now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from sqlalchemy import Connection

from toolfault_collector.clock import DAY_US
from toolfault_collector.storage.database.bulk import columns, upsert_rows
from toolfault_collector.storage.tables import quarter_version

__all__ = ["EVERY_QUARTER", "QUARTER_US", "Span", "raise_versions"]

Span = tuple[int, int, int]
"""A project, and the first and last microsecond of what changed in it."""

QUARTER_US: Final = DAY_US // 4

EVERY_QUARTER: Final = -1
"""Where the row starts that stands for all quarters of a project."""

# A conversation that lasts longer changes everything: nobody counts to 10,000 days for it.
_MOST_QUARTERS: Final = 160
_KEY: Final = columns("project_id starts_at")
_COLUMNS: Final = (*_KEY, "version")


def raise_versions(conn: Connection, spans: Iterable[Span]) -> None:
    """Raise the versions of all quarters that *spans* touch; the caller is in a transaction."""
    raised: Counter[tuple[int, int]] = Counter()
    for project_id, first, last in spans:
        begin, end = first // QUARTER_US, last // QUARTER_US
        if end - begin > _MOST_QUARTERS:
            raised[project_id, EVERY_QUARTER] += 1
            continue
        for quarter in range(begin, end + 1):
            raised[project_id, quarter * QUARTER_US] += 1
    # In the order of their keys: two collectors never wait for each other in a circle.
    rows = [(*key, raised[key]) for key in sorted(raised)]
    upsert_rows(conn, quarter_version, _COLUMNS, key=_KEY, rows=rows, add=True)
