"""SIGTERM and SIGINT: what runs is finished or refused for later, and nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError
from tests.collector.load import load, stored_ids
from tests.factories import success
from tests.live_server import live_server
from tests.running import RunningCollector, new_key

from toolfault_collector.storage.database.cancel import readings_of
from toolfault_collector.storage.database.engine import open_engine, read_connection

ENDLESS = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000000000000)"
    " SELECT count(*) FROM n"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database_url", "restarts"),
    [
        ("sqlite", 1),
        pytest.param("sqlite", 20, marks=pytest.mark.long),
        pytest.param("postgresql", 20, marks=[pytest.mark.long, pytest.mark.postgres]),
    ],
    indirect=["database_url"],
)
def test_rolling_restarts_under_load(server: RunningCollector, restarts: int) -> None:
    """Restarts under load end in time and cleanly, and no acknowledged event is lost."""
    # "Stopping" is an answer that an agent takes for "send again later".
    with load(server, may_stop=True) as ledger:
        for _ in range(restarts):
            ledger.wait_for(8)
            assert server.terminate() == 0
            server.start()
        ledger.wait_for(4)
    assert "Traceback" not in server.output()


def test_half_a_request_does_not_hold_up_the_end(sqlite_url: str, tmp_path: Path) -> None:
    """A batch of which half has come is refused for later and not stored; the end is in time."""
    event = success()
    body = json.dumps({"events": [event]}).encode()
    with RunningCollector(sqlite_url, folder=tmp_path, TOOLFAULT_STOP_SECONDS="1") as server:
        head = (
            f"POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as sock:
            sock.sendall(head.encode() + body[:-10])
            assert server.get("/healthz").status_code == 200
            assert server.terminate() == 0
            answer = b"".join(iter(lambda: sock.recv(4_096), b"")).decode().lower()

        assert answer.startswith("http/1.1 503")
        assert "content-type: application/problem+json" in answer
        assert "retry-after: 2" in answer
        assert "Traceback" not in server.output()
    engine = open_engine(sqlite_url)
    assert stored_ids(engine) == {}
    engine.dispose()


@pytest.mark.slow
def test_a_second_interrupt_ends_the_server_at_once(sqlite_url: str, tmp_path: Path) -> None:
    """Whatever still runs: no traceback, and what was acknowledged is there."""
    with RunningCollector(sqlite_url, folder=tmp_path, TOOLFAULT_STOP_SECONDS="600") as server:
        event = success()
        assert server.post(event).status_code == 200
        head = (
            f"POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n"
            "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
        )
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as sock:
            sock.sendall(head.encode())
            assert server.get("/healthz").status_code == 200
            os.kill(server.pid, signal.SIGINT)
            # It listens until it has begun to stop; a connection that nobody took yet is reset.
            with suppress(ConnectionError):
                while True:
                    socket.create_connection(("127.0.0.1", server.port), timeout=30).close()
            os.kill(server.pid, signal.SIGINT)
            assert server.wait() == 128 + signal.SIGINT
        assert "Traceback" not in server.output()
    engine = open_engine(sqlite_url)
    assert set(stored_ids(engine)) == {event["event_id"]}
    engine.dispose()


@pytest.mark.slow
def test_open_stream_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """A Live page that is watched is told the end of its stream, and the server ends with it."""
    with live_server(tmp_path) as server, httpx2.Client(timeout=30, trust_env=False) as browser:
        link = server.run("sign-in-link").strip().splitlines()[-1]
        token = link.partition("token=")[2].split()[0]
        origin = {"Origin": server.address}
        browser.post(f"{server.address}/sign-in", data={"token": token}, headers=origin)
        new_key(server.database_url)
        with browser.stream("GET", f"{server.address}/live/events") as stream:
            assert stream.status_code == 200
            lines = stream.iter_lines()
            assert "ready" in next(lines)
            server.process.send_signal(signal.SIGTERM)
            # To its proper end: one that was cut off raises.
            assert not [line for line in lines if "failure" in line]
        assert server.process.wait(60) == 0


def test_question_without_end_is_ended(engine: Engine) -> None:
    """A statement that would run for hours fails as soon as readings are ended."""
    ended, errors = threading.Event(), []

    def ask() -> None:
        try:
            with read_connection(engine) as conn:
                conn.execute(text(ENDLESS))
        except OperationalError as error:
            errors.append(error)
        ended.set()

    reader = threading.Thread(target=ask)
    reader.start()
    readings_of(engine).end_until(ended)
    reader.join()

    assert len(errors) == 1
    assert readings_of(engine).end() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)
def test_slow_question_does_not_hold_up_the_end(database_url: str, tmp_path: Path) -> None:
    """A server whose readers wait for a database that does not answer still ends in time."""
    waiting = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    engine = open_engine(database_url)
    with live_server(tmp_path, database_url=database_url, TOOLFAULT_STOP_SECONDS="1") as server:
        headers = {"Authorization": f"Bearer {new_key(database_url, kind='read')}"}
        asked = threading.Thread(target=_ask, args=(f"{server.address}/api/v1/failures", headers))
        with engine.begin() as holder, engine.connect() as watcher:
            holder.execute(text("LOCK TABLE tool_call IN ACCESS EXCLUSIVE MODE"))
            asked.start()
            while not watcher.execute(waiting).scalar_one():
                assert asked.is_alive()
                watcher.rollback()
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(60) == 0
        asked.join()
    engine.dispose()


def _ask(address: str, headers: dict[str, str]) -> None:
    with suppress(httpx2.TransportError):  # the server may end before it answers
        httpx2.get(address, headers=headers, timeout=30, trust_env=False)
