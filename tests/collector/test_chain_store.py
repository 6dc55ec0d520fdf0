"""Stored chains do not depend on how the events came: order, batches, repetition."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, String, cast, func, select
from tests.collector.naive_chains import chains_of, other_calls_of, outcome_of
from tests.engines import POSTGRESQL_IS_LONG
from tests.factories import conversation_end, failure, success
from tests.statements import Statements

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.chains.fold import IDLE_US, Call
from toolfault_collector.clock import MINUTE_US, now_us, parse_time
from toolfault_collector.doctor.recount import recount
from toolfault_collector.protocol.records import TimePolicy
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.rollups import HOUR_US
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import chain, conversation, tool_call

_projects = itertools.count()
SECOND = 1_000_000
SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

calls = st.fixed_dictionaries(
    {
        "tool": st.sampled_from(["t", "u", "v"]),
        "session": st.sampled_from(["c1", "c2"]),
        "ok": st.booleans(),
        "turn": st.sampled_from([None, None, "a", "b", "c"]),
        "start": st.integers(0, 30),
        "length": st.integers(0, 6),
        "field": st.sampled_from([None, "url", "port"]),
        "args": st.sampled_from([None, "aa", "bb"]),
    }
)
ends = st.lists(st.tuples(st.sampled_from(["c1", "c2"]), st.integers(0, 45)), max_size=2)


def _events(drawn: Sequence[dict[str, Any]], now: int) -> list[dict[str, Any]]:
    events = []
    for place, one in enumerate(drawn):
        end = now - 60 * SECOND + (one["start"] + one["length"]) * SECOND
        common = {
            "session_id": one["session"],
            "at": end,
            "seq": place,
            "duration_ms": one["length"] * 1_000.0,
        }
        if one["turn"] is not None:
            common["turn"] = one["turn"]
        if one["args"] is not None:
            common["args_fingerprint"] = one["args"]
        make = success if one["ok"] else failure
        event = make(one["tool"], **common)
        if not one["ok"] and one["field"] is None:
            event["error"]["issues"], event["error"]["field"] = [], None
        elif not one["ok"]:
            event["error"]["issues"][0]["field"] = event["error"]["field"] = one["field"]
        events.append(event)
    return events


def _store(
    conn: Connection, project: str, batches: Sequence[Sequence[dict[str, Any]]], **more: Any
) -> int:
    """Store *batches* in *project*; with *more* members they are imported."""
    project_id = ensure_project(conn, project)
    policy: TimePolicy = "import" if more else "client"
    for batch in batches:
        events = [{**each, **more} for each in batch]
        store_events(conn, project_id, events, received_at=now_us(), time_policy=policy)
    return project_id


def _chains(conn: Connection, project_id: int) -> list[dict[str, Any]]:
    """Everything of the chains but row ids and the order in which they came."""
    rows = conn.execute(
        select(chain).where(chain.c.project_id == project_id).order_by(chain.c.chain_id)
    ).mappings()
    ignored = {"id", "project_id", "first_message_id"}
    return [{name: row[name] for name in row if name not in ignored} for row in rows]


def _places(conn: Connection, project_id: int) -> dict[str, tuple[str | None, int | None]]:
    rows = conn.execute(
        select(tool_call.c.event_id, tool_call.c.chain_id, tool_call.c.attempt).where(
            tool_call.c.project_id == project_id
        )
    )
    return {row.event_id: (row.chain_id, row.attempt) for row in rows}


def _conversations(conn: Connection, project_id: int) -> list[dict[str, Any]]:
    rows = conn.execute(
        select(conversation)
        .where(conversation.c.project_id == project_id)
        .order_by(conversation.c.session_id)
    ).mappings()
    ignored = {"project_id", "received_at"}
    return [{name: row[name] for name in row if name not in ignored} for row in rows]


def _outcomes(conn: Connection, project_id: int, now: int) -> dict[str, str]:
    """The outcome of each chain at *now*, of its own row alone."""
    return {
        row["chain_id"]: row["outcome"] if row["settles_at"] <= now else "open"
        for row in _chains(conn, project_id)
    }


def _as_calls(events: Sequence[dict[str, Any]]) -> dict[str, dict[str, list[Call]]]:
    found: dict[str, dict[str, list[Call]]] = defaultdict(lambda: defaultdict(list))
    for sent in events:
        source = sent.get("time_source", "client")
        end = 0 if source == "none" else parse_time(sent["occurred_at"])
        start = end if source == "none" else end - int(sent["duration_ms"] * 1_000)
        found[sent["session_id"]][sent["tool"]].append(
            Call(
                sent["event_id"],
                start,
                end,
                sent["seq"],
                sent.get("turn"),
                sent["success"],
                source,
            )
        )
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database_url", "examples"),
    [
        ("sqlite", 15),
        pytest.param("sqlite", 1_000, marks=pytest.mark.long),
        pytest.param("postgresql", 200, marks=[pytest.mark.long, pytest.mark.postgres]),
    ],
    indirect=["database_url"],
)
def test_any_arrival_gives_the_same_chains(engine: Engine, examples: int) -> None:
    """Any permutation, split and repetition stores the chains that the naive reading gives.

    So does a transcript without times, and what became of each chain is right at any moment.
    """

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        drawn=st.lists(calls, min_size=1, max_size=16),
        end_times=ends,
        data=st.data(),
    )
    def explore(
        drawn: list[dict[str, Any]],
        end_times: list[tuple[str, int]],
        data: st.DataObject,
    ) -> None:
        now = now_us()
        sent = _events(drawn, now)
        ended = [
            conversation_end(session, at=now - 60 * SECOND + at * SECOND)
            for session, at in end_times
        ]
        shuffled = data.draw(st.permutations(sent + ended))
        cuts = sorted(data.draw(st.lists(st.integers(0, len(shuffled)), max_size=4)))
        bounds = [0, *cuts, len(shuffled)]
        batches = [shuffled[low:high] for low, high in itertools.pairwise(bounds)]
        repeated = data.draw(st.lists(st.sampled_from(batches), max_size=2))

        number = next(_projects)
        with write_transaction(engine) as conn:
            together = _store(conn, f"together {number}", [sent + ended])
            apart = _store(conn, f"apart {number}", [*batches, *repeated])
            # The calls of a finished transcript; its ends have a time.
            calls_alone = [[each for each in batch if "tool" in each] for batch in batches]
            untimed = _store(conn, f"untimed {number}", calls_alone, time_source="none")
        with read_connection(engine) as conn:
            assert _chains(conn, apart) == _chains(conn, together)
            assert _places(conn, apart) == _places(conn, together)
            assert _conversations(conn, apart) == _conversations(conn, together)
            _compare_with_naive(conn, apart, sent, ended=ended)
            order = [{**each, "time_source": "none"} for each in sent]
            _compare_with_naive(conn, untimed, order, ended=[])

    explore()


def _compare_with_naive(
    conn: Connection,
    project_id: int,
    sent: list[dict[str, Any]],
    *,
    ended: list[dict[str, Any]],
) -> None:
    stored = {row["chain_id"]: row for row in _chains(conn, project_id)}
    # A conversation is over half an hour after something of it, or before all of it.
    over = {parse_time(each["occurred_at"]) + IDLE_US for each in (*sent, *ended)}
    moments = sorted({0, *over, *(at - 1 for at in over)})
    at_each = [_outcomes(conn, project_id, now) for now in moments]
    expected = {}
    for session, tools in _as_calls(sent).items():
        times = [parse_time(end["occurred_at"]) for end in ended if end["session_id"] == session]
        for tool, of_tool in tools.items():
            for one in chains_of(of_tool):
                outcomes = [
                    outcome_of(one, tool, calls=tools, ended_at=max(times, default=None), now=now)
                    for now in moments
                ]
                expected[one.failures[0].event_id] = (
                    session,
                    tool,
                    len(one.members),
                    len(one.failures),
                    len(one.round_trips),
                    other_calls_of(one, tool, calls=tools),
                    outcomes,
                )
    found = {
        chain_id: (
            row["session_id"],
            row["tool"],
            row["calls"],
            row["failures"],
            row["round_trips"],
            row["other_calls"],
            [outcomes[chain_id] for outcomes in at_each],
        )
        for chain_id, row in stored.items()
    }
    assert found == expected


def test_parallel_success_joins_a_chain_that_opens_before_it(engine: Engine) -> None:
    """What was beside one chain as it came is the retry of the chain that opens later before it."""
    began = now_us() - 60 * SECOND
    late = success(at=began + 2 * SECOND, seq=3, turn="a", duration_ms=0.0)
    first = failure(at=began, seq=0, turn="a", duration_ms=0.0)
    recovery = success(at=began + SECOND, seq=1, duration_ms=0.0)
    second = failure(at=began + 2 * SECOND, seq=2, duration_ms=0.0)
    with write_transaction(engine) as conn:
        project_id = _store(conn, "demo", [[first, late], [recovery, second]])

    with read_connection(engine) as conn:
        stored = {row["chain_id"]: row for row in _chains(conn, project_id)}
        places = _places(conn, project_id)

    assert {chain_id: row["outcome"] for chain_id, row in stored.items()} == {
        first["event_id"]: "recovered",
        second["event_id"]: "recovered",
    }
    assert places[recovery["event_id"]] == (first["event_id"], 2)
    assert places[late["event_id"]] == (second["event_id"], 2)


@SQLITE
def test_untimed_calls_keep_their_order(engine: Engine) -> None:
    """Calls without times are ordered by seq, also when a later import brings the earlier ones."""
    events = [failure(seq=3), failure(seq=1), success(seq=4), success("other", seq=5)]
    for each in events:
        each |= {"time_source": "none"}
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        for moment, each in enumerate(events):
            store_events(
                conn,
                project_id,
                [each],
                received_at=now_us() + moment * MINUTE_US,
                time_policy="import",
            )

    with read_connection(engine) as conn:
        (stored,) = _chains(conn, project_id)
        times = conn.execute(select(tool_call.c.occurred_at).distinct()).all()

    assert (stored["calls"], stored["round_trips"], stored["outcome"]) == (3, 2, "recovered")
    assert stored["chain_id"] == events[1]["event_id"]
    assert len(times) == 1


@SQLITE
def test_calls_of_a_clock_that_is_off_keep_their_order(engine: Engine) -> None:
    """Calls that get the server's time are in the order of seq, however long each took."""
    ahead = now_us() + 3_600 * SECOND
    failed = failure(at=ahead, seq=1, duration_ms=10.0)
    fixed = success(at=ahead + SECOND, seq=2, duration_ms=900.0)
    with write_transaction(engine) as conn:
        project_id = _store(conn, "demo", [[fixed, failed]])

    with read_connection(engine) as conn:
        (stored,) = _chains(conn, project_id)

    assert (stored["calls"], stored["round_trips"], stored["outcome"]) == (2, 1, "recovered")


@SQLITE
def test_calls_begin_to_the_microsecond(engine: Engine) -> None:
    """No length in whole microseconds moves a start, by which calls are ordered."""
    began = now_us() - 60 * SECOND
    lengths = (1_001, 1_003, 1_000)
    events = [
        failure(at=began + length, seq=place, duration_ms=length / 1_000)
        for place, length in enumerate(lengths)
    ]
    with write_transaction(engine) as conn:
        project_id = _store(conn, "demo", [events])
        starts = select(tool_call.c.started_at).where(tool_call.c.project_id == project_id)
        assert set(conn.execute(starts).scalars()) == {began}
        (stored,) = _chains(conn, project_id)

    assert stored["chain_id"] == events[0]["event_id"]


@SQLITE
def test_an_empty_turn_is_an_unknown_one(engine: Engine) -> None:
    """Calls whose sender left the turn empty were not all issued at once, nor with one argument."""
    began = now_us() - 60 * SECOND
    common: dict[str, Any] = {"turn": "", "args_fingerprint": "", "duration_ms": 0.0}
    sent = [failure(at=began, seq=1, **common), success(at=began + SECOND, seq=2, **common)]
    with write_transaction(engine) as conn:
        project_id = _store(conn, "demo", [sent])

    with read_connection(engine) as conn:
        (stored,) = _chains(conn, project_id)

    assert (stored["outcome"], stored["identical_repeats"]) == ("recovered", 0)


@POSTGRESQL_IS_LONG
def test_a_chain_is_told_by_its_conversation(engine: Engine) -> None:
    """Calls of other tools, ends and late calls move the outcome, and from when on it counts."""
    now = now_us()
    late = success("u", at=now - 50 * SECOND)
    steps: list[tuple[dict[str, Any], str, int]] = [
        (failure("t", at=now - 60 * SECOND), "abandoned", now - 60 * SECOND + IDLE_US),
        (failure("u", at=now - 40 * SECOND), "abandoned", now - 40 * SECOND + IDLE_US),
        (late, "switched", now - 40 * SECOND + IDLE_US),
        (conversation_end(at=now - 30 * SECOND), "switched", 0),
        (failure("t", at=now - 20 * SECOND), "abandoned", now - 20 * SECOND + IDLE_US),
        (success("u", at=now - 10 * SECOND), "switched", now - 10 * SECOND + IDLE_US),
        (success("t", at=now - 5 * SECOND), "recovered", 0),
    ]
    for event, outcome, settles_at in steps:
        with write_transaction(engine) as conn:
            project_id = _store(conn, "demo", [[event]])
            chains = {row["tool"]: row for row in _chains(conn, project_id)}

        stored = (chains["t"]["outcome"], chains["t"]["settles_at"])
        assert stored == (outcome, settles_at), event
        assert recount(engine).right


@SQLITE
def test_resolved_chains_are_not_read_again(engine: Engine) -> None:
    """Storing a call of a conversation takes no longer because many of its chains recovered."""
    began = now_us() - 7_200 * SECOND
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        steps = []
        for recovered in (10, 250):
            chains = [
                make(session_id=f"c{recovered}", at=began + (2 * place + later) * SECOND)
                for place in range(recovered)
                for later, make in enumerate((failure, success))
            ]
            store_events(conn, project_id, chains, received_at=now_us())
            last = success("other", session_id=f"c{recovered}", at=began + 2_000 * SECOND)
            driver: Any = conn.connection.driver_connection
            counted = itertools.count()
            driver.set_progress_handler(lambda counted=counted: next(counted) < 0, 1)
            store_events(conn, project_id, [last], received_at=now_us())
            driver.set_progress_handler(None, 0)
            steps.append(next(counted))

    assert steps[1] < 1.2 * steps[0]


def test_finished_transcript_is_over_at_once(engine: Engine) -> None:
    """An unresolved chain of a source without times is not open for half an hour after import."""
    events = [failure(seq=1), success("other", seq=2), failure("third", seq=3)]
    for each in events:
        each |= {"time_source": "none"}
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        store_events(conn, project_id, events, received_at=now_us(), time_policy="import")

    with read_connection(engine) as conn:
        outcomes = _outcomes(conn, project_id, now_us())

    assert outcomes == {events[0]["event_id"]: "switched", events[2]["event_id"]: "abandoned"}


@POSTGRESQL_IS_LONG
def test_long_conversation_is_not_read_again(engine: Engine) -> None:
    """Storing the next call of a long conversation reads no more rows than of a short one."""
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        statements = []
        for size in (10, 300):
            began = now_us() - 7_200 * SECOND
            began -= began % HOUR_US  # all within the hour in which names are written once
            session = f"c{size}"
            batch = [
                failure(session_id=session, at=began + place * SECOND, seq=place, field=f"f{place}")
                for place in range(size)
            ]
            store_events(conn, project_id, batch, received_at=now_us())
            last = failure(session_id=session, at=began + size * SECOND, seq=size, field="f1")
            with Statements(engine, conn) as sent:
                store_events(conn, project_id, [last], received_at=now_us())
            statements.append(sent)
        longest = select(func.max(func.length(cast(chain.c.state, String))))
        states = conn.execute(longest).scalar_one()

    assert statements[0] == statements[1]
    assert states < 10_000
