"""ClickHouse: how it is opened, and its schema brought up to date.

``clickhousedb://USER@HOST/NAME`` is a server; ``clickhousedb:///default?interface=chdb``
is the same engine in this process, in memory or with ``&path=FOLDER`` in files.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, make_url, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from toolfault_collector.clickhouse.dialect import open_columnar
from toolfault_collector.clickhouse.tables import DDL, SHIPPED, VERSION
from toolfault_collector.errors import DatabaseUrlError, SchemaError, SchemaTooNew

__all__ = [
    "client_of",
    "missing_columns",
    "open_events",
    "prepare_events",
    "schema_of_events",
]


def open_events(url: str, password: str = "") -> Engine:
    """Open the ClickHouse of *url*, with a *password* that the URL need not hold.

    Raises:
        DatabaseUrlError: The URL cannot be read, names another engine, or the extra is missing.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # of a port that is no number
        # The text is not repeated: it may hold a password.
        message = "the address of events cannot be read; write clickhousedb://USER@HOST/NAME"
        raise DatabaseUrlError(message) from None
    if parsed.get_backend_name() != "clickhousedb":
        raise DatabaseUrlError(
            "events can be kept on ClickHouse alone: clickhousedb://USER@HOST/NAME"
        )
    try:
        with_password = parsed.set(password=password) if password else parsed
        return open_columnar(with_password.render_as_string(hide_password=False))
    except NoSuchModuleError:
        message = "events can be kept on ClickHouse alone: clickhousedb://USER@HOST/NAME"
        raise DatabaseUrlError(message) from None
    except ImportError:
        message = 'ClickHouse needs its driver: pip install "toolfault-server[clickhouse]"'
        raise DatabaseUrlError(message) from None


def prepare_events(engine: Engine) -> None:
    """Bring the schema there up to the version of this code; doing it again changes nothing.

    Raises:
        SchemaTooNew: A newer version of this code has been there.
        SchemaError: Another program has tables of the same names, which would be emptied.
    """
    with engine.connect() as conn:
        foreign = _foreign_tables(conn)
        if foreign:
            raise SchemaError(
                f"the database on ClickHouse has tables of another program ({', '.join(foreign)});"
                " name one in TOOLFAULT_EVENTS_URL that nobody else uses"
            )
        found = schema_of_events(conn)
        if found > len(DDL):
            raise SchemaTooNew(
                f"ClickHouse has schema {found}, this version knows {len(DDL)}; install the"
                " version that made it."
            )
        for number, statements in enumerate(DDL[found:], found + 1):
            for statement in statements:
                conn.execute(text(statement))
            client_of(conn).insert("schema_version", [[number]], ["version"])


def _foreign_tables(conn: Connection) -> list[str]:
    """Return the tables that have our names and not the column that all of ours have."""
    asked = (
        "SELECT table, groupArray(name) FROM system.columns WHERE database = currentDatabase()"
        " GROUP BY table ORDER BY table"
    )
    ours = {each.table.name for each in SHIPPED}
    rows = conn.execute(text(asked))
    return [table for table, names in rows if table in ours and VERSION not in names]


def schema_of_events(conn: Connection) -> int:
    """Return the version of the schema there, 0 if there is none."""
    conn.execute(
        text(
            "CREATE TABLE IF NOT EXISTS schema_version (version UInt32)"
            " ENGINE = ReplacingMergeTree ORDER BY version"
        )
    )
    return int(conn.execute(text("SELECT max(version) FROM schema_version")).scalar_one() or 0)


def missing_columns(conn: Connection) -> list[str]:
    """Return the tables and columns that the schema has and ClickHouse lacks."""
    asked = "SELECT table, name FROM system.columns WHERE database = currentDatabase()"
    found = {tuple(row) for row in conn.execute(text(asked))}
    return [
        f"{each.table.name}.{column.name}"
        for each in SHIPPED
        for column in each.table.columns
        if (each.table.name, column.name) not in found
    ]


def client_of(conn: Connection) -> Any:
    """Return the driver's client of *conn*, which takes columns of values at once."""
    driver: Any = conn.connection.driver_connection
    return driver.client
