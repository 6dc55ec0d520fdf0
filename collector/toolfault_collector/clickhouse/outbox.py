"""The outbox: which rows of SQL changed since they were shipped, noted with the change itself.

Triggers of the database write it, so no transaction can change a row and forget to say so, whether
it stores, repairs or removes. PostgreSQL writes one entry a statement, SQLite one a row. An entry
names rows by their keys, not their content: who ships reads them as they are then, so shipping
twice, or late, ships the same.
"""

# ruff: noqa: S608 - only names of this code are put into statements

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Engine,
    MetaData,
    String,
    Table,
    Text,
    case,
    delete,
    func,
    insert,
    inspect,
    or_,
    select,
    tuple_,
    update,
)

from toolfault_collector.clickhouse.tables import SHIPPED, Shipped
from toolfault_collector.storage.database.dialect import among
from toolfault_collector.storage.database.engine import is_sqlite
from toolfault_collector.storage.tables.common import id_column

__all__ = [
    "TABLES",
    "Entry",
    "count",
    "emptied",
    "give_up",
    "install",
    "install_beside_writers",
    "is_copying",
    "is_installed",
    "is_noting",
    "is_stale",
    "next_number",
    "note_stored",
    "oldest",
    "remove",
    "settle",
    "shipped_until",
    "size",
]

ROWS_AT_ONCE: Final = 10_000
"""Rows that one entry names of what was stored before the outbox was there; a transaction each, so
that writers wait for milliseconds however much that is."""

_metadata: Final = MetaData()

outbox: Final = Table(
    "outbox",
    _metadata,
    id_column(),
    Column("name", String(32), nullable=False),
    Column("removed", Boolean, nullable=False),
    Column("keys", Text, nullable=False),  # JSON: a list of keys, each a list of values
)

# One row: the number of the newest shipment, and when what was shipped last had been read.
_shipment: Final = Table(
    "shipment",
    _metadata,
    id_column(),
    Column("number", BigInteger, nullable=False),
    Column("read_at", BigInteger, nullable=False),
)

# How far the rows that were stored before are noted, by table; "[]": from the first. The row "" is
# done once nothing of before is on ClickHouse any more.
_noted_until: Final = Table(
    "outbox_noted_until",
    _metadata,
    Column("name", String(32), primary_key=True),
    Column("key", Text, nullable=False),
    Column("done", Boolean, nullable=False),
)

_ALL: Final = ""

_SAMPLE: Final = 100  # entries whose length tells how long all are

TABLES: Final = frozenset(_metadata.tables)
"""What `install` makes, beside the schema of every installation."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What one statement changed, or one row on SQLite.

    Attributes:
        id: Which entry it is; later ones have no smaller number on SQLite.
        name: The table.
        removed: Whether rows of these keys were removed.
        keys: The rows.
    """

    id: int
    name: str
    removed: bool
    keys: Sequence[tuple[Any, ...]]


def is_installed(conn: Connection) -> bool:
    """Return whether there is an outbox."""
    return inspect(conn).has_table(outbox.name)


def is_noting(conn: Connection) -> bool:
    """Return whether every change is noted: not after `give_up`, nor in tables made anew."""
    return is_installed(conn) and _has_triggers(conn)


def _has_triggers(conn: Connection) -> bool:
    asked = (
        "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        if is_sqlite(conn)
        else "SELECT tgname FROM pg_trigger WHERE tgparentid = 0"
    )
    found = set(conn.exec_driver_sql(asked).scalars())
    return all(found.issuperset(_names(shipped)) for shipped in _with_triggers())


def install_beside_writers(engine: Engine) -> bool:
    """`install` in a transaction of its own, while others write."""
    with _beside_writers(engine) as conn:
        return install(conn)


@contextmanager
def _beside_writers(engine: Engine) -> Iterator[Connection]:
    """Yield a connection in a transaction that may add triggers and take them away.

    On PostgreSQL every writer looks at the schema's version first. Who locks that waits for those
    that are at work, and holds nothing that one of them may want.
    """
    anyhow = engine.connect().execution_options(toolfault_write=True, toolfault_any_schema=True)
    with anyhow as conn, conn.begin():
        if not is_sqlite(conn):
            conn.exec_driver_sql("LOCK TABLE alembic_version IN ACCESS EXCLUSIVE MODE")
        yield conn


def install(conn: Connection) -> bool:
    """Note what changes from now on; return whether that is new.

    What is stored already is noted step by step by `note_stored`, after ClickHouse was emptied:
    nobody knows what was removed while nothing was noted. All of that begins again after `give_up`
    and if tables were made anew, as `db downgrade` does.

    Args:
        conn: In a write transaction, which PostgreSQL makes wait for those that are running.
    """
    if is_installed(conn):
        if _has_triggers(conn):
            return False
        remove(conn)
    _metadata.create_all(conn)
    conn.execute(insert(_shipment).values(id=1, number=0, read_at=0))
    conn.execute(insert(_noted_until).values(name=_ALL, key="[]", done=False))
    for shipped in _with_triggers():
        for statement in _triggers(shipped, sqlite=is_sqlite(conn)):
            conn.exec_driver_sql(statement)
        conn.execute(insert(_noted_until).values(name=shipped.table.name, key="[]", done=False))
    return True


def is_stale(conn: Connection) -> bool:
    """Return whether ClickHouse holds rows of before the outbox, and has to be emptied."""
    asked = select(_noted_until.c.done).where(_noted_until.c.name == _ALL)
    return conn.execute(asked).scalar_one_or_none() is False


def is_copying(conn: Connection) -> bool:
    """Return whether something that was stored before the outbox is not noted yet."""
    return conn.execute(select(_noted_until.c.name).where(~_noted_until.c.done)).first() is not None


def emptied(conn: Connection) -> None:
    """Record that ClickHouse was emptied; *conn* is in a write transaction."""
    conn.execute(update(_noted_until).where(_noted_until.c.name == _ALL).values(done=True))


def give_up(engine: Engine) -> None:
    """Forget what waits, and note nothing until the next `install`: ClickHouse is away too long.

    One entry without rows stays, so that pages go on saying since when they are behind.
    """
    with _beside_writers(engine) as conn:
        shipment = conn.execute(select(_shipment)).mappings().one()
        remove(conn)
        _metadata.create_all(conn)
        conn.execute(insert(_shipment).values(shipment))
        conn.execute(insert(outbox).values(name=_ALL, removed=False, keys="[]"))


def note_stored(conn: Connection) -> int:
    """Note some more of the rows that were stored before; return how many, 0 when all are.

    Args:
        conn: In a write transaction.
    """
    for shipped in _with_triggers():
        mine = _noted_until.c.name == shipped.table.name
        found = conn.execute(select(_noted_until.c.key).where(mine, ~_noted_until.c.done))
        after = found.scalar_one_or_none()
        if after is None:
            continue
        columns = [shipped.table.c[name] for name in shipped.key]
        asked = select(*columns).order_by(*columns).limit(ROWS_AT_ONCE)
        if after != "[]":
            asked = asked.where(tuple_(*columns) > tuple_(*json.loads(after)))
        keys = [list(key) for key in conn.execute(asked)]
        if keys:
            note(conn, shipped, keys, removed=False)
            conn.execute(update(_noted_until).where(mine).values(key=json.dumps(keys[-1])))
            return len(keys)
        conn.execute(update(_noted_until).where(mine).values(done=True))
    return 0


def note(
    conn: Connection, shipped: Shipped, keys: Sequence[Sequence[Any]], *, removed: bool
) -> None:
    """Note that the rows of *keys* are to be shipped, or were *removed*, by a call of issues."""
    name = "tool_call" if shipped.table.name == "issue" else shipped.table.name
    for start in range(0, len(keys), ROWS_AT_ONCE):
        text = json.dumps([list(key) for key in keys[start : start + ROWS_AT_ONCE]])
        conn.execute(insert(outbox).values(name=name, removed=removed, keys=text))


def remove(conn: Connection) -> None:
    """Note nothing any more and forget what waits; *conn* is in a write transaction."""
    for shipped in _with_triggers():
        for trigger in _names(shipped):
            of_table = "" if is_sqlite(conn) else f' ON "{shipped.table.name}"'
            conn.exec_driver_sql(f"DROP TRIGGER IF EXISTS {trigger}{of_table}")
    if not is_sqlite(conn):
        for shipped in _with_triggers():
            conn.exec_driver_sql(f"DROP FUNCTION IF EXISTS outbox_{shipped.table.name}()")
    _metadata.drop_all(conn)


def count(conn: Connection) -> int:
    """Return how many entries wait."""
    return int(conn.execute(select(func.count()).select_from(outbox)).scalar_one())


def size(conn: Connection) -> int:
    """Return about how many bytes wait: the entries there may be, each as long as the newest."""
    least, most = conn.execute(select(func.min(outbox.c.id), func.max(outbox.c.id))).one()
    if most is None:
        return 0
    newest = select(outbox.c["keys"]).order_by(outbox.c.id.desc()).limit(_SAMPLE).subquery()
    length = conn.execute(select(func.avg(func.length(newest.c["keys"])))).scalar_one()
    return int((most - least + 1) * float(length))


def oldest(conn: Connection, most_rows: int) -> Iterator[Entry]:
    """Yield the entries that have waited longest, until they name *most_rows* rows together."""
    rows = 0
    for each in conn.execute(select(outbox).order_by(outbox.c.id).limit(most_rows)):
        keys = [tuple(key) for key in json.loads(each.keys)]
        rows += len(keys)
        yield Entry(each.id, each.name, each.removed, keys)
        if rows >= most_rows:
            return


def settle(conn: Connection, entries: Iterable[Entry], *, number: int, read_at: int) -> bool:
    """Take *entries* out: what they name is shipped. Others, earlier ones too, stay.

    Nothing is taken out, and False returned, if another shipment began meanwhile: it may have read
    older rows and shipped them with the higher number.

    On PostgreSQL an entry with a smaller number may be committed later, so no range is removed.

    Args:
        conn: In a write transaction.
        entries: Whose rows are shipped.
        number: Of the shipment.
        read_at: When these rows were read, in microseconds since the epoch.
    """
    newest = update(_shipment).where(_shipment.c.number == number)
    if not conn.execute(newest.values(read_at=read_at)).rowcount:
        return False
    ids = [entry.id for entry in entries]
    conn.execute(delete(outbox).where(among(conn, outbox.c.id, ids)))
    return True


def shipped_until(conn: Connection) -> int | None:
    """Return since when changes wait, in microseconds since the epoch; None if nothing waits.

    0: what was stored before the outbox is still being copied.
    """
    waits = select(outbox.c.id).limit(1).exists()
    copying = select(_noted_until.c.name).where(~_noted_until.c.done).limit(1).exists()
    until = case((copying, 0), else_=_shipment.c.read_at)
    return conn.execute(select(until).where(or_(waits, copying))).scalar_one_or_none()


def next_number(conn: Connection, now: int) -> int:
    """Return a number above that of every shipment before; *conn* is in a write transaction.

    It is *now*, in microseconds since the epoch, where that is above: after a backup of SQL was
    restored the last number is an old one, and what is shipped then has to win over what is there.
    """
    after = _shipment.c.number + 1
    raised = update(_shipment).values(number=case((after > now, after), else_=now))
    return int(conn.execute(raised.returning(_shipment.c.number)).scalar_one())


def _with_triggers() -> Iterator[Shipped]:
    """Yield the tables whose changes are noted; issues come and go with their call."""
    return (each for each in SHIPPED if each.table.name != "issue")


def _names(shipped: Shipped) -> list[str]:
    return [f"outbox_{shipped.table.name}_{event}" for event in ("insert", "update", "delete")]


def _triggers(shipped: Shipped, *, sqlite: bool) -> Iterator[str]:
    """Yield the statements that make the triggers of a table."""
    name = shipped.table.name
    if not sqlite:
        key = ", ".join(f'"{each}"' for each in shipped.key)
        yield (
            f"CREATE FUNCTION outbox_{name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " INSERT INTO outbox (name, removed, keys)"
            f" SELECT '{name}', TG_OP = 'DELETE', json_agg(json_build_array({key}))::text"
            " FROM changed HAVING count(*) > 0;"
            " RETURN NULL; END $$"
        )
    for trigger, event in zip(_names(shipped), ("INSERT", "UPDATE", "DELETE"), strict=True):
        rows = "OLD" if event == "DELETE" else "NEW"
        if sqlite:
            key = ", ".join(f'{rows}."{each}"' for each in shipped.key)
            yield (
                f"CREATE TRIGGER {trigger} AFTER {event} ON {name} BEGIN"
                " INSERT INTO outbox (name, removed, keys)"
                f" VALUES ('{name}', {event == 'DELETE':d}, json_array(json_array({key}))); END"
            )
        else:
            yield (
                f"CREATE TRIGGER {trigger} AFTER {event} ON {name}"
                f" REFERENCING {rows} TABLE AS changed"
                f" FOR EACH STATEMENT EXECUTE FUNCTION outbox_{name}()"
            )
