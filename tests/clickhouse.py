"""ClickHouse in the process of the tests, with what a database of SQL holds."""

from __future__ import annotations

from functools import cache
from itertools import count
from typing import Final

from sqlalchemy import Engine, text

from toolfault_collector.clickhouse import outbox
from toolfault_collector.clickhouse.database import open_events, prepare_events
from toolfault_collector.clickhouse.shipper import Shipper
from toolfault_collector.storage.database.engine import open_engine, write_transaction

__all__ = ["copied_to_clickhouse", "empty_clickhouse"]

_URL: Final = "clickhousedb:///{}?interface=chdb"
_numbers: Final = count(1)


def empty_clickhouse() -> str:
    """Return the URL of a new database of ClickHouse, in memory."""
    name = f"test{next(_numbers)}"
    with _keeper().connect() as conn:
        conn.execute(text(f"CREATE DATABASE {name}"))
    return _URL.format(name)


@cache
def _keeper() -> Engine:
    """Return an engine that stays open: with the last connection all that is in memory goes."""
    return open_events(_URL.format("default"))


def copied_to_clickhouse(url: str) -> str:
    """Ship what the database of *url* holds to a new database of ClickHouse; return its URL."""
    to = empty_clickhouse()
    engine, events = open_engine(url), open_events(to)
    prepare_events(events)
    with write_transaction(engine) as conn:
        outbox.install(conn)
    Shipper(engine, events).ship_all()
    engine.dispose()
    events.dispose()
    return to
