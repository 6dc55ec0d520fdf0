"""What readers ask, of up to 20 million failures on ClickHouse in this process, with nothing kept.

    python benchmarks/queries/columnar.py --database sqlite:///base.db --folder NEW
        [--failures 1000000 5000000 20000000] [--times 3]

The database is one that queries/fill.py has filled. Its rows are shipped into ClickHouse's files in
the folder as a server ships them. Then ClickHouse copies them, each copy with ids of its own and
some minutes later, until there are as many failures as asked for: more conversations at the same
time, as of more agents. Months that are over are merged, as ClickHouse does a day later; the newest
lies in the parts that it happens to have. At each size every question is asked once cold (the marks
and pages that ClickHouse keeps are dropped before) and then several times. Prints the clock's
milliseconds of the cold and of the median time, beside what ClickHouse itself needed for the same
statements, and last the rows that were shipped a second.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from fill import TIMES
from reads import QUESTIONS
from sqlalchemy import Connection, Engine, event, text

from toolfault_collector.clickhouse import outbox
from toolfault_collector.clickhouse.database import client_of, open_events, prepare_events
from toolfault_collector.clickhouse.shipper import Shipper
from toolfault_collector.clickhouse.tables import SHIPPED
from toolfault_collector.clock import MINUTE_US, now_us
from toolfault_collector.storage.database.engine import open_engine, write_transaction
from toolfault_dashboard import queries
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.reading import read_events_from, reading
from toolfault_dashboard.search import parse

TARGET: Final = 2_000.0  # milliseconds, cold, at 20 million failures

Ask = Callable[[Connection, Scope], Any]


def _compared(conn: Connection, scope: Scope) -> object:
    """Compare the last week with the week before."""
    before, after = (
        queries.cohort_scope(scope, each) for each in ("since:14d until:7d", "since:7d")
    )
    return queries.comparison(conn, before, after)


MORE: Final[dict[str, tuple[Ask, str]]] = {
    "overview, one tool, 14 days": (queries.overview, "tool:tool_00 since:14d"),
    "matrix tool x code, 14 days": (lambda c, s: queries.matrix(c, s, by="code"), "since:14d"),
    "matrix tool x field, 14 days": (lambda c, s: queries.matrix(c, s, by="field"), "since:14d"),
    "over time, 90 days": (queries.failures_over_time, "since:90d"),
    "kinds, 14 days": (queries.kinds, "since:14d"),
    "week against week": (_compared, ""),
}

# Columns that are moved on in a copy: ids by a multiple, times by minutes, names by a suffix.
_IDS: Final = frozenset({"id", "tool_call_id"})
_NAMES: Final = frozenset({"event_id", "session_id", "chain_id", "end_event_id", "last_event_id"})
_COPIED: Final = frozenset(
    {"tool_call", "issue", "chain", "conversation", "conversation_end", "call_counts"}
)


def main() -> None:
    """Ship, grow and ask."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--database", required=True, help="URL of a database filled before")
    parser.add_argument("--folder", required=True, help="new folder for ClickHouse's files")
    parser.add_argument(
        "--failures", nargs="*", type=int, default=[1_000_000, 5_000_000, 20_000_000]
    )
    parser.add_argument("--times", type=int, default=3, help="how often each is asked when warm")
    chosen = parser.parse_args()
    engine = open_engine(chosen.database)
    events = open_events(f"clickhousedb:///default?interface=chdb&path={chosen.folder}")
    prepare_events(events)
    read_events_from(engine, events)
    shipped = _ship(engine, events)
    for wanted in chosen.failures:
        _grow(events, wanted)
        _say_sizes(events)
        _ask_all(engine, events, chosen.times)
    sys.stdout.write(shipped)


def _ship(engine: Engine, events: Engine) -> str:
    with write_transaction(engine) as conn:
        outbox.install(conn)
    shipper, began, used = Shipper(engine, events), time.perf_counter(), time.process_time()
    rows = shipper.ship_all()
    if not rows:
        raise SystemExit("nothing waits to be shipped: name a database that nobody has shipped yet")
    clock, cpu = time.perf_counter() - began, time.process_time() - used
    pace = f"{rows / clock:,.0f} a second, {rows / cpu:,.0f} a second of the processor"
    return f"\nshipped {rows:,} rows: {pace}\n"


def _count(conn: Connection, table: str, where: str = "1") -> int:
    asked = f"SELECT count() FROM {table} FINAL WHERE {where}"
    return int(client_of(conn).query(asked).result_rows[0][0])


def _grow(events: Engine, wanted: int) -> None:
    """Copy the shipped rows until there are *wanted* failures."""
    with events.connect() as conn:
        client = client_of(conn)
        client.command(
            "CREATE TABLE IF NOT EXISTS grown (copy UInt32, failures UInt64)"
            " ENGINE = MergeTree ORDER BY copy"
        )
        done = int(client.query("SELECT count() FROM grown").result_rows[0][0])
        base = "id <= (SELECT max(id) FROM tool_call WHERE NOT endsWith(event_id, '~'))"
        one = _count(conn, "tool_call", f"NOT success AND {base}")
        while one * (done + 1) < wanted:
            done += 1
            for each in SHIPPED:
                if each.table.name in _COPIED:
                    client.command(_copy(each.table.name, [c.name for c in each.table.c], done))
            client.insert("grown", [[done, one]], ["copy", "failures"])
        for each in SHIPPED:
            client.command(f"OPTIMIZE TABLE {each.table.name}")
        _merge_months_that_are_over(client)


def _merge_months_that_are_over(client: Any) -> None:
    """Do at once what ClickHouse does a day after the last row of a month came."""
    asked = (
        "SELECT DISTINCT table, partition FROM system.parts WHERE active AND length(partition) = 6"
    )
    found = sorted(client.query(asked).result_rows)
    newest = max(month for _, month in found)
    for table, month in found:
        if month < newest:
            client.command(f"OPTIMIZE TABLE {table} PARTITION {month} FINAL")


def _copy(table: str, names: list[str], copy: int) -> str:
    moved = []
    for name in names:
        if name in _IDS:
            moved.append(f"{name} + {copy} * 1000000000")
        elif name in TIMES:
            moved.append(f"{name} + {copy * 7 % 1_440 * MINUTE_US}")
        elif name == "settles_at":
            moved.append(f"if({name} > 0, {name} + {copy * 7 % 1_440 * MINUTE_US}, 0)")
        elif name in _NAMES:
            moved.append(f"concat({name}, '-{copy}~')")
        else:
            moved.append(f"`{name}`")
    # A copy is told from the first part by the mark at the end of its event ids.
    first = {
        "issue": "tool_call_id < 1000000000",
        "conversation": "NOT endsWith(session_id, '~')",
    }.get(table, "id < 1000000000")
    listed = ", ".join(f"`{name}`" for name in names)
    return (
        f"INSERT INTO {table} ({listed}, shipment)"
        f" SELECT {', '.join(moved)}, shipment FROM {table} WHERE {first}"
    )


def _say_sizes(events: Engine) -> None:
    with events.connect() as conn:
        failures, calls = _count(conn, "tool_call", "NOT success"), _count(conn, "tool_call")
        asked = "SELECT sum(bytes_on_disk) FROM system.parts WHERE active"
        size = int(client_of(conn).query(asked).result_rows[0][0])
    sys.stdout.write(
        f"\n{failures:,} failures of {calls:,} calls, {size / 2**20:,.0f} MiB on disk\n\n"
        "| question | cold ms | warm ms | ClickHouse alone, ms | statements |\n"
        "|---|---|---|---|---|\n"
    )


@contextmanager
def _timed(events: Engine) -> Iterator[list[float]]:
    """Yield the milliseconds of each statement that ClickHouse runs in the block."""
    spent: list[float] = []
    began: list[float] = []

    def before(*_: object) -> None:
        began.append(time.perf_counter())

    def after(*_: object) -> None:
        spent.append((time.perf_counter() - began.pop()) * 1_000)

    event.listen(events, "before_cursor_execute", before)
    event.listen(events, "after_cursor_execute", after)
    try:
        yield spent
    finally:
        event.remove(events, "before_cursor_execute", before)
        event.remove(events, "after_cursor_execute", after)


def _ask_all(engine: Engine, events: Engine, times: int) -> None:
    for name, (ask, query) in {**QUESTIONS, **MORE}.items():
        with events.connect() as conn:
            for cache in ("MARK", "UNCOMPRESSED", "QUERY CONDITION"):
                conn.execute(text(f"SYSTEM DROP {cache} CACHE"))
        with _timed(events) as spent:
            cold = _once(engine, ask, query)
            alone, statements = sum(spent), len(spent)
        warm = statistics.median(_once(engine, ask, query) for _ in range(times))
        shown = f"**{cold:,.0f}**" if cold > TARGET else f"{cold:,.0f}"
        sys.stdout.write(f"| {name} | {shown} | {warm:,.0f} | {alone:,.0f} | {statements} |\n")
        sys.stdout.flush()


def _once(engine: Engine, ask: Ask, query: str) -> float:
    began = time.perf_counter()
    with reading(engine) as conn:
        project = queries.projects(conn)[0]
        ask(conn, Scope(project.id, parse(query), now_us()))
    return (time.perf_counter() - began) * 1_000


if __name__ == "__main__":
    main()
