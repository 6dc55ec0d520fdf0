"""Rollups: how often what failed, added up in the transaction that stores the calls.

=======  =======  ======  =============  ============  ===============================
by       period   tool    name           failures      calls
=======  =======  ======  =============  ============  ===============================
code     hour     (none)  code           failed calls  0
tool     day      (none)  tool           failed calls  individually reported calls
pair     day      tool    code           failed calls  of them in no chain
field    day      tool    argument       failed calls  0
folded   day      (none)  tool           0             successes that were only counted
ended    day      (none)  tool, or ""    0             conversations as senders counted them
unsent   day      tool    code or ""     see below     see below
squared  day      tool    code or ""     see below     see below
beyond   day      tool    code or ""     see below     see below
=======  =======  ======  =============  ============  ===============================

A period is the first microsecond of an hour or day, UTC; calls without a time are in period 0.
A failure counts once for each argument that one of its issues lies in (``items`` of
``items.3.port``), and under the empty name where it names none. Senders count the conversations of
each tool and, under the empty name, those over all tools.

A sampled call stands for 1 / rate calls (Horvitz-Thompson), of which 1 / rate - 1 were not sent.
``unsent`` has these, failed ones and all, in millionths of a call: integers add up to the same in
any order. It has no row where nothing was sampled. An interval needs the sum of squared weights:
``squared`` has, in the same way and in thousandths, the square of what each stands for less 1; of
one that stands for more than 10,000 calls as if it stood for so many. What the square of such a
call is more than that, ``beyond`` has in thousands. One unit for both would be too coarse for calls
that stand for two, or would leave 64 bits after some thousand that stand for a million.
"""

# ruff: noqa: S608 - only names of this code are put into statements, values are bound

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import Connection

from toolfault_collector.clock import DAY_US, MINUTE_US
from toolfault_collector.protocol.records import CallRecord, CountsRecord
from toolfault_collector.storage.database.bulk import bind, columns, upsert_rows
from toolfault_collector.storage.name_limits import is_chained
from toolfault_collector.storage.tables import failure_counts

__all__ = [
    "HOUR_US",
    "CountKey",
    "Counts",
    "add_counts",
    "calls_beyond",
    "count_calls",
    "count_folded",
    "counted_by_sql",
    "folded_by_sql",
    "squared_calls",
    "unsent_calls",
]

HOUR_US: Final = 60 * MINUTE_US
MILLION: Final = 1_000_000
# A sender that claims less would have one call outweigh every other that was ever stored.
LEAST_RATE: Final = 1e-6
# Up to this, in thousandths of a call, squares are counted in thousandths; beyond it in thousands.
MOST_SQUARED: Final = 10_000_000
_LEAST_SQUARED: Final = 1_000 / MOST_SQUARED
_THOUSANDS: Final = 1_000_000_000  # of squares of thousandths

# (project, by, period, tool, name), the key of a row of ``failure_counts``.
CountKey = tuple[int, str, int, str, str]
Counts = tuple[Counter[CountKey], Counter[CountKey]]

_KEY: Final = columns("project_id by period tool name")
_COLUMNS: Final = (*_KEY, *columns("failures calls"))


def count_calls(calls: Iterable[CallRecord]) -> Counts:
    """Return what *calls* add to the rollups: failures and calls by key."""
    failures: Counter[CountKey] = Counter()
    reported: Counter[CountKey] = Counter()
    for call in calls:
        project_id, tool, failure = call.project_id, call.tool, call.failure
        at = call.occurred_at if call.time_source != "none" else 0
        hour, day = at - at % HOUR_US, at - at % DAY_US
        by_tool = (project_id, "tool", day, "", tool)
        reported[by_tool] += 1
        if call.sample_rate < 1.0:
            unsent, by_code = unsent_calls(call.sample_rate), failure.code if failure else ""
            numbers = [("unsent", unsent), ("squared", squared_calls(unsent))]
            if call.sample_rate < _LEAST_SQUARED:
                numbers.append(("beyond", calls_beyond(unsent)))
            for by, stood_for in numbers:
                reported[project_id, by, day, tool, by_code] += stood_for
                failures[project_id, by, day, tool, by_code] += stood_for if failure else 0
        if failure is None:
            continue
        failures[by_tool] += 1
        failures[project_id, "code", hour, "", failure.code] += 1
        pair = (project_id, "pair", day, tool, failure.code)
        failures[pair] += 1
        if not is_chained(call):
            reported[pair] += 1
        for argument in failure.arguments or ("",):
            failures[project_id, "field", day, tool, argument] += 1
    return failures, reported


def unsent_calls(rate: float) -> int:
    """Return how many calls that were not sent one stands for, in millionths of a call.

    Args:
        rate: The share that was sent, from (0, 1]; less than a millionth counts as that.
    """
    if rate < LEAST_RATE:
        return MILLION * MILLION - MILLION
    return math.floor(MILLION / rate + 0.5) - MILLION


def squared_calls(unsent: int) -> int:
    """Return the square of what one call stands for, less 1, in thousandths.

    Args:
        unsent: What `unsent_calls` says of it.
    """
    weight = min((unsent + MILLION) // 1_000, MOST_SQUARED)
    return weight * weight // 1_000 - 1_000


def calls_beyond(unsent: int) -> int:
    """Return what is left of that square where it is bounded, in thousands.

    Args:
        unsent: What `unsent_calls` says of a call that stands for more than 10,000.
    """
    weight = (unsent + MILLION) // 1_000
    return (weight * weight - MOST_SQUARED * MOST_SQUARED) // _THOUSANDS


def count_folded(counts: Iterable[CountsRecord]) -> Counts:
    """Return what successes that were only counted add to the rollups."""
    reported: Counter[CountKey] = Counter()
    for each in counts:
        day, tool = each.minute - each.minute % DAY_US, each.tool
        if tool is not None:
            reported[each.project_id, "folded", day, "", tool] += each.calls
        reported[each.project_id, "ended", day, "", tool or ""] += each.conversations
    return Counter(), reported


def add_counts(conn: Connection, *counts: Counts) -> None:
    """Add *counts*, which may be negative, to the stored ones.

    In the order of their keys: two collectors that add to the same rows never wait in a circle.
    """
    failures: Counter[CountKey] = Counter()
    reported: Counter[CountKey] = Counter()
    for more_failures, more_reported in counts:
        failures.update(more_failures)
        reported.update(more_reported)
    keys = sorted(failures.keys() | reported.keys())
    rows = [(*key, failures[key], reported[key]) for key in keys]
    upsert_rows(conn, failure_counts, _COLUMNS, key=_KEY, rows=rows, add=True)


def counted_by_sql(
    conn: Connection, where: str = "true", parameters: tuple[Any, ...] = ()
) -> Counts:
    """Return what the stored calls that satisfy *where* are counted as.

    Args:
        conn: An open connection.
        where: SQL over ``tool_call`` as ``c``, with ``?`` for each of *parameters*.
        parameters: Values of *where*.
    """
    failures: Counter[CountKey] = Counter()
    reported: Counter[CountKey] = Counter()
    for query in (_BY_CODE, _BY_TOOL, _BY_PAIR, _BY_FIELD, _BY_NO_FIELD, *_SAMPLED):
        sql = query.format(where=where)
        for row in conn.exec_driver_sql(bind(conn, sql), parameters):
            key = (row[0], row[1], row[2], row[3], row[4])
            failures[key] += int(row[5])
            reported[key] += int(row[6])
    return failures, reported


def folded_by_sql(
    conn: Connection, where: str = "true", parameters: tuple[Any, ...] = ()
) -> Counts:
    """Return what the rows of ``call_counts`` (as ``f``) that satisfy *where* are counted as."""
    reported: Counter[CountKey] = Counter()
    for query in (_BY_FOLDED, _BY_ENDED):
        for row in conn.exec_driver_sql(bind(conn, query.format(where=where)), parameters):
            reported[row[0], row[1], row[2], row[3], row[4]] += int(row[5])
    return Counter(), reported


def _period_sql(width: int) -> str:
    # Written without a percent sign, which psycopg would take for a placeholder. Times before 1970
    # are none that a call can have.
    start = f"c.occurred_at / {width} * {width}"
    return f"CASE WHEN c.time_source = 'none' THEN 0 ELSE {start} END"


_HOUR: Final = _period_sql(HOUR_US)
_DAY: Final = _period_sql(DAY_US)
_BY_CODE: Final = (
    f"SELECT c.project_id, 'code', {_HOUR}, '', c.code, count(*), 0"
    " FROM tool_call c WHERE c.code IS NOT NULL AND {where} GROUP BY 1, 3, 5"
)
_BY_TOOL: Final = (
    f"SELECT c.project_id, 'tool', {_DAY}, '', c.tool,"
    " sum(CASE WHEN c.success THEN 0 ELSE 1 END), count(*)"
    " FROM tool_call c WHERE {where} GROUP BY 1, 3, 5"
)
_BY_PAIR: Final = (
    f"SELECT c.project_id, 'pair', {_DAY}, c.tool, c.code, count(*),"
    " sum(CASE WHEN c.chain_id IS NULL THEN 1 ELSE 0 END)"
    " FROM tool_call c WHERE c.code IS NOT NULL AND {where} GROUP BY 1, 3, 4, 5"
)
_BY_FIELD: Final = (
    f"SELECT c.project_id, 'field', {_DAY}, c.tool, i.root_field, count(DISTINCT c.id), 0"
    " FROM issue i JOIN tool_call c ON c.id = i.tool_call_id"
    " WHERE c.code IS NOT NULL AND i.root_field <> '' AND {where} GROUP BY 1, 3, 4, 5"
)
_BY_NO_FIELD: Final = (
    f"SELECT c.project_id, 'field', {_DAY}, c.tool, '', count(*), 0"
    " FROM tool_call c WHERE c.code IS NOT NULL AND {where} AND NOT EXISTS"
    " (SELECT 1 FROM issue i WHERE i.tool_call_id = c.id AND i.root_field <> '')"
    " GROUP BY 1, 3, 4"
)
_UNSENT_CALLS: Final = (
    f"CASE WHEN c.sample_rate < {LEAST_RATE:.6f} THEN {MILLION * MILLION - MILLION}"
    f" ELSE CAST(round({MILLION}.0 / c.sample_rate) AS BIGINT) - {MILLION} END"
)
_UNSENT: Final = (
    f"SELECT c.project_id, 'unsent', {_DAY}, c.tool, coalesce(c.code, ''),"
    f" sum(CASE WHEN c.success THEN 0 ELSE {_UNSENT_CALLS} END), sum({_UNSENT_CALLS})"
    " FROM tool_call c WHERE c.sample_rate < 1 AND {where} GROUP BY 1, 3, 4, 5"
)
_WEIGHT: Final = f"(({_UNSENT_CALLS} + {MILLION}) / 1000)"
_SQUARED_CALLS: Final = (
    f"CASE WHEN c.sample_rate < {_LEAST_SQUARED:.4f} THEN {squared_calls(MOST_SQUARED * 1_000)}"
    f" ELSE {_WEIGHT} * {_WEIGHT} / 1000 - 1000 END"
)
_SQUARED: Final = _UNSENT.replace("'unsent'", "'squared'").replace(_UNSENT_CALLS, _SQUARED_CALLS)
_CALLS_BEYOND: Final = f"({_WEIGHT} * {_WEIGHT} - {MOST_SQUARED * MOST_SQUARED}) / {_THOUSANDS}"
_BEYOND: Final = (
    _UNSENT.replace("'unsent'", "'beyond'")
    .replace(_UNSENT_CALLS, _CALLS_BEYOND)
    .replace("c.sample_rate < 1 AND", f"c.sample_rate < {_LEAST_SQUARED:.4f} AND")
)
_SAMPLED: Final = (_UNSENT, _SQUARED, _BEYOND)
_OF_DAY: Final = f"f.minute / {DAY_US} * {DAY_US}"
_BY_FOLDED: Final = (
    f"SELECT f.project_id, 'folded', {_OF_DAY}, '', f.tool, sum(f.calls)"
    " FROM call_counts f WHERE f.tool IS NOT NULL AND {where} GROUP BY 1, 3, 5"
)
_BY_ENDED: Final = (
    f"SELECT f.project_id, 'ended', {_OF_DAY}, '', coalesce(f.tool, ''), sum(f.conversations)"
    " FROM call_counts f WHERE {where} GROUP BY 1, 3, 5"
)
