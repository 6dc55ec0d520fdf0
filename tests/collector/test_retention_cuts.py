"""What goes on is cut where its chains end, a burst goes in its time, all counts stay right."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter, defaultdict
from typing import Any

import pytest
from sqlalchemy import Engine, select
from tests.collector.recount import assert_counts_hold
from tests.engines import POSTGRESQL_IS_LONG
from tests.factories import conversation_end, event_id, failure, success
from tests.starting import completed

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, MINUTE_US, SECOND_US, now_us
from toolfault_collector.doctor.recount import recount
from toolfault_collector.retention.partitions import list_partitions
from toolfault_collector.retention.policy import prune
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import (
    chain,
    conversation,
    event_key,
    metadata,
    quarter_version,
    tool_call,
)

NOW = now_us()
SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def _store(engine: Engine, *events: dict[str, Any], at: int, project: str = "demo") -> int:
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, project)
        return store_events(conn, project_id, events, received_at=at).accepted


def _ago(days: float) -> int:
    return NOW - int(days * DAY_US)


def _calls(engine: Engine) -> list[Any]:
    with read_connection(engine) as conn:
        return list(conn.execute(select(tool_call).order_by(tool_call.c.id)))


def _right(engine: Engine) -> bool:
    """Say whether all that is kept beside the calls is what they add up to."""
    assert_counts_hold(engine)
    with read_connection(engine) as conn:
        if list_partitions(conn):
            keys = set(conn.execute(select(event_key.c.event_id)).scalars())
            assert keys == {row.event_id for row in _calls(engine)}
    return recount(engine).right


@POSTGRESQL_IS_LONG
def test_a_conversation_that_goes_on_for_ever_is_cut(engine: Engine) -> None:
    """What is left of it is a day more than the time to keep, round after round."""
    for day in range(30, -1, -1):
        for hour in (3, 2, 1):
            at = _ago(day + hour / 24)
            read = success("read", session_id="main", at=at)
            failed = failure("search", session_id="main", at=at)
            fixed = success("search", session_id="main", at=at + MINUTE_US)
            _store(engine, read, failed, fixed, at=at + MINUTE_US)
    found = []
    for later in (0, 0.5, 1, 3):
        now = NOW + int(later * DAY_US)
        prune(engine, days=10, force=True, clock=iter([now]).__next__)
        oldest = min(row.received_at for row in _calls(engine))
        found.append(round((now - oldest) / DAY_US, 1))
        assert _right(engine)

    assert all(10 < days <= 11.5 for days in found), found
    with read_connection(engine) as conn:
        talk = conn.execute(select(conversation)).one()
        chains = conn.execute(select(chain)).all()
    calls = _calls(engine)
    assert talk.first_at == min(row.started_at for row in calls)
    assert len(calls) == 3 * len(chains)


def test_a_chain_that_goes_on_stays_whole(engine: Engine) -> None:
    """Nothing is taken from a chain whose last call is young, nor what its outcome depends on."""
    tools = {28: "a", 26: "b", 24: "a", 22: "b"}
    for day in (30, 28, 26, 25, 24, 22, 20, 5):
        make = success if day in tools else failure
        event = make(tools.get(day, "search"), session_id="main", at=_ago(day))
        _store(engine, event, at=_ago(day))

    assert prune(engine, days=10, clock=lambda: NOW).calls == 2

    left = [(row.tool, row.chain_id is not None) for row in _calls(engine)]
    assert sorted(left) == [("a", False), ("b", False), *[("search", True)] * 4]
    assert _right(engine)


@SQLITE
def test_a_success_beside_a_chain_stays_with_it(engine: Engine) -> None:
    """A chain whose failure came late still knows the success of the same turn, which is old."""
    old = success("read", session_id="main", turn="f", at=_ago(20))
    beside = success("search", session_id="main", turn="a", at=_ago(20) + SECOND_US)
    _store(engine, beside, old, at=_ago(20))
    young = [success(tool, session_id="main", turn=tool, at=_ago(1)) for tool in "bcde"]
    late = failure("search", session_id="main", turn="a", at=_ago(20))
    _store(engine, late, *young, at=_ago(1))

    assert prune(engine, days=10, clock=lambda: NOW).calls == 1
    assert _right(engine)


@POSTGRESQL_IS_LONG
def test_a_chain_of_very_many_calls_is_cut_once_most_of_it_is_old(engine: Engine) -> None:
    """A broken tool that is asked for ever keeps no more than twice what is to be kept."""
    step = DAY_US // 25
    times = [NOW - place * step for place in range(60 * 25, 0, -1)]
    for first in range(0, len(times), 25):
        batch = [failure("search", session_id="main", at=at) for at in times[first : first + 25]]
        _store(engine, *batch, at=times[first])
    _store(engine, success("read", session_id="main", at=NOW), at=NOW)

    prune(engine, days=10, force=True, clock=lambda: NOW)

    left = _calls(engine)
    assert 10 * 25 < len(left) <= 12 * 25
    assert _right(engine)
    with read_connection(engine) as conn:
        (one,) = conn.execute(select(chain)).all()
    assert (one.chain_id, one.calls) == (left[0].event_id, len(left) - 1)
    # Until then it is whole.
    assert prune(engine, days=8, force=True, clock=lambda: NOW).calls == 0


PRUNE = """
import sys
from toolfault_collector.storage.database.engine import open_engine
from toolfault_collector.retention.policy import prune
prune(open_engine(sys.argv[1]), days=10)
"""


@pytest.mark.slow
@POSTGRESQL_IS_LONG
def test_killed_while_it_cuts(engine: Engine) -> None:
    """Ended before or after the commit of any of its transactions, it leaves every count right."""
    for day in range(40, 0, -1):
        pairs = [(make, place) for place in range(20) for make in (failure, success)]
        times = [_ago(day) + 2 * place * SECOND_US for place, _ in enumerate(pairs)]
        batch = [
            make(f"t{place % 3}", session_id="main", at=at)
            for (make, place), at in zip(pairs, times, strict=True)
        ]
        _store(engine, *batch, conversation_end("main", at=times[-1] + 1), at=times[-1] + 1)
    url = engine.url.render_as_string(hide_password=False)
    kept = []
    for point in ("removed:1", "removal_committed:1", "removed:2"):
        ended = completed("-c", PRUNE, url, environ={**os.environ, "TOOLFAULT_FAILPOINT": point})
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        kept.append(len(_calls(engine)))
        assert _right(engine)
    prune(engine, days=10)
    kept.append(len(_calls(engine)))
    assert _right(engine)

    assert kept[0] == 1_600 > kept[1] > kept[2] > kept[3]
    assert 10 * 40 <= kept[3] <= 11 * 40


@SQLITE
def test_old_ends_go_with_the_calls_they_count(engine: Engine) -> None:
    """The calls that ends said are those of the ends that are left."""
    for day in (20, 15, 5, 1):
        at = _ago(day)
        ended = conversation_end("main", at=at + MINUTE_US, calls={"search": day})
        _store(engine, failure("search", session_id="main", at=at), at=at)
        _store(engine, success("search", session_id="main", at=at + SECOND_US), at=at + SECOND_US)
        _store(engine, ended, at=at + MINUTE_US)

    prune(engine, days=10, clock=lambda: NOW)

    with read_connection(engine) as conn:
        talk = conn.execute(select(conversation)).one()
        assert len(conn.execute(select(metadata.tables["conversation_end"].c.id)).all()) == 2
    assert talk.end_calls == {"search": 6}
    assert _right(engine)


@POSTGRESQL_IS_LONG
def test_what_names_a_conversation_is_counted_again(engine: Engine) -> None:
    """The name of a conversation that is cut is the best that any call which is left has."""
    names = {"own": "explicit", "trace": "trace", "mixed": "meta"}
    for day in (20, 6, 5, 1):
        for name, young in names.items():
            rung = {20: "explicit", 5: young}.get(day, "trace")
            call = failure("search", session_id=name, conversation_rung=rung, at=_ago(day))
            done = _ago(day) + MINUTE_US
            fixed = success("search", session_id=name, conversation_rung=rung, at=done)
            _store(engine, call, fixed, at=done)

    assert prune(engine, days=10, clock=lambda: NOW).calls == 6

    with read_connection(engine) as conn:
        found = conn.execute(select(conversation.c.session_id, conversation.c.rung))
        assert {row.session_id: row.rung for row in found} == names
    assert _right(engine)


@POSTGRESQL_IS_LONG
def test_a_call_that_was_removed_and_comes_again_is_stored_again(engine: Engine) -> None:
    """It is a new call of its conversation then, received now, and counted once."""
    old = [
        make("search", session_id="main", at=_ago(20) + place * SECOND_US)
        for place, make in enumerate((failure, success))
    ]
    _store(engine, *old, at=_ago(20) + SECOND_US)
    for tool in ("read", "write"):
        _store(engine, success(tool, session_id="main", at=_ago(1)), at=_ago(1))
    assert _store(engine, *old, at=NOW) == 0
    assert prune(engine, days=10, clock=lambda: NOW).calls == 2

    assert _store(engine, *old, at=NOW) == 2
    assert _store(engine, *old, at=NOW) == 0

    assert prune(engine, days=10, clock=lambda: NOW).calls == 0
    assert len(_calls(engine)) == 4
    assert _right(engine)


@SQLITE
def test_a_burst_goes_when_its_time_has_come(engine: Engine) -> None:
    """An import, or an incident, that is most of its project is removed like anything else."""
    burst = [failure(session_id=f"b{place // 2}", at=_ago(31)) for place in range(1_500)]
    _store(engine, *burst, at=_ago(31))
    for day in range(30, 0, -1):
        _store(engine, failure(session_id=f"d{day}", at=_ago(day)), at=_ago(day))

    removed = prune(engine, days=30, clock=lambda: NOW - 1)

    assert (removed.conversations, removed.calls) == (750, 1_500)
    assert len(_calls(engine)) == 30
    assert _right(engine)


@SQLITE
def test_a_limit_by_count_cuts_what_goes_on(engine: Engine) -> None:
    """One conversation of a project is no reason to keep more than an eighth beyond its limit."""
    for minute in range(100, 0, -1):
        at = NOW - minute * MINUTE_US
        _store(engine, failure("search", session_id="main", at=at), at=at)
        _store(engine, success("search", session_id="main", at=at + SECOND_US), at=at + SECOND_US)

    prune(engine, max_calls=80, clock=lambda: NOW)

    assert 80 <= len(_calls(engine)) <= 91
    assert _right(engine)


@SQLITE
@pytest.mark.parametrize(("arguments", "until"), [({}, 11), ({"args_fingerprint": "aa"}, 0)])
def test_a_cut_raises_the_versions_of_the_days_it_changes(
    engine: Engine, arguments: dict[str, str], until: int
) -> None:
    """What readers keep of other days stays kept, but for what was executed before it went."""
    for day in range(15, 0, -1):
        for place, make in enumerate((failure, success)):
            at = _ago(day) + place * SECOND_US
            _store(engine, make("search", session_id="main", at=at, **arguments), at=at)

    def versions() -> dict[int, int]:
        with read_connection(engine) as conn:
            found: Counter[int] = Counter()
            for row in conn.execute(select(quarter_version)):
                found[row.starts_at // DAY_US * DAY_US] += row.version
            return found

    before = versions()
    assert prune(engine, days=10, clock=lambda: NOW).calls == 8
    after = versions()

    raised = {day for day in after if after[day] != before.get(day)}
    assert raised == {_ago(day) // DAY_US * DAY_US for day in range(15, until, -1)}


def _random_history(generator: random.Random) -> list[tuple[float, list[dict[str, Any]]]]:
    """Return batches with how many days ago they came: conversations that begin, go on, end."""
    names = [f"c{number}" for number in range(12)]
    batches = []
    for days_ago in sorted((generator.uniform(0, 40) for _ in range(30)), reverse=True):
        at = _ago(days_ago)
        events: list[dict[str, Any]] = []
        for _ in range(generator.randrange(1, 8)):
            session = generator.choice([None, "always", *names[: 1 + int(12 - days_ago * 0.3)]])
            make = generator.choice([failure, failure, success])
            event = make(
                generator.choice("tu"),
                session_id=session,
                at=at - generator.choice([0, MINUTE_US, generator.randrange(DAY_US)]),
                event_id=event_id(generator),
                turn=generator.choice([..., "t1", "t2"]),
            )
            events.append(event)
        if generator.random() < 0.3:
            events.append(conversation_end(generator.choice([*names, "always"]), at=at))
        batches.append((days_ago, events))
    return batches


@pytest.mark.parametrize(
    ("database_url", "seed"),
    [
        ("sqlite", 0),
        pytest.param("sqlite", 1, marks=pytest.mark.long),
        pytest.param("postgresql", 0, marks=pytest.mark.postgres),
        pytest.param("postgresql", 1, marks=[pytest.mark.postgres, pytest.mark.long]),
        *(pytest.param("sqlite", seed, marks=pytest.mark.long) for seed in range(2, 40)),
        *(
            pytest.param("postgresql", seed, marks=[pytest.mark.postgres, pytest.mark.long])
            for seed in range(2, 40)
        ),
    ],
    indirect=["database_url"],
)
def test_whatever_came_is_cut_right(engine: Engine, seed: int) -> None:
    """Over random histories: counts stay right, what is young stays, and little that is old."""
    generator = random.Random(seed)
    history = _random_history(generator)
    for days_ago, events in history:
        _store(engine, *events, at=_ago(days_ago))
    for days in (25, 18, 12):
        if generator.random() < 0.5:
            late = generator.choice(history)[1]
            _store(engine, *late, at=NOW)
        before = _calls(engine)
        prune(engine, days=days, force=True, clock=lambda: NOW)
        left = _calls(engine)
        assert _right(engine)
        assert {row.id for row in before if row.received_at >= _ago(days)} <= {
            row.id for row in left
        }
        _assert_only_needed(engine, left, line=_ago(days), cut=_ago(days + 1))


def _assert_only_needed(engine: Engine, left: list[Any], *, line: int, cut: int) -> None:
    """Check that what is old is of a conversation that goes on, and below the cut is needed."""
    chains, talks = defaultdict(list), {}
    for row in left:
        chains[row.chain_id].append(row)
    with read_connection(engine) as conn:
        for talk in conn.execute(select(conversation)):
            talks[talk.session_id] = talk
    for row in left:
        if row.received_at >= line:
            continue
        talk = talks[row.session_id]
        assert talk.received_at >= line
        whole = [row] if row.chain_id is None else chains[row.chain_id]
        known_by = {at for at, *_ in talk.successes or ()}
        assert (
            row.received_at > cut
            or any(each.received_at >= line for each in whole)
            or any(each.occurred_at == talk.last_at for each in whole)
            or any(each.success and each.started_at in known_by for each in whole)
        )
