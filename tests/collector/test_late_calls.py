"""Calls that come late into long chains: the same chains as in order, for a fixed number of calls.

With a small `LOOK_BACK` chains of some dozen calls are long ones: most of such a chain lies before
or behind the window that a late call is folded in.
"""

from __future__ import annotations

import itertools
import sqlite3
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, event, select
from tests.collector.naive_chains import chains_of
from tests.engines import POSTGRESQL_IS_LONG
from tests.factories import failure, success

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.chains import fold as chains
from toolfault_collector.chains.fold import LOOK_BACK, Place, fold
from toolfault_collector.clock import SECOND_US, now_us
from toolfault_collector.doctor.recount import recount
from toolfault_collector.storage.chains.chain_rows import (
    ChainKey,
    StoredCall,
    chain_row,
    stored_calls,
    stored_chain_rows,
)
from toolfault_collector.storage.chains.conversations import select_conversations
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_collector.storage.rollups import HOUR_US
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import chain

# All calls are of one hour, since some counts are by hour and some by day.
BEGAN = (now_us() // HOUR_US - 1) * HOUR_US
FIRST = (-(2**62), 0, "")

_sessions = itertools.count(1)

# Most calls fail; turns are unknown, of their own, shared with a neighbour, or cross.
members = st.fixed_dictionaries(
    {
        "ok": st.sampled_from([False] * 6 + [True]),
        "turn": st.sampled_from([None, 0, 0, 0, 1, 2, -3]),
        "apart": st.sampled_from([0, 1, 1, 1, 2]),
        "length": st.sampled_from([0, 0, 0, 1, 4, 9]),
        "seq": st.integers(0, 1),
        "fields": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
        "args": st.sampled_from([None, "x", "y", "z"]),
        "tokens": st.sampled_from([None, 0, 7]),
    }
)
Drawn = list[dict[str, Any]]


def _events(drawn: Drawn, session: str) -> list[dict[str, Any]]:
    """The events of *drawn*, in the order of their starts."""
    events, start = [], BEGAN
    for place, one in enumerate(drawn):
        start += one["apart"] * SECOND_US
        rest: dict[str, Any] = {
            "session_id": session,
            "at": start + one["length"] * SECOND_US,
            "duration_ms": one["length"] * 1_000.0,
            "seq": one["seq"],
            "turn": None if one["turn"] is None else f"t{place - one['turn']}",
            "args_fingerprint": one["args"],
            "tokens": one["tokens"],
            "event_id": str(uuid.UUID(int=place)),
        }
        if one["ok"]:
            events.append(success("t", **rest))
        else:
            issues = [{"field": name, "code": "wrong_type"} for name in one["fields"]]
            events.append(failure("t", error={"issues": issues}, **rest))
    return events


def _compare(conn: Connection, key: ChainKey, look_back: int) -> list[StoredCall]:
    """Everything stored of *key* is what folding its calls from the first one on gives."""
    known = list(stored_calls(conn, key, after=FIRST))
    folded = fold([each.call for each in known])
    places = {call.event_id: place for one in folded for call, place in one.members}
    found = {each.call.event_id: each.place for each in known}
    assert found == {name: places.get(name, Place()) for name in found}
    talk = select_conversations(conn, {key[:2]}, lock=False)[key[:2]]
    for one in folded:
        talk.settle(key[2], one)
    wanted = {one.chain_id: chain_row(key, one) for one in folded}
    assert stored_chain_rows(conn, key) == wanted
    naive = chains_of([each.call for each in known], look_back=look_back)
    assert [[call.event_id for call, _ in one.members] for one in folded] == [
        [call.event_id for call in one.members] for one in naive
    ]
    assert [one.round_trips for one in folded] == [len(one.round_trips) for one in naive]
    return known


def _batches(
    events: Sequence[dict[str, Any]], late: Iterable[int], cuts: Iterable[int]
) -> list[list[dict[str, Any]]]:
    """Two batches of all but the *late* ones, in order, then these in batches divided at *cuts*."""
    places = [place % len(events) for place in dict.fromkeys(late)]
    places = list(dict.fromkeys(places))
    in_order = [event for place, event in enumerate(events) if place not in places]
    after = [events[place] for place in places]
    bounds = [0, *sorted({cut % (len(after) + 1) for cut in cuts}), len(after)]
    half = len(in_order) // 2
    batches = [
        in_order[:half],
        in_order[half:],
        *(after[low:high] for low, high in itertools.pairwise(bounds)),
    ]
    return [batch for batch in batches if batch]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database_url", "examples"),
    [
        ("sqlite", 25),
        pytest.param("postgresql", 5, marks=pytest.mark.postgres),
        pytest.param("sqlite", 2_000, marks=[pytest.mark.long, pytest.mark.timeout(7_200)]),
        pytest.param(
            "postgresql",
            200,
            marks=[pytest.mark.long, pytest.mark.timeout(7_200), pytest.mark.postgres],
        ),
    ],
    indirect=["database_url"],
)
def test_late_calls_of_long_chains_give_the_same_chains(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, examples: int
) -> None:
    """However some calls of long chains come late, what is stored is the fold of all calls."""

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        drawn=st.lists(members, min_size=8, max_size=60),
        late=st.lists(st.integers(0, 59), min_size=1, max_size=8),
        cuts=st.lists(st.integers(0, 8), max_size=8),
        look_back=st.integers(1, 5),
    )
    def explore(drawn: Drawn, late: list[int], cuts: list[int], look_back: int) -> None:
        monkeypatch.setattr(chains, "LOOK_BACK", look_back)
        session = f"c{next(_sessions)}"
        events = _events(drawn, session)
        with write_transaction(engine) as conn:
            project = ensure_project(conn, session)
            for batch in _batches(events, late, cuts):
                store_events(conn, project, batch, received_at=now_us())
                _compare(conn, (project, session, "t"), look_back)
            stored = _compare(conn, (project, session, "t"), look_back)
        assert len(stored) == len(events)

    explore()


def _long_chain(session: str, size: int) -> list[dict[str, Any]]:
    """Failures a second apart, of a turn each; the n-th ends after n seconds."""
    return [_call(session, place) for place in range(size)]


def _call(session: str, place: float, *, ok: bool = False, **members: Any) -> dict[str, Any]:
    at = BEGAN + round((place + 1) * SECOND_US)
    rest = {"turn": f"t{place}", "duration_ms": 100.0, "args_fingerprint": "same", **members}
    number = round((place + 1) * 100)
    rest |= {"session_id": session, "at": at, "event_id": str(uuid.UUID(int=number))}
    return success("t", **rest) if ok else failure("t", **rest)


SIZE = 4 * LOOK_BACK


# What comes late, and how many calls the chains have then.
LATE: dict[str, tuple[list[dict[str, Any]], list[int]]] = {
    "failure at the front": ([{"place": 0.5}], [SIZE + 1]),
    "failure in the middle": ([{"place": SIZE / 2 + 0.5}], [SIZE + 1]),
    "failure near the end": ([{"place": SIZE - 5.5}], [SIZE + 1]),
    "failure before the first": ([{"place": -0.5}], [SIZE + 1]),
    "two failures far apart": ([{"place": 3.5}, {"place": 99.5}], [SIZE + 2]),
    "success at the front": ([{"place": 0.5, "ok": True}], [2, SIZE - 1]),
    "success in the middle": ([{"place": 99.5, "ok": True}], [101, SIZE - 100]),
    "success near the end": ([{"place": SIZE - 1.5, "ok": True}], [SIZE, 1]),
    "success at the end": ([{"place": SIZE + 1, "ok": True}], [SIZE + 1]),
    "failure beside the success that divided": (
        [{"place": 99.5, "ok": True}, {"place": 98.5, "turn": "t99.5"}],
        [SIZE + 1],
    ),
    "success beside a failure that is remembered": (
        [{"place": 99.5, "ok": True, "turn": "t50"}, {"place": 98.5}],
        [SIZE + 1],
    ),
    "success beside a failure that is forgotten then": (
        [{"place": 99.5, "ok": True, "turn": f"t{100 - LOOK_BACK}"}, {"place": 98.5}],
        [102, SIZE - 100],
    ),
}


@POSTGRESQL_IS_LONG
def test_a_late_call_in_a_long_chain(engine: Engine) -> None:
    """Wherever a call comes late in a long chain, its chains and their calls are the true ones."""
    for name, (late, calls) in LATE.items():
        with write_transaction(engine) as conn:
            project = ensure_project(conn, name)
            for batch in (_long_chain("c", SIZE), *([_call("c", **each)] for each in late)):
                store_events(conn, project, batch, received_at=now_us())
            _compare(conn, (project, "c", "t"), LOOK_BACK)
            of_project = select(chain.c.calls).where(chain.c.project_id == project)
            found = list(conn.execute(of_project.order_by(chain.c.started_at)).scalars())
            assert found == calls, name

    assert recount(engine).right


class Work:
    """What statements read and write: SQLite's own steps, or the rows of PostgreSQL.

    Attributes:
        statements: How many were sent.
        steps: Instructions of SQLite's machine, or rows returned and changed.
    """

    def __init__(self, engine: Engine, conn: Connection) -> None:
        self.statements = self.steps = 0
        self._engine, self._driver = engine, conn.connection.driver_connection

    def __enter__(self) -> Work:
        if isinstance(self._driver, sqlite3.Connection):
            self._driver.set_progress_handler(self._step, 1)
            self._driver.set_trace_callback(self._statement)
        else:
            event.listen(self._engine, "after_cursor_execute", self._executed)
        return self

    def __exit__(self, *_: object) -> None:
        if isinstance(self._driver, sqlite3.Connection):
            self._driver.set_progress_handler(None, 0)
            self._driver.set_trace_callback(None)
        else:
            event.remove(self._engine, "after_cursor_execute", self._executed)

    def _step(self) -> int:
        self.steps += 1
        return 0

    def _statement(self, _sql: str) -> None:
        self.statements += 1

    def _executed(self, _conn: object, cursor: Any, *_: object) -> None:
        self.statements += 1
        self.steps += cursor.rowcount


@POSTGRESQL_IS_LONG
def test_a_late_call_costs_a_fixed_number(engine: Engine) -> None:
    """A late call reads and writes as much in a chain of 1,000 calls as in one of 200."""
    work: dict[str, list[Work]] = defaultdict(list)
    for size in (200, 1_000):
        session = f"{size:04}"
        with write_transaction(engine) as conn:
            project = ensure_project(conn, session)
            store_events(conn, project, _long_chain(session, size), received_at=now_us())
            places: dict[str, dict[str, Any]] = {
                "failure at the front": {"place": 0.5},
                "failure in the middle": {"place": 99.5},
                "failure near the end": {"place": size - 5.5},
                "success that is parallel": {"place": 0.5, "ok": True, "turn": "t0"},
                "success near the end": {"place": size - 5.5, "ok": True},
            }
            for name, late in places.items():
                arriving = _call(session, **late)
                with conn.begin_nested() as alone:
                    with Work(engine, conn) as counted:
                        store_events(conn, project, [arriving], received_at=now_us())
                    alone.rollback()
                work[name].append(counted)

    for name, (short, long) in work.items():
        assert short.statements == long.statements, name
        # SQLite takes a step or two more to find its way where a page is full.
        assert long.steps == pytest.approx(short.steps, rel=0.01), name


@pytest.mark.parametrize("ok", [False, True], ids=["failure before", "success at the front"])
@POSTGRESQL_IS_LONG
def test_another_id_is_written_by_one_statement(engine: Engine, *, ok: bool) -> None:
    """A late call that gives its chain another first failure needs no more statements for it."""
    statements = []
    for size in (100, 400):
        session = f"{size:04}"
        with write_transaction(engine) as conn:
            project = ensure_project(conn, session)
            store_events(conn, project, _long_chain(session, size), received_at=now_us())
            late = _call(session, 0.5 if ok else -0.5, ok=ok)
            with Work(engine, conn) as counted:
                store_events(conn, project, [late], received_at=now_us())
        statements.append(counted.statements)

    assert statements[0] == statements[1]
