"""What SQL stores arrives on ClickHouse, whatever is stored, changed, removed and sent again."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import JSON, Engine, delete, select, text, update
from tests.clickhouse import empty_clickhouse
from tests.engines import POSTGRESQL_IS_LONG
from tests.factories import change, conversation_end, counts, failure, success
from tests.starting import completed

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clickhouse import outbox
from toolfault_collector.clickhouse.comparison import compare
from toolfault_collector.clickhouse.database import (
    client_of,
    open_events,
    prepare_events,
    schema_of_events,
)
from toolfault_collector.clickhouse.shipper import Shipper, parts
from toolfault_collector.clickhouse.shipping import Shipping
from toolfault_collector.clickhouse.tables import DDL, SHIPPED
from toolfault_collector.clock import DAY_US, MINUTE_US, now_us
from toolfault_collector.errors import DatabaseUrlError, SchemaError
from toolfault_collector.failpoints import SHIPPING_POINTS
from toolfault_collector.metrics import Metrics
from toolfault_collector.retention.policy import prune
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.database.schema import prepare
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import chain, tool_call
from toolfault_migrations import downgrade

pytest.importorskip(
    "chdb", reason="chdb, the engine of ClickHouse in the process, is not installed"
)

pytestmark = pytest.mark.slow


@pytest.fixture
def events() -> Iterator[Engine]:
    """ClickHouse with the schema and no rows."""
    engine = open_events(empty_clickhouse())
    prepare_events(engine)
    yield engine
    engine.dispose()


def _stored(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of all shipped tables in SQL, as they should be on ClickHouse."""
    found = {}
    with read_connection(engine) as conn:
        for each in SHIPPED:
            table = each.table
            rows = conn.execute(select(table).order_by(*table.primary_key.columns))
            found[table.name] = [
                tuple(
                    msgspec.json.encode(value).decode()
                    if isinstance(column.type, JSON) and value is not None
                    else value
                    for column, value in zip(table.columns, row, strict=True)
                )
                for row in rows
            ]
    return found


def _shipped(events: Engine) -> dict[str, list[tuple[Any, ...]]]:
    found = {}
    with events.connect() as conn:
        for each in SHIPPED:
            names = ", ".join(f"`{column.name}`" for column in each.table.columns)
            order = ", ".join(column.name for column in each.table.primary_key.columns)
            asked = f"SELECT {names} FROM {each.table.name} FINAL ORDER BY {order}"
            found[each.table.name] = list(client_of(conn).query(asked).result_rows)
    return found


def _batch(draw: random.Random, sent: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return some events, some of them late, and some of those that were *sent* before."""
    new: list[dict[str, Any]] = []
    for _ in range(draw.randint(1, 12)):
        session = f"c{draw.randrange(4)}"
        at = now_us() - draw.randrange(1, 600) * MINUTE_US
        make = draw.choice((failure, failure, success))
        new.append(make(draw.choice(("search", "order")), session_id=session, at=at))
    if draw.random() < 0.3:
        new += [counts(), change(), conversation_end(f"c{draw.randrange(4)}")]
    again = draw.sample(sent, min(len(sent), draw.randrange(4)))
    sent += new
    batch = [*new, *again]
    draw.shuffle(batch)
    return batch


@pytest.mark.parametrize(
    ("database_url", "seed"),
    [
        ("sqlite", 1),
        pytest.param("postgresql", 0, marks=pytest.mark.postgres),
        *(pytest.param("sqlite", seed, marks=pytest.mark.long) for seed in range(2, 30)),
        *(
            pytest.param("postgresql", seed, marks=[pytest.mark.postgres, pytest.mark.long])
            for seed in range(2, 30)
        ),
    ],
    indirect=["database_url"],
)
def test_what_is_stored_arrives(engine: Engine, events: Engine, seed: int) -> None:
    """Both sides have the same rows: old, new, changed, repaired, none that was removed."""
    draw, sent = random.Random(seed), list[dict[str, Any]]()
    shipper = Shipper(engine, events, block_rows=draw.choice((12, 50, 20_000)))

    def store() -> None:
        batch = _batch(draw, sent)
        with write_transaction(engine) as conn:
            project = ensure_project(conn, "demo")
            store_events(conn, project, batch, received_at=now_us(), time_policy="import")

    store()
    with write_transaction(engine) as conn:
        assert outbox.install(conn)
        assert not outbox.install(conn)
    for _ in range(12):
        step = draw.random()
        if step < 0.6:
            store()
        elif step < 0.8:
            shipper.ship()
        elif step < 0.9:
            prune(engine, max_calls=draw.randrange(1, 40), force=True)
        else:  # as a repair does
            with write_transaction(engine) as conn:
                conn.execute(update(chain).values(calls=chain.c.calls + 1))
                newest = select(tool_call.c.id).order_by(tool_call.c.id.desc()).limit(2)
                conn.execute(delete(tool_call).where(tool_call.c.id.in_(newest.scalar_subquery())))
    shipper.ship_all()
    with write_transaction(engine) as conn:  # a row that nothing but its change tells of
        conn.execute(update(chain).values(calls=chain.c.calls + 1))
    shipper.ship_all()
    assert _shipped(events) == _stored(engine)
    assert shipper.ship() == 0


_PROGRAM = """
import sys
from toolfault_collector.clickhouse.comparison import compare
from toolfault_collector.clickhouse.database import open_events, prepare_events
from toolfault_collector.clickhouse.shipper import Shipper
from toolfault_collector.storage.database.engine import open_engine

engine = open_engine(sys.argv[1])
events = open_events(f"clickhousedb:///default?interface=chdb&path={sys.argv[2]}")
prepare_events(events)
Shipper(engine, events, block_rows=30).ship_all()
from tests.collector.test_shipping import _shipped, _stored  # whoever is killed needs it not
assert _shipped(events) == _stored(engine)
"""


def _run(url: str, folder: Path, failpoint: str) -> int:
    environment = {**os.environ, "TOOLFAULT_FAILPOINT": failpoint, "PYTHONPATH": str(Path.cwd())}
    return completed("-c", _PROGRAM, url, str(folder), environ=environment).returncode


@pytest.mark.parametrize(
    "failpoint",
    [
        "ship_inserted:14",
        *(
            pytest.param(f"{point}:{count}", marks=pytest.mark.long)
            for point in SHIPPING_POINTS
            for count in ((1, 2, 3) if point == "shipped" else range(1, 28, 2))
        ),
    ],
)
def test_a_kill_loses_and_doubles_nothing(
    sqlite_engine: Engine, sqlite_url: str, tmp_path: Path, failpoint: str
) -> None:
    """Killed anywhere within a block, the next shipper goes on, and both sides are equal."""
    draw, sent = random.Random(7), list[dict[str, Any]]()
    with write_transaction(sqlite_engine) as conn:
        outbox.install(conn)
        project = ensure_project(conn, "demo")
    for _ in range(8):
        batch = _batch(draw, sent)
        with write_transaction(sqlite_engine) as conn:
            store_events(conn, project, batch, received_at=now_us(), time_policy="import")
    prune(sqlite_engine, max_calls=20, force=True)
    assert _run(sqlite_url, tmp_path / "events", failpoint) == -signal.SIGKILL
    assert _run(sqlite_url, tmp_path / "events", "") == 0


def test_decades_arrive_in_one_block(sqlite_engine: Engine, events: Engine) -> None:
    """An import of more months than ClickHouse takes at once by default is shipped like any."""
    calls = [success(session_id=None, at=now_us() - n * 31 * DAY_US) for n in range(1, 106)]
    with write_transaction(sqlite_engine) as conn:
        outbox.install(conn)
        project = ensure_project(conn, "demo")
        store_events(conn, project, calls, received_at=now_us(), time_policy="import")
    Shipper(sqlite_engine, events).ship_all()
    assert _shipped(events) == _stored(sqlite_engine)


def test_a_transaction_that_is_rolled_back_ships_nothing(engine: Engine, events: Engine) -> None:
    """Who ships between two commits never sees what is not committed."""
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "demo")
        outbox.install(conn)
    with pytest.raises(ZeroDivisionError), write_transaction(engine) as conn:  # noqa: PT012
        store_events(conn, project, [failure()], received_at=now_us())
        raise ZeroDivisionError
    assert Shipper(engine, events).ship() == 0
    assert not any(_shipped(events).values())


def test_without_the_outbox_nothing_is_noted(engine: Engine) -> None:
    """What was installed for ClickHouse is gone once it is removed, and storing goes on."""
    with write_transaction(engine) as conn:
        outbox.install(conn)
        outbox.remove(conn)
        assert not outbox.is_installed(conn)
        project = ensure_project(conn, "demo")
        store_events(conn, project, [failure()], received_at=now_us())
    left = (
        "SELECT count(*) FROM sqlite_master WHERE name LIKE 'outbox%'"
        if engine.dialect.name == "sqlite"
        else "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'outbox%'"
    )
    with read_connection(engine) as conn:
        assert conn.execute(text(left)).scalar_one() == 0


@POSTGRESQL_IS_LONG
def test_the_comparison_finds_what_differs_and_repairs_it(engine: Engine, events: Engine) -> None:
    """A row that is another, one that is missing and one too many: each is found, and mended."""
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "demo")
        outbox.install(conn)
        calls = [failure(session_id=f"c{n}") for n in range(6)]
        store_events(conn, project, calls, received_at=now_us())
    shipper = Shipper(engine, events)
    shipper.ship_all()
    assert not any(each.different or each.more for each in compare(engine, events, repair=False))
    with events.connect() as conn:
        client = client_of(conn)
        other = "99 AS calls, shipment + 1 AS shipment"
        client.command(f"INSERT INTO chain SELECT * REPLACE ({other}) FROM chain FINAL LIMIT 1")
        client.command(
            "INSERT INTO tool_call SELECT * REPLACE (99 AS id) FROM tool_call FINAL LIMIT 1"
        )
        client.command("DELETE FROM conversation WHERE session_id = 'c2'")

    found = {
        each.name: (each.different, each.more) for each in compare(engine, events, repair=True)
    }

    assert {name: numbers for name, numbers in found.items() if any(numbers)} == {
        "chain": (1, 0),
        "tool_call": (0, 1),
        "conversation": (1, 0),
    }
    shipper.ship_all()
    assert not any(each.different or each.more for each in compare(engine, events, repair=False))


def test_a_number_given_to_another_row_is_repaired(sqlite_engine: Engine, events: Engine) -> None:
    """After a backup was restored a call gets the number of a lost one: repaired, one is left."""
    with write_transaction(sqlite_engine) as conn:
        project = ensure_project(conn, "demo")
        outbox.install(conn)
        store_events(conn, project, [failure(), failure()], received_at=now_us())
    shipper = Shipper(sqlite_engine, events)
    shipper.ship_all()
    with events.connect() as conn:
        for table, key in (("tool_call", "id"), ("issue", "tool_call_id")):
            lost = "occurred_at - 86400000000 AS occurred_at"
            client_of(conn).command(
                f"INSERT INTO {table} SELECT * REPLACE ({lost}) FROM {table} FINAL"
            )
            client_of(conn).command(
                f"DELETE FROM {table} WHERE {key} = 2 AND occurred_at ="
                f" (SELECT max(occurred_at) FROM {table} WHERE {key} = 2)"
            )
    found = compare(sqlite_engine, events, repair=True)
    assert {each.name for each in found if each.different and each.more} == {"tool_call", "issue"}
    shipper.ship_all()
    assert _shipped(events) == _stored(sqlite_engine)


def test_of_two_shipments_the_older_settles_nothing(engine: Engine) -> None:
    """A command that copies beside a server may ship older rows last: it ends no entries."""
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "demo")
        outbox.install(conn)
        store_events(conn, project, [failure()], received_at=now_us())
        entries = list(outbox.oldest(conn, 1_000))
        older, newer = outbox.next_number(conn, 1), outbox.next_number(conn, 1)
        assert not outbox.settle(conn, entries, number=older, read_at=1)
        assert outbox.count(conn) == len(entries)
        assert outbox.settle(conn, entries, number=newer, read_at=1)
        assert outbox.count(conn) == 0


@POSTGRESQL_IS_LONG
def test_tables_that_were_made_anew_are_watched_again(engine: Engine, events: Engine) -> None:
    """After the schema was taken back and made again, only what is stored then is there."""
    with write_transaction(engine) as conn:
        outbox.install(conn)
        project = ensure_project(conn, "demo")
        store_events(conn, project, [failure(), failure()], received_at=now_us())
    Shipper(engine, events).ship_all()
    downgrade(engine, "base")
    prepare(engine, migrate=True)
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "demo")
        store_events(conn, project, [failure()], received_at=now_us())
    with write_transaction(engine) as conn:
        assert outbox.install(conn)
        assert not outbox.install(conn)
        store_events(conn, project, [failure()], received_at=now_us())
    Shipper(engine, events).ship_all()
    assert _shipped(events) == _stored(engine)


@POSTGRESQL_IS_LONG
def test_while_history_is_copied_no_moment_is_whole(engine: Engine, events: Engine) -> None:
    """Between two blocks nothing waits, and still readers are told that older events come."""
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "demo")
        store_events(conn, project, [failure(), conversation_end("c1")], received_at=now_us())
        outbox.install(conn)
    shipper, blocks = Shipper(engine, events), 0
    while shipper.ship():
        blocks += 1
        with read_connection(engine) as conn:
            assert outbox.shipped_until(conn) == 0
    assert blocks > 1
    with read_connection(engine) as conn:
        assert outbox.shipped_until(conn) is None


@POSTGRESQL_IS_LONG
def test_beyond_its_bound_the_outbox_is_forgotten_and_all_is_copied_anew(
    engine: Engine, events: Engine
) -> None:
    """However long ClickHouse is away, the outbox has a bound, and both sides end equal."""

    def store(*calls: dict[str, Any]) -> None:
        with write_transaction(engine) as conn:
            store_events(conn, ensure_project(conn, "demo"), list(calls), received_at=now_us())

    def shipping(to: Engine) -> Shipping:
        return Shipping(engine, to, metrics=Metrics(), most_bytes=1)

    store(failure(session_id="c1"), failure(session_id="c2"))
    back = shipping(events)
    back.run_once()
    assert _shipped(events) == _stored(engine)
    store(failure(session_id="c1"))
    away = open_events("clickhousedb://localhost:1/default?connect_timeout=1")
    shipping(away).run_once()
    away.dispose()
    with read_connection(engine) as conn:
        assert not outbox.is_noting(conn)
        assert outbox.shipped_until(conn)
    store(success(session_id="c2"))
    prune(engine, max_calls=2, force=True)
    with read_connection(engine) as conn:
        assert outbox.count(conn) == 1
    back.run_once()
    assert _shipped(events) == _stored(engine)
    with read_connection(engine) as conn:
        assert outbox.is_noting(conn)
        assert outbox.shipped_until(conn) is None


def test_an_older_schema_is_brought_up_to_date(engine: Engine) -> None:
    """Tables of the first version stay as they are, and what later versions add is added once."""
    older = open_events(empty_clickhouse())
    with older.connect() as conn:
        assert schema_of_events(conn) == 0
        for statement in DDL[0]:
            conn.execute(text(statement))
        client_of(conn).insert("schema_version", [[1]], ["version"])
    with write_transaction(engine) as conn:
        outbox.install(conn)
        project = ensure_project(conn, "demo")
        store_events(conn, project, [failure(), success()], received_at=now_us())
    Shipper(engine, older).ship_all()
    for _ in range(2):
        prepare_events(older)
        assert _shipped(older) == _stored(engine)
        with older.connect() as conn:
            assert schema_of_events(conn) == len(DDL)
            made = conn.execute(text("SHOW CREATE TABLE tool_call")).scalar_one()
            assert "min_age_to_force_merge_on_partition_only = 1" in made
    older.dispose()


def test_tables_of_another_program_are_left_alone(sqlite_engine: Engine) -> None:
    """A database that has tables of our names is refused, since ours are emptied; no row goes."""
    taken = open_events(empty_clickhouse())
    with taken.connect() as conn:
        conn.execute(text("CREATE TABLE message (words String) ENGINE = MergeTree ORDER BY words"))
        conn.execute(text("INSERT INTO message VALUES ('theirs')"))
    shipping = Shipping(sqlite_engine, taken, metrics=Metrics(), most_bytes=2**30)
    with pytest.raises(SchemaError, match=r"another program \(message\).*TOOLFAULT_EVENTS_URL"):
        prepare_events(taken)
    shipping.run_once()
    assert shipping.is_failing
    with taken.connect() as conn:
        assert conn.execute(text("SELECT words FROM message")).scalar_one() == "theirs"
    taken.dispose()


@pytest.mark.parametrize(
    "url", ["clickhousedb://u:secret@host:secret/x", "clickhousedb+secret://h/x", "secret"]
)
def test_an_address_that_is_wrong_is_not_repeated(url: str) -> None:
    """What is said of it says what to write, and nothing of what was written."""
    with pytest.raises(DatabaseUrlError, match="clickhousedb://USER@HOST/NAME") as raised:
        open_events(url)
    assert "secret" not in str(raised.value)


def test_servers_start_together_while_others_write(engine: Engine) -> None:
    """One installs the outbox, the others find it, and nobody is stopped by a deadlock."""
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "demo")

    def write(name: str) -> None:
        for number in range(15):
            batch = [failure(session_id=f"{name}{number}"), counts(), conversation_end(name)]
            with write_transaction(engine) as conn:
                store_events(conn, project, batch, received_at=now_us())

    with ThreadPoolExecutor(6) as pool:
        writing = [pool.submit(write, name) for name in "abc"]
        starting = [pool.submit(outbox.install_beside_writers, engine) for _ in range(3)]
        assert sum(each.result() for each in starting) == 1
        for each in writing:
            each.result()


def test_keys_go_in_parts_that_a_server_takes() -> None:
    """No part is as long as the longest parameter (128 KiB), and none of the keys is left out."""
    keys = {(1, f"{'ü' * 200}{number}") for number in range(2_000)}
    found = list(parts(keys))
    assert [key for part in found for key in part] == sorted(keys)
    assert max(len(str(part).encode()) for part in found) < 128 * 1024
