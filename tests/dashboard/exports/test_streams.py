"""Exports over a real connection: a database that dies, a reader that leaves or stalls."""

from __future__ import annotations

import shutil
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import Engine, event, insert, text
from tests.dashboard.api.serving import key_of, served
from tests.dashboard.conftest import copied_database
from tests.dashboard.generated import NOW

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.http.request_heads import protocol_with_deadline
from toolfault_collector.storage.database.engine import open_engine, write_transaction
from toolfault_collector.storage.tables import tool_call
from toolfault_dashboard.exports.downloads import AT_ONCE

ROWS = 8_000
"""Rows of some 1,500 bytes: far more than the buffers of both ends of a connection hold."""


def _filled(engine: Engine) -> Engine:
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "generated")
        conn.execute(
            insert(tool_call),
            [
                {
                    "project_id": project, "event_id": str(uuid.UUID(int=number)), "tool": "t",
                    "event_type": "tool_call", "started_at": NOW - number, "success": False,
                    "occurred_at": NOW - number, "received_at": NOW, "text_llm": "x" * 1_400,
                    "code": "timeout", "category": "internal", "audience": "llm",
                }
                for number in range(ROWS)
            ],
        )  # fmt: skip
    return engine


@pytest.fixture(scope="module")
def large(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A project with more failures than any buffer holds."""
    path = tmp_path_factory.mktemp("streams") / "toolfault.db"
    shutil.copyfile(sqlite_template, path)
    engine = open_engine(f"sqlite:///{path}")
    yield _filled(engine)
    engine.dispose()


def _ask(address: str, key: str, path: str) -> socket.socket:
    """Ask for an export and read only its beginning."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)
    host, _, port = address.partition(":")
    connection.connect((host, int(port)))
    head = f"GET /api/v1{path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\r\n"
    connection.sendall(head.encode())
    assert connection.recv(512).startswith(b"HTTP/1.1 200")
    return connection


@pytest.fixture
def served_large(large: Engine) -> Iterator[tuple[Engine, str, str]]:
    """The server's own engine, its address and a read key."""
    with contextmanager(_served)(large) as found:
        yield found


def _served(large: Engine) -> Iterator[tuple[Engine, str, str]]:
    own = open_engine(large.url.render_as_string(hide_password=False))
    with key_of(large, "generated") as key, served(own) as address:
        yield own, address, key
    own.dispose()


@pytest.fixture
def on_postgres(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """The same on PostgreSQL: a SQLite file does not go away under its reader."""
    engine = open_engine(copied_database(request, "streams"))
    yield _filled(engine)
    engine.dispose()


@pytest.mark.postgres
@pytest.mark.parametrize("form", ["csv", pytest.param("ndjson", marks=pytest.mark.long)])
def test_a_database_that_dies_is_seen_in_the_file(form: str, on_postgres: Engine) -> None:
    """The last line says that the export is incomplete, and the answer has no proper end."""
    large = on_postgres
    with (
        contextmanager(_served)(large) as (_, address, key),
        _ask(address, key, f"/exports/failures.{form}") as connection,
    ):
        with large.connect() as conn:
            killed = conn.execute(
                text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND state <> 'idle'"
                    # An autovacuum worker may look at the rows just written.
                    " AND backend_type = 'client backend'"
                    " AND pid <> pg_backend_pid()"
                )
            ).scalars()
            assert list(killed) == [True]
        body = b""
        while chunk := connection.recv(65_536):
            body += chunk
    assert (
        b"export incomplete: it broke off after"
        in body.rstrip().splitlines()[-1] + (body.rstrip().splitlines()[-2])
    )
    # Chunked coding ends with an empty chunk; without it every client sees a broken transfer.
    assert not body.endswith(b"0\r\n\r\n")
    assert body.count(b"x" * 1_400) < ROWS


def test_two_exports_at_a_time(served_large: tuple[Engine, str, str]) -> None:
    """One export more than a reader may have running is told to wait."""
    _, address, key = served_large
    headers = {"Authorization": f"Bearer {key}"}
    with ExitStack() as running:
        for _ in range(AT_ONCE):
            running.enter_context(_ask(address, key, "/exports/failures.csv"))
        refused = httpx2.get(f"http://{address}/api/v1/exports/codes.csv", headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_exports")
    assert int(refused.headers["retry-after"]) > 0


def test_a_reader_that_leaves_frees_its_connection(served_large: tuple[Engine, str, str]) -> None:
    """The connection of an export goes back when its reader is gone, and it may export again."""
    own, address, key = served_large
    for _ in range(AT_ONCE + 1):
        returned = threading.Event()

        def note(*_: object, done: threading.Event = returned) -> None:
            done.set()

        connection = _ask(address, key, "/exports/failures.csv")
        event.listen(own, "checkin", note)
        try:
            assert not returned.is_set()
            connection.close()
            assert returned.wait(60)
        finally:
            event.remove(own, "checkin", note)


def test_a_reader_that_stalls_is_cut_off(large: Engine) -> None:
    """Who takes nothing of an export for a while no longer holds a snapshot of the database."""
    own = open_engine(large.url.render_as_string(hide_password=False))
    returned = threading.Event()
    protocol = protocol_with_deadline(10, stalled_seconds=0.2)
    with (
        key_of(large, "generated") as key,
        served(own, http=protocol) as address,
        _ask(address, key, "/exports/failures.csv") as connection,
    ):
        event.listen(own, "checkin", lambda *_: returned.set())
        assert returned.wait(60)

        body = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert not body.endswith(b"0\r\n\r\n")
    assert body.count(b"x" * 1_400) < ROWS
    own.dispose()
