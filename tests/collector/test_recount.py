"""A recount proves what is kept beside the calls, and puts it right."""

from __future__ import annotations

import random
import threading

import pytest
from sqlalchemy import Engine, delete, select, update
from tests.engines import POSTGRESQL_IS_LONG
from tests.factories import conversation_end, counts, failure, success

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import SECOND_US, now_us
from toolfault_collector.doctor.recount import recount
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import chain, conversation, failure_counts, tool_call

CALLS = 150


def _fill(engine: Engine) -> None:
    generator = random.Random(3)
    began = now_us() - 3_600 * SECOND_US
    events = []
    for place in range(CALLS):
        make = generator.choice([failure, failure, success])
        events.append(
            make(
                generator.choice("tu"),
                session_id=f"c{generator.randrange(5)}",
                at=began + place * SECOND_US,
                seq=place,
            )
        )
    generator.shuffle(events)
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        for low in range(0, CALLS, 17):
            store_events(conn, project_id, events[low : low + 17], received_at=now_us())
        store_events(conn, project_id, [conversation_end("c1")], received_at=now_us())


@POSTGRESQL_IS_LONG
def test_what_ingest_keeps_is_right(engine: Engine) -> None:
    """After shuffled batches a recount finds nothing wrong, and says how many calls it read."""
    _fill(engine)

    heard: list[int] = []
    found = recount(engine, progress=heard.append)

    assert found.right
    assert found.calls == heard[-1] == CALLS
    assert found.chains > 10


@POSTGRESQL_IS_LONG
def test_damage_is_found_and_repaired(engine: Engine) -> None:
    """Wrong chains, places, conversations and counts are counted, repaired, and then right."""
    _fill(engine)
    with read_connection(engine) as conn:
        before = conn.execute(select(chain).order_by(chain.c.chain_id)).mappings().all()
        talks = conn.execute(select(conversation)).mappings().all()
    with write_transaction(engine) as conn:
        conn.execute(delete(chain).where(chain.c.chain_id == before[0]["chain_id"]))
        conn.execute(
            update(chain).where(chain.c.chain_id == before[1]["chain_id"]).values(failures=99)
        )
        stray = {**before[2], "chain_id": "stray"}
        stray.pop("id")
        conn.execute(chain.insert().values(stray))
        unresolved = [row["chain_id"] for row in before[3:] if row["recovered_at"] is None]
        of_two = [update(chain).where(chain.c.chain_id == each) for each in unresolved[:2]]
        conn.execute(of_two[0].values(outcome="recovered"))
        conn.execute(of_two[1].values(settles_at=chain.c.settles_at + 1))
        conn.execute(update(tool_call).where(tool_call.c.id == 5).values(attempt=7, chain_id="x"))
        conn.execute(update(conversation).values(last_at=1, successes=[[1, 1, "nobody", None]]))
        conn.execute(update(failure_counts).values(failures=failure_counts.c.failures + 1))

    assert not recount(engine).right
    found = recount(engine, repair=True)

    assert not found.right  # the first one wrote nothing
    assert (found.wrong_chains, found.wrong_places) == (5, 1)
    assert found.wrong_conversations == 5
    assert found.wrong_counts > 0
    assert recount(engine).right
    with read_connection(engine) as conn:
        after = conn.execute(select(chain).order_by(chain.c.chain_id)).mappings().all()
        repaired = conn.execute(select(conversation)).mappings().all()
    assert [{**row, "id": 0} for row in after] == [{**row, "id": 0} for row in before]
    assert sorted(map(repr, repaired)) == sorted(map(repr, talks))


def test_sampled_calls_stand_for_those_not_sent(engine: Engine) -> None:
    """A call of rate r counts 1 / r - 1 further ones into the rollup, and a recount agrees."""
    events = [
        failure(sample_rate=0.25),
        success(sample_rate=0.1),
        success(sample_rate=1 / 3),
        success(sample_rate=0.7),
        success(),
        success("u", sample_rate=1e-300),
        failure("u", sample_rate=1e-5),
        failure("u", sample_rate=1e-4),
    ]
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        store_events(conn, project_id, events, received_at=now_us())
        kept = failure_counts.c
        sums = {
            by: {
                (row.tool, row.name): (row.failures, row.calls)
                for row in conn.execute(select(failure_counts).where(kept.by == by))
            }
            for by in ("unsent", "squared", "beyond")
        }

    assert sums["unsent"] == {
        ("http_request", "wrong_type"): (3_000_000, 3_000_000),
        ("http_request", ""): (0, 9_000_000 + 2_000_000 + 428_571),
        ("u", ""): (0, 999_999_000_000),
        ("u", "wrong_type"): (109_998_000_000, 109_998_000_000),
    }
    assert sums["squared"] == {
        ("http_request", "wrong_type"): (15_000, 15_000),
        ("http_request", ""): (0, 99_000 + 8_000 + 1_039),
        ("u", ""): (0, 99_999_999_000),
        ("u", "wrong_type"): (199_999_998_000, 199_999_998_000),
    }
    assert sums["beyond"] == {
        ("u", ""): (0, 999_900_000),
        ("u", "wrong_type"): (9_900_000, 9_900_000),
    }
    assert recount(engine).right


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_times_before_1970_are_none(engine: Engine) -> None:
    """An imported call of a clock that was never set gets the server's time, and adds up."""
    events = [
        failure(at=-5 * SECOND_US, duration_ms=0.0),
        success(at=-4 * SECOND_US, duration_ms=0.0),
        conversation_end("conv-1", at=-3 * SECOND_US),
        counts(at=-120 * SECOND_US),
    ]
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        for each in events:
            store_events(conn, project_id, [each], received_at=now_us(), time_policy="import")

    with read_connection(engine) as conn:
        times = conn.execute(select(tool_call.c.time_source, tool_call.c.flags)).all()
    assert [tuple(each) for each in times] == [("server", ["clock_skew"])] * 2
    assert recount(engine).right


@POSTGRESQL_IS_LONG
def test_calls_without_a_conversation_row_are_found(engine: Engine) -> None:
    """A conversation that is missing is made, one that has neither calls nor ends goes."""
    _fill(engine)
    with write_transaction(engine) as conn:
        conn.execute(delete(conversation).where(conversation.c.session_id == "c1"))
        empty = {"project_id": 1, "session_id": "empty", "first_at": 1, "last_at": 1}
        conn.execute(conversation.insert().values(empty))

    assert recount(engine, repair=True).wrong_conversations == 2
    assert recount(engine).right


def test_recount_beside_writers_finds_nothing(engine: Engine) -> None:
    """What is stored while a recount reads is no difference, and a repair damages nothing."""
    _fill(engine)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            with write_transaction(engine) as conn:
                project_id = ensure_project(conn, "demo")
                events = [failure("t", session_id="c1"), success("u", session_id="c2")]
                store_events(conn, project_id, events, received_at=now_us())

    writer = threading.Thread(target=write)
    writer.start()
    with write_transaction(engine) as conn:
        conn.execute(update(failure_counts).values(failures=failure_counts.c.failures + 1))
    repaired = recount(engine, repair=True)
    found = [recount(engine)]
    stop.set()
    writer.join(60)

    assert repaired.wrong_counts > 0
    assert (repaired.wrong_chains, repaired.wrong_places, repaired.wrong_conversations) == (0, 0, 0)
    assert all(each.right for each in found)
    assert recount(engine).right


@POSTGRESQL_IS_LONG
def test_wrong_calls_alone_are_found(engine: Engine) -> None:
    """Counts of calls are wrong even where the failures beside them are right."""
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        store_events(conn, project_id, [failure(), success()], received_at=now_us())
        conn.execute(
            update(failure_counts)
            .where(failure_counts.c.calls > 0)
            .values(calls=failure_counts.c.calls + 1)
        )

    assert recount(engine).wrong_counts > 0
