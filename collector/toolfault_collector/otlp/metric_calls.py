"""Calls as metrics count them, by day: exact where traces are sampled.

A delta point is added up; of cumulative ones the difference to the last one of its series is. A
series that starts again (another start time, or a smaller count) begins from nothing, as OTLP's
data model says ("Resets and Gaps"). A resend of a point adds nothing: of cumulative ones the
difference is none, of delta ones one that ends no later than the last is passed over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from sqlalchemy import Connection

from toolfault_collector.clock import DAY_US
from toolfault_collector.otlp.points import Point
from toolfault_collector.storage.database.bulk import columns, find_rows, upsert_rows
from toolfault_collector.storage.database.engine import is_sqlite
from toolfault_collector.storage.database.postgres import insert_new
from toolfault_collector.storage.tables import metric_calls, metric_series

__all__ = ["add_points"]

_SERIES_KEY: Final = columns("project_id digest")
_SERIES: Final = (*_SERIES_KEY, *columns("started_at ended_at calls"))
_KEY: Final = columns("project_id day source tool error_type")


def add_points(conn: Connection, project_id: int, points: Iterable[Point]) -> int:
    """Add what *points* say that is new, and return the calls that this is.

    Args:
        conn: In a write transaction.
        project_id: The project.
        points: In any order.
    """
    in_order = sorted(points, key=lambda each: (each.series, each.ended_at))
    keys = sorted({(project_id, each.series) for each in in_order})
    if not is_sqlite(conn):
        # Two collectors that are sent points of one series take turns here.
        insert_new(conn, metric_series, _SERIES, [(*key, 0, 0, 0) for key in keys])
    found = find_rows(conn, metric_series, _SERIES, key="digest", among=keys, lock=True)
    last = {row[1]: (int(row[2]), int(row[3]), int(row[4])) for row in found}
    added: Counter[tuple[int, int, str, str, str]] = Counter()
    for each in in_order:
        started_at, ended_at, calls = last.get(each.series, (0, 0, 0))
        if each.ended_at <= ended_at:
            continue
        new = each.calls
        if each.cumulative and each.started_at == started_at and each.calls >= calls:
            new -= calls
        last[each.series] = (each.started_at, each.ended_at, each.calls)
        day = each.ended_at - each.ended_at % DAY_US
        added[project_id, day, each.source, each.tool, each.error_type] += new
    rows = [(project_id, series, *known) for series, known in sorted(last.items())]
    upsert_rows(conn, metric_series, _SERIES, key=_SERIES_KEY, rows=rows)
    counted = [(*key, calls) for key, calls in sorted(added.items()) if calls]
    upsert_rows(conn, metric_calls, (*_KEY, "calls"), key=_KEY, rows=counted, add=True)
    return sum(added.values())
