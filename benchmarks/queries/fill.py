"""A large database in little time: a history stored by the collector, then copied forward in time.

The first part goes through the collector as every event does. Its rows are then copied with new
ids, a later time and the next release, so that chains, conversations and issues of a copy belong
together as those of the original do. The rollups are counted from all rows at the end;
``toolfault doctor --recount`` finds nothing wrong.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import msgspec
from shop import conversations
from sqlalchemy import Connection, Engine, Table, func, select, text, update

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, MINUTE_US, format_time
from toolfault_collector.storage.cache_versions import QUARTER_US
from toolfault_collector.storage.database.bulk import insert_rows
from toolfault_collector.storage.database.engine import is_sqlite, open_engine, write_transaction
from toolfault_collector.storage.database.schema import prepare
from toolfault_collector.storage.rollups import add_counts, counted_by_sql, folded_by_sql
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import (
    call_counts,
    chain,
    conversation,
    conversation_end,
    event_key,
    failure_counts,
    issue,
    message,
    metadata,
    quarter_version,
    signature,
    tool_call,
)
from toolfault_dashboard.storing import Storing

__all__ = ["PROJECT", "TIMES", "fill"]

PROJECT: Final = "shop"
DAYS: Final = 90
_BASE: Final = 20_000  # failures that go through the collector
_BATCH: Final = 500
_RELEASES: Final = 8

_COPIED: Final = (conversation, conversation_end, tool_call, issue, chain, call_counts)
_KEYS: Final = "INSERT INTO event_key SELECT project_id, event_id FROM tool_call"
TIMES: Final = frozenset(
    [
        "first_at",
        "last_at",
        "ended_at",
        "received_at",
        "occurred_at",
        "started_at",
        "first_failed_at",
        "last_started_at",
        "failed_until",
        "recovered_at",
        "minute",
    ]
)
"""Columns that are moments, which a copy has later."""
_EVENT_IDS: Final = frozenset(["event_id", "end_event_id", "chain_id", "last_event_id"])


def fill(
    url: str, failures: int, *, now: int, seed: int = 1, say: Callable[[str], None] = lambda _: None
) -> None:
    """Fill the empty database of *url* with some *failures* failures of the 90 days before *now*.

    Args:
        url: Database URL.
        failures: How many; a multiple of 20,000 above that.
        now: Microseconds since the epoch: where the history ends.
        seed: Same seed, same history.
        say: Told of the progress.
    """
    engine = open_engine(url, synchronous="NORMAL")
    prepare(engine, migrate=True)
    copies = max(1, round(failures / _BASE))
    span = DAYS * DAY_US // copies // MINUTE_US * MINUTE_US
    begin = now - copies * span
    _store_base(engine, min(failures, _BASE), begin=begin, span=span, seed=seed)
    say("stored the first part")
    for copy in range(1, copies):
        with write_transaction(engine) as conn:
            for table in _COPIED:
                _copy(conn, table, copy, by=copy * span, copies=copies)
        if copy % 10 == 0:
            say(f"copied it {copy} times")
    with write_transaction(engine) as conn:
        _widen(conn, by=(copies - 1) * span)
        conn.execute(failure_counts.delete())
        add_counts(conn, counted_by_sql(conn))
        add_counts(conn, folded_by_sql(conn))
        _store_versions(conn)
        _store_changes(conn, now)
        if not is_sqlite(conn):
            for table in metadata.sorted_tables:
                if "id" in table.c:
                    _set_sequence(conn, table)
            conn.execute(event_key.delete())
            conn.execute(text(_KEYS))
    if not is_sqlite(engine):  # nobody analyses SQLite
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
            conn.execute(text("VACUUM ANALYZE"))
    # As a server does that has run for a while.
    Storing(engine).store(now, lambda: False)
    engine.dispose()
    say("filled")


def _store_base(engine: Engine, failures: int, *, begin: int, span: int, seed: int) -> None:
    end = begin + span - 20 * MINUTE_US  # its last conversation ends before the next part begins
    waiting: list[dict[str, Any]] = []
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, PROJECT)

        def store() -> None:
            receipt = store_events(
                conn, project_id, waiting, received_at=begin + span, time_policy="import"
            )
            assert not receipt.rejected, receipt.rejected[:1]
            waiting.clear()

        for event in conversations(failures, begin=begin, end=end, seed=seed):
            waiting.append(event)
            if len(waiting) == _BATCH:
                store()
        store()


def _copy(conn: Connection, table: Table, copy: int, *, by: int, copies: int) -> None:
    """Insert copy number *copy* of the first part's rows of *table*, *by* microseconds later."""
    names = tuple(column.name for column in table.columns)
    rows = _FIRST_PARTS.get((str(conn.engine.url), table.name))
    if rows is None:
        rows = _FIRST_PARTS[str(conn.engine.url), table.name] = _stored(conn, table)
    change = [_changer(name, copy, by=by, copies=copies, rows=rows) for name in names]
    insert_rows(
        conn,
        table,
        names,
        [
            tuple(
                value if value is None or how is None else how(value)
                for value, how in zip(row, change, strict=True)
            )
            for row in rows
        ],
    )


_FIRST_PARTS: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
_CALLS: dict[int, int] = {}


def _stored(conn: Connection, table: Table) -> list[tuple[Any, ...]]:
    """Return the rows of *table*; JSON as the text it is stored as."""
    names = ", ".join(
        f'"{column.name}"' + ("" if is_sqlite(conn) else "::text" * _is_json(column))
        for column in table.columns
    )
    order = {"conversation": "first_at", "issue": "tool_call_id, position"}.get(table.name, "id")
    sql = f"SELECT {names} FROM {table.name} ORDER BY {order}"
    return [tuple(row) for row in conn.exec_driver_sql(sql)]


def _is_json(column: Any) -> bool:
    return column.type.__class__.__name__ == "JSON"


def _changer(
    name: str, copy: int, *, by: int, copies: int, rows: list[tuple[Any, ...]]
) -> Callable[[Any], Any] | None:
    """Return what makes a value of column *name* that of copy number *copy*."""
    if name == "id":
        offset = copy * (rows[-1][0] if rows else 0)
        return lambda value: value + offset
    if name == "tool_call_id":
        of_calls = next(each for key, each in _FIRST_PARTS.items() if key[1] == "tool_call")
        beyond = copy * of_calls[-1][0]
        return lambda value: value + beyond
    if name in TIMES:
        return lambda value: value + by
    if name == "settles_at":
        return lambda value: value and value + by
    if name in _EVENT_IDS:
        prefix = f"{copy:04x}"
        return lambda value: prefix + value[4:]
    if name == "session_id":
        begin = f"{copy:04x}"
        return lambda value: begin + value[4:]
    if name == "release":
        number = copy * _RELEASES // copies
        return lambda value: f"1.{4 + number}{value[3:]}"
    if name == "state":
        return lambda value: _later(value, copy, by)
    if name == "successes":
        return lambda value: _later_successes(value, by)
    return None


def _later(state: str, copy: int, by: int) -> str:
    """Return the state of a chain that is not over, in copy number *copy*."""
    found = msgspec.json.decode(state)
    for name in ("ends", "unturned_ends"):
        found[name] = [[end + by, number] for end, number in found[name]]
    if found["beside"]:
        started_at, seq, event_id = found["beside"]
        found["beside"] = [started_at + by, seq, f"{copy:04x}{event_id[4:]}"]
    return msgspec.json.encode(found).decode()


def _later_successes(successes: str, by: int) -> str:
    """Return the *successes* of a conversation, *by* microseconds later."""
    found = msgspec.json.decode(successes)
    return msgspec.json.encode([[at + by, *more] for at, *more in found]).decode()


def _widen(conn: Connection, *, by: int) -> None:
    for table in (message, signature):
        conn.execute(update(table).values(last_at=table.c.last_at + by))


def _set_sequence(conn: Connection, table: Table) -> None:
    highest = conn.execute(select(func.max(table.c.id))).scalar_one()
    if highest is not None:
        conn.execute(select(func.setval(f"{table.name}_id_seq", highest)))


def _store_versions(conn: Connection) -> None:
    """Give every quarter the version that the collector would have given it, more or less."""
    quarters = (
        "INSERT INTO quarter_version (project_id, starts_at, version)"
        f" SELECT project_id, period + n * {QUARTER_US}, sum(calls) / 4 + 1 FROM failure_counts,"
        " (SELECT 0 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3) AS four"
        " WHERE \"by\" = 'tool' AND period > 0 GROUP BY project_id, period, n"
    )
    conn.execute(quarter_version.delete())
    conn.execute(text(quarters))


def _store_changes(conn: Connection, now: int) -> None:
    generator = random.Random(2)
    store_events(
        conn,
        ensure_project(conn, PROJECT),
        [
            {
                "type": "change",
                "event_id": f"ffffffff-0000-7000-8000-{number:012x}",
                "occurred_at": format_time(now - (7 + 20 * number) * DAY_US),
                "label": f"change {number}",
                "tool": f"tool_{generator.randrange(5):02d}" if number % 2 else None,
                "kind": "manual",
            }
            for number in range(4)
        ],
        received_at=now,
        time_policy="import",
    )
