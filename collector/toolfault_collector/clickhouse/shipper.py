"""The shipper: copies what the outbox names to ClickHouse, block by block.

One block: take a number, read the rows as they are now, remove there what was removed, insert the
rows with that number, take the entries out of the outbox unless a newer number was taken since.
Whatever a crash leaves undone is done again by the next block, whose number is higher; rows of the
same sorting key replace each other, so nothing is there twice.
"""

# ruff: noqa: S608 - only names of this code are put into statements

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import JSON, ColumnElement, Connection, Engine, Text, cast, func, select

from toolfault_collector import failpoints
from toolfault_collector.clickhouse import outbox
from toolfault_collector.clickhouse.database import client_of
from toolfault_collector.clickhouse.tables import SHIPPED, VERSION, Shipped
from toolfault_collector.clickhouse.turns import shipping_turn
from toolfault_collector.clock import now_us
from toolfault_collector.errors import AnotherShips
from toolfault_collector.storage.database.dialect import among
from toolfault_collector.storage.database.engine import read_connection, write_transaction

__all__ = ["BLOCK_ROWS", "Shipper", "as_shipped", "parts", "stored_rows"]

BLOCK_ROWS: Final = 20_000
"""Rows of one block: ClickHouse wants few large inserts, memory holds a block at a time."""

_KEYS_AT_ONCE: Final = 5_000

_KEY_BYTES_AT_ONCE: Final = 60_000
"""A server of ClickHouse refuses a parameter of 128 KiB (``http_max_field_value_size``)."""

Key = tuple[Any, ...]
Keys = set[Key]


class Shipper:
    """Copies committed rows of SQL to ClickHouse.

    Args:
        engine: The database that accepts events, with the outbox installed.
        events: ClickHouse, with its schema.
        block_rows: Rows of one block.
    """

    def __init__(self, engine: Engine, events: Engine, *, block_rows: int = BLOCK_ROWS) -> None:
        self._engine, self._events, self._block_rows = engine, events, block_rows

    def ship(self) -> int:
        """Ship one block; return the rows that the outbox named in it, 0 if nothing waits.

        What was stored before the outbox was there is copied beside it, some rows with each block.

        Raises:
            AnotherShips: Another shipment began meanwhile, so this one is made again later.
        """
        with read_connection(self._engine) as conn:
            stale, copying = outbox.is_stale(conn), outbox.is_copying(conn)
            waits = any(True for _ in outbox.oldest(conn, 1))
        if stale:
            self._empty()
        if copying:
            with write_transaction(self._engine) as conn:
                waits = outbox.note_stored(conn) > 0 or waits
        if not waits:
            return 0
        with write_transaction(self._engine) as conn:
            number = outbox.next_number(conn, now_us())
        with read_connection(self._engine) as conn:
            entries = list(outbox.oldest(conn, self._block_rows))
            changed, removed = _named(entries)
            read_at = now_us()
            blocks = [
                (
                    each,
                    _columns(
                        stored_rows(conn, each, changed[each.table.name], as_shipped(each)), number
                    ),
                )
                for each in SHIPPED
            ]
        with shipping_turn(self._engine), self._events.connect() as there:
            for shipped, columns in blocks:
                _remove(there, shipped, removed[shipped.table.name])
                failpoints.reach("ship_removed")
                _insert(there, shipped, columns)
                failpoints.reach("ship_inserted")
        failpoints.reach("shipped")
        with write_transaction(self._engine) as conn:
            settled = outbox.settle(conn, entries, number=number, read_at=read_at)
            if not settled:  # the other may have shipped new rows of what was just removed
                for each in SHIPPED:
                    outbox.note(conn, each, list(removed[each.table.name]), removed=True)
        if not settled:
            raise AnotherShips
        return sum(len(entry.keys) for entry in entries)

    def _empty(self) -> None:
        """Remove what is on ClickHouse, unless another shipper just did."""
        with shipping_turn(self._engine), self._events.connect() as there:
            with read_connection(self._engine) as conn:
                if not outbox.is_stale(conn):
                    return
            for shipped in SHIPPED:
                client_of(there).command(f"TRUNCATE TABLE `{shipped.table.name}`")
            with write_transaction(self._engine) as conn:
                outbox.emptied(conn)

    def ship_all(self) -> int:
        """Ship until nothing waits; return the rows that the outbox named."""
        total = 0
        while rows := self.ship():
            total += rows
        return total


def _named(entries: Iterable[outbox.Entry]) -> tuple[dict[str, Keys], dict[str, Keys]]:
    """Return the keys that *entries* name and those that were removed, by table.

    Issues have no entries: they come and go with their call.
    """
    changed: dict[str, Keys] = defaultdict(set)
    removed: dict[str, Keys] = defaultdict(set)
    for entry in entries:
        changed[entry.name].update(entry.keys)
        if entry.removed:
            removed[entry.name].update(entry.keys)
    changed["issue"], removed["issue"] = changed["tool_call"], removed["tool_call"]
    return changed, removed


def as_shipped(shipped: Shipped) -> list[ColumnElement[Any]]:
    """Return the columns of a table of SQL as ClickHouse has them: JSON is the text of it there."""
    return [
        func.nullif(cast(column, Text), "null") if isinstance(column.type, JSON) else column
        for column in shipped.table.columns
    ]


def stored_rows(
    conn: Connection, shipped: Shipped, keys: Iterable[Key], columns: Sequence[ColumnElement[Any]]
) -> Iterator[Sequence[Any]]:
    """Yield *columns* of the rows of *keys* that are stored in SQL, and maybe of some others.

    A key of two columns is looked for by each of them: PostgreSQL would compare every row with
    every one of thousands of pairs. So a conversation of the same name in another project comes,
    too, which does no harm.
    """
    of_key = [shipped.table.c[name] for name in shipped.key]
    ordered = sorted(keys)
    for start in range(0, len(ordered), _KEYS_AT_ONCE):
        some = ordered[start : start + _KEYS_AT_ONCE]
        wanted = (
            among(conn, column, sorted(set(values)))
            for column, values in zip(of_key, zip(*some, strict=True), strict=True)
        )
        yield from conn.execute(select(*columns).where(*wanted)).all()


def _columns(rows: Iterable[Sequence[Any]], number: int) -> list[Sequence[Any]]:
    """Return *rows* as the columns that ClickHouse takes; none if there is no row."""
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
    if columns:
        columns.append([number] * len(columns[0]))
    return columns


def _insert(conn: Connection, shipped: Shipped, columns: list[Sequence[Any]]) -> None:
    if columns:
        names = [*(column.name for column in shipped.table.columns), VERSION]
        client_of(conn).insert(
            shipped.table.name,
            columns,
            names,
            column_oriented=True,
            # Months of one block: an import may bring those of decades.
            settings={"max_partitions_per_insert_block": 0},
        )


def _remove(conn: Connection, shipped: Shipped, keys: Keys) -> None:
    """Remove the rows of *keys*: a number may be given to another row afterwards (SQLite)."""
    one = len(shipped.key) == 1
    for some in parts(keys):
        client_of(conn).command(
            f"DELETE FROM `{shipped.table.name}` WHERE ({', '.join(shipped.key)}) IN {{keys:Array("
            f"{'Int64' if one else 'Tuple(Int64, String)'})}}",
            parameters={"keys": [value for (value,) in some] if one else some},
            settings={"lightweight_deletes_sync": 2},
        )


def parts(keys: Iterable[Key]) -> Iterator[list[Key]]:
    """Yield *keys* in order, in parts that a server of ClickHouse takes as a parameter."""
    part, size = list[Key](), 0
    for key in sorted(keys):
        size += len(msgspec.json.encode(key))
        if part and size > _KEY_BYTES_AT_ONCE:
            yield part
            part, size = [], len(msgspec.json.encode(key))
        part.append(key)
    if part:
        yield part
