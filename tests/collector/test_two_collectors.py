"""Several collector processes on one database: on PostgreSQL they add up, SQLite takes one."""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path
from types import ModuleType

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select
from tests.collector.recount import assert_counts_hold
from tests.factories import conversation_end, counts, event_id, failure, success
from tests.running import RunningCollector
from tests.starting import completed

from toolfault_collector.clock import SECOND_US, now_us
from toolfault_collector.errors import DatabaseInUse, SchemaError
from toolfault_collector.http import app as without_pages
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import (
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.tables import call_counts, tool_call
from toolfault_collector.storage.tables import conversation_end as ends
from toolfault_dashboard import app as with_pages

CONVERSATIONS = 4
CALLS = 40
SERVE = "import sys; from toolfault_dashboard.cli.app import run; sys.exit(run(['serve']))"


def _conversation(number: int, generator: random.Random) -> list[dict[str, object]]:
    began = now_us() - 3_600 * SECOND_US
    events: list[dict[str, object]] = []
    for place in range(CALLS):
        make = generator.choice([failure, failure, success])
        events.append(
            make(
                generator.choice(["t", "u"]),
                session_id=f"conv-{number}",
                at=began + place * SECOND_US,
                seq=place,
                turn=f"turn-{place // 2}",
                event_id=event_id(generator),
            )
        )
    return [*events, counts(calls=7), conversation_end(f"conv-{number}")]


def _send(
    collectors: list[RunningCollector],
    batches: list[list[dict[str, object]]],
    answers: list[tuple[int, str]],
) -> None:
    for number, batch in enumerate(batches):
        answer = collectors[number % len(collectors)].post(*batch)
        answers.append((answer.status_code, answer.text))


@pytest.mark.slow
@pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)
def test_same_conversations_through_two_collectors(database_url: str, tmp_path: Path) -> None:
    """Calls of the same conversations, shuffled over two collectors and resent, add up."""
    generator = random.Random(7)
    events = [
        event for number in range(CONVERSATIONS) for event in _conversation(number, generator)
    ]
    answers: list[tuple[int, str]] = []
    with (
        RunningCollector(database_url, folder=tmp_path) as first,
        RunningCollector(database_url, folder=tmp_path) as second,
    ):
        threads = []
        for _ in range(3):
            # Every thread sends everything: each event comes three times, through both.
            shuffled = generator.sample(events, len(events))
            batches = [shuffled[low : low + 13] for low in range(0, len(shuffled), 13)]
            arguments = ([first, second], batches, answers)
            threads.append(threading.Thread(target=_send, args=arguments))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)

    assert {status for status, _ in answers} == {200}, [text for _, text in answers][:3]
    engine = open_engine(database_url)
    assert_counts_hold(engine)
    with read_connection(engine) as conn:
        calls = conn.execute(select(func.count()).select_from(tool_call)).scalar_one()
        folded = conn.execute(select(func.sum(call_counts.c.calls))).scalar_one()
        ended = conn.execute(select(func.count()).select_from(ends)).scalar_one()
    engine.dispose()
    assert (calls, folded, ended) == (CONVERSATIONS * CALLS, CONVERSATIONS * 7, CONVERSATIONS)


def test_an_sqlite_file_takes_one_server(collector: RunningCollector) -> None:
    """A second server on a file ends before it listens, with one sentence that names the file."""
    settings = {"TOOLFAULT_DATABASE_URL": collector.database_url, "TOOLFAULT_PORT": "0"}
    for program in (["-c", SERVE], ["-m", "toolfault_collector"]):
        refused = completed(*program, environ={**os.environ, **settings})

        assert (refused.returncode, refused.stdout) == (1, "")
        (sentence,) = refused.stderr.splitlines()
        file = collector.database_url.removeprefix("sqlite:///")
        assert f"another server is running on {file}" in sentence


@pytest.mark.parametrize("room", [without_pages, with_pages], ids=["collector", "dashboard"])
def test_an_application_is_a_server_whoever_runs_it(
    collector: RunningCollector, room: ModuleType
) -> None:
    """Under a server of somebody's own it does not start on a file that a server has."""
    settings = Settings(database_url=collector.database_url)

    with (
        pytest.raises(DatabaseInUse, match="another server is running"),
        TestClient(room.create_app(settings)),
    ):
        pass


def test_a_file_is_free_once_its_server_has_ended(sqlite_url: str) -> None:
    """Within a process, too, an application has its file alone until it stops or cannot start."""
    settings = Settings(database_url=sqlite_url)
    with (
        TestClient(without_pages.create_app(settings)),
        pytest.raises(DatabaseInUse),
        TestClient(without_pages.create_app(settings)),
    ):
        pass

    engine = open_engine(sqlite_url)
    with write_transaction(engine) as conn:
        conn.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    engine.dispose()
    for _ in range(2):
        with pytest.raises(SchemaError), TestClient(without_pages.create_app(settings)):
            pass
