"""ClickHouse: how it is opened, and its schema brought up to date.

``clickhousedb://USER@HOST/NAME`` is a server; ``clickhousedb://localhost/default?interface=chdb``
is the same engine in this process, in memory or with ``&path=FOLDER`` in files.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, make_url, text
from sqlalchemy.exc import ArgumentError

from toolfault_collector.clickhouse.tables import DDL
from toolfault_collector.errors import DatabaseUrlError
from toolfault_collector.storage.database.columnar import open_columnar

__all__ = ["client_of", "open_events", "prepare_events"]


def open_events(url: str) -> Engine:
    """Open the ClickHouse of *url*.

    Raises:
        DatabaseUrlError: The URL cannot be read, names another engine, or the extra is missing.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        # The text is not repeated: it may hold a password.
        message = "the address of events cannot be read; write clickhousedb://USER@HOST/NAME"
        raise DatabaseUrlError(message) from None
    if parsed.get_backend_name() != "clickhousedb":
        raise DatabaseUrlError(
            "events can be kept on ClickHouse alone: clickhousedb://USER@HOST/NAME"
        )
    try:
        return open_columnar(url)
    except ImportError:
        message = 'ClickHouse needs its driver: pip install "toolfault-server[clickhouse]"'
        raise DatabaseUrlError(message) from None


def prepare_events(engine: Engine) -> None:
    """Create what is missing of the schema; doing it again changes nothing."""
    with engine.connect() as conn:
        for version in DDL:
            for statement in version:
                conn.execute(text(statement))


def client_of(conn: Connection) -> Any:
    """Return the driver's client of *conn*, which takes columns of values at once."""
    driver: Any = conn.connection.driver_connection
    return driver.client
