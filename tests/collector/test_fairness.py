"""A project that sends without end does not keep another from being stored, over HTTP."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, select
from tests.factories import failure, success
from tests.running import RunningCollector, new_key

from toolfault_collector.storage.database.engine import (
    is_sqlite,
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.tables import tool_call

BATCHES = 30
EVENTS = 50
SETTINGS = {
    "TOOLFAULT_QUEUE_EVENTS": "1000",
    "TOOLFAULT_GROUP_EVENTS": "1",  # a batch per transaction, so that their order can be seen
    "TOOLFAULT_BUSY_SECONDS": "60",
}
# One in the hands of each writing thread, and one that has its turn before the quiet project.
AHEAD = 3


@contextmanager
def nothing_is_stored(engine: Engine) -> Iterator[None]:
    """Hold up every writer for the length of the block."""
    with write_transaction(engine) as conn:
        if not is_sqlite(conn):
            conn.exec_driver_sql("LOCK TABLE tool_call IN EXCLUSIVE MODE")
        yield


def queued_events(collector: RunningCollector) -> int:
    """Return how many events wait in the queue of *collector*."""
    found = re.search(r"^toolfault_queued_events (\S+)$", collector.get("/metrics").text, re.M)
    assert found is not None
    return int(float(found[1]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "database_url",
    ["sqlite", pytest.param("postgresql", marks=[pytest.mark.long, pytest.mark.postgres])],
    indirect=True,
)
def test_noisy_project_does_not_starve_a_quiet_one(database_url: str, tmp_path: Path) -> None:
    """The noisy one is refused beyond half of the queue; the other comes last and is next."""
    engine = open_engine(database_url)
    answers: list[int] = []
    quiet: list[int] = []

    def make_noise() -> None:
        answers.append(collector.post(*[success() for _ in range(EVENTS)]).status_code)

    def be_quiet() -> None:
        quiet.append(collector.post(success("quiet"), key=other).status_code)

    with RunningCollector(database_url, folder=tmp_path, **SETTINGS) as collector:
        other = new_key(database_url, project="quiet")
        with nothing_is_stored(engine):
            threads = [threading.Thread(target=make_noise) for _ in range(BATCHES)]
            for thread in threads:
                thread.start()
            while len(answers) < BATCHES - 10 or queued_events(collector) < 10 * EVENTS:
                assert queued_events(collector) <= 10 * EVENTS  # half of the queue
            last = threading.Thread(target=be_quiet)
            last.start()
            while not quiet and queued_events(collector) <= 10 * EVENTS:
                pass
        for thread in (*threads, last):
            thread.join(60)

    assert quiet == [200]
    assert (answers.count(200), answers.count(503)) == (10, BATCHES - 10)
    with read_connection(engine) as conn:
        tools = list(conn.execute(select(tool_call.c.tool).order_by(tool_call.c.id)).scalars())
    engine.dispose()
    assert len(tools) == 10 * EVENTS + 1
    assert tools.index("quiet") <= AHEAD * EVENTS


def test_a_long_search_holds_up_no_other(sqlite_server: RunningCollector) -> None:
    """Megabytes that look like secrets are stored after what came later from another project."""
    text = "password=x " * 1_400
    renderings = dict.fromkeys(("user", "llm", "system"), text[:8_000])
    error = {"received": text, "snippet": text, "renderings": renderings}
    heavy = [failure("heavy", session_id=None, error=error) for _ in range(20)]
    other = new_key(sqlite_server.database_url, project="quiet")
    engine = open_engine(sqlite_server.database_url)
    statuses: list[int] = []

    def send(*events: dict[str, object], key: str | None = None) -> None:
        statuses.append(sqlite_server.post(*events, key=key).status_code)

    senders = [
        threading.Thread(target=send, args=[success("first")]),
        threading.Thread(target=send, args=heavy),
        threading.Thread(target=send, args=[success("quiet")], kwargs={"key": other}),
    ]
    with nothing_is_stored(engine):
        for sender, queued in zip(senders, (1, 21, 22), strict=True):
            sender.start()
            while queued_events(sqlite_server) < queued:
                assert sender.is_alive()
    for sender in senders:
        sender.join(60)

    with read_connection(engine) as conn:
        tools = list(conn.execute(select(tool_call.c.tool).order_by(tool_call.c.id)).scalars())
    engine.dispose()
    assert statuses == [200] * 3
    assert tools == ["first", "quiet", *["heavy"] * 20]


def test_events_whose_names_are_spelled_in_numbers_count_as_events(
    sqlite_server: RunningCollector,
) -> None:
    """A sender that writes ``event_id`` with an escape fills its share of the queue like others."""
    events = [success() for _ in range(300)]
    body = json.dumps({"schema_version": 1, "events": events})
    body = body.replace('"event_id"', '"\\u0065vent_id"')
    engine = open_engine(sqlite_server.database_url)
    statuses: list[int] = []

    def send() -> None:
        answer = sqlite_server.client.post(
            f"{sqlite_server.url}/v1/events",
            content=body,
            headers={"Content-Type": "application/json"},
        )
        statuses.append(answer.status_code)

    first, second = threading.Thread(target=send), threading.Thread(target=send)
    with nothing_is_stored(engine):
        first.start()
        second.start()
        while queued_events(sqlite_server) < 300:  # what is being stored counts until it is
            pass
    first.join()
    second.join()
    engine.dispose()

    assert statuses == [200, 200]
