"""Comparing both sides: whether ClickHouse has exactly the rows of SQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Engine, select

from toolfault_collector.clickhouse import outbox
from toolfault_collector.clickhouse.database import client_of
from toolfault_collector.clickhouse.shipper import as_shipped, parts, stored_rows
from toolfault_collector.clickhouse.tables import SHIPPED, Shipped
from toolfault_collector.storage.database.engine import read_connection, write_transaction

__all__ = ["Compared", "compare"]

_ROWS_AT_ONCE: Final = 5_000

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """What a comparison of one table found.

    Attributes:
        name: The table.
        rows: Its rows in SQL.
        different: Of these, rows that are another or missing on ClickHouse.
        more: Keys of which ClickHouse has rows and SQL none, or fewer.
    """

    name: str
    rows: int
    different: int
    more: int


def compare(engine: Engine, events: Engine, *, repair: bool) -> list[Compared]:
    """Compare every row of every table that is shipped; changes that wait are differences, too.

    Args:
        engine: The database that accepts events.
        events: ClickHouse.
        repair: Let the next shipment bring what differs, and remove what is too much.
    """
    found = []
    for shipped in SHIPPED:
        with read_connection(engine) as conn, events.connect() as there:
            rows, different = 0, list[Key]()
            for part, keys in _different(conn, there, shipped):
                rows += part
                different += keys
            more = list(_more(conn, there, shipped))
        found.append(Compared(shipped.table.name, rows, len(different), len(more)))
        if repair and (different or more):
            with write_transaction(engine) as conn:
                # Removed first: the other row of that key may have another sorting key there.
                outbox.note(conn, shipped, different, removed=True)
                outbox.note(conn, shipped, more, removed=True)
    return found


def _different(
    conn: Connection, there: Connection, shipped: Shipped
) -> Iterator[tuple[int, list[Key]]]:
    """Yield how many rows were compared, and the keys of those that differ, part by part."""
    names = [column.name for column in shipped.table.columns]
    places = [names.index(name) for name in shipped.key]
    asked = select(*as_shipped(shipped)).execution_options(
        stream_results=True, yield_per=_ROWS_AT_ONCE
    )
    quoted = ", ".join(f"`{name}`" for name in names)
    for part in conn.execute(asked).partitions():
        wanted = [(tuple(row[place] for place in places), tuple(row)) for row in part]
        stored = {
            row
            for keys in parts({key for key, _ in wanted})
            for row in _query(there, shipped, quoted, keys)
        }
        yield len(wanted), [key for key, row in wanted if row not in stored]


def _more(conn: Connection, there: Connection, shipped: Shipped) -> Iterator[Key]:
    """Yield the keys of which ClickHouse has more rows than SQL."""
    names = ", ".join(shipped.key)
    asked = f"SELECT {names}, count() FROM `{shipped.table.name}` FINAL GROUP BY {names}"  # noqa: S608
    columns = [shipped.table.c[name] for name in shipped.key]
    with client_of(there).query_row_block_stream(asked) as blocks:
        for block in blocks:
            rows = {tuple(key): number for *key, number in block}
            stored = Counter(tuple(row) for row in stored_rows(conn, shipped, rows, columns))
            yield from (key for key, number in rows.items() if number > stored[key])


def _query(
    there: Connection, shipped: Shipped, columns: str, keys: Sequence[Key]
) -> Iterator[tuple[Any, ...]]:
    one = len(shipped.key) == 1
    kind = "Array(Int64)" if one else "Array(Tuple(Int64, String))"
    asked = (
        f"SELECT {columns} FROM `{shipped.table.name}` FINAL"  # noqa: S608
        f" WHERE ({', '.join(shipped.key)}) IN {{keys:{kind}}}"
    )
    given = [value for (value,) in keys] if one else list(keys)
    yield from client_of(there).query(asked, parameters={"keys": given}).result_rows
