"""Every way in which a few calls can come stores the same chains.

Where many calls are drawn, few of them meet: the same turn, a chain opened behind one that ended.
Here all are made within some seconds, of one tool for the most part, and each set of them comes in
many ways at once, each way in a conversation of its own.
"""

from __future__ import annotations

import functools
import itertools
import random
import uuid
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, Table, select
from tests.collector.naive_chains import chains_of
from tests.factories import failure, success

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.chains import fold as chains
from toolfault_collector.chains.fold import Call
from toolfault_collector.clock import SECOND_US, now_us
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import chain, conversation, tool_call

# All ways there are of four calls; of more, so many are drawn.
WAYS = 75
BEGAN = now_us() - 600 * SECOND_US

_examples = itertools.count(1)

few_calls = st.lists(
    st.fixed_dictionaries(
        {
            "tool": st.sampled_from(["t", "t", "t", "u"]),
            "ok": st.booleans(),
            "turn": st.sampled_from([None, "a", "b"]),
            "start": st.integers(0, 4),
            "length": st.integers(0, 2),
            "seq": st.integers(0, 1),
            "field": st.sampled_from(["url", "port"]),
        }
    ),
    min_size=2,
    max_size=6,
)


@functools.cache
def _all_ways(calls: int) -> list[tuple[int, ...]]:
    """The batch in which each of so many calls comes, in every way there is."""
    return [
        batches
        for batches in itertools.product(range(calls), repeat=calls)
        if set(batches) == set(range(max(batches) + 1))
    ]


def _ways(calls: int, generator: random.Random) -> list[tuple[int, ...]]:
    every = _all_ways(calls)
    return every if len(every) <= WAYS else generator.sample(every, WAYS)


def _event(drawn: dict[str, Any], session: str, number: int, place: int) -> dict[str, Any]:
    members: dict[str, Any] = {} if drawn["ok"] else {"field": drawn["field"]}
    return (success if drawn["ok"] else failure)(
        drawn["tool"],
        session_id=session,
        at=BEGAN + (drawn["start"] + drawn["length"]) * SECOND_US,
        seq=drawn["seq"],
        turn=drawn["turn"],
        duration_ms=drawn["length"] * 1_000.0,
        # Where two calls begin alike the ids decide, which are in the same order in every way.
        event_id=str(uuid.UUID(int=number * 256 + place)),
        **members,
    )


def _place(event_id: str | None) -> int | None:
    return None if event_id is None else uuid.UUID(event_id).int % 256


def _stored(conn: Connection, sessions: Sequence[str]) -> dict[str, list[str]]:
    """Everything stored of each of *sessions*, comparable with another's."""
    ids = {"chain_id", "last_event_id", "event_id"}
    left_out = {"id", "project_id", "session_id", "received_at", "message_id", "signature_id"}
    found: dict[str, list[str]] = defaultdict(list)
    for table in (tool_call, chain, conversation):
        for row in conn.execute(_of(table, sessions)).mappings():
            shown: dict[str, Any] = {
                name: _place(value) if name in ids else value
                for name, value in row.items()
                if name not in left_out | {"first_message_id"}
            }
            if (shown.get("state") or {}).get("beside"):
                *beside, event_id = shown["state"]["beside"]
                shown["state"] = {**shown["state"], "beside": [*beside, _place(event_id)]}
            found[row["session_id"]].append(f"{table.name} {shown}")
    return {session: sorted(rows) for session, rows in found.items()}


def _of(table: Table, sessions: Sequence[str]) -> Any:
    return select(table).where(table.c.project_id == 1, table.c.session_id.in_(sessions))


def _naive(drawn: Sequence[dict[str, Any]], look_back: int) -> list[tuple[int | None, ...]]:
    """Place, chain and attempt of each call that is in a chain."""
    by_tool: dict[str, list[Call]] = defaultdict(list)
    for place, one in enumerate(drawn):
        began = BEGAN + one["start"] * SECOND_US
        ended = began + one["length"] * SECOND_US
        event_id = str(uuid.UUID(int=place))
        call = Call(event_id, began, ended, one["seq"], one["turn"], one["ok"])
        by_tool[one["tool"]].append(call)
    return sorted(
        (_place(member.event_id), _place(each.failures[0].event_id), min(attempt, look_back + 1))
        for calls in by_tool.values()
        for each in chains_of(calls, look_back=look_back)
        for attempt, member in enumerate(each.members, start=1)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database_url", "look_back", "examples"),
    [
        ("sqlite", chains.LOOK_BACK, 6),
        ("sqlite", 1, 3),
        pytest.param(
            "sqlite",
            chains.LOOK_BACK,
            600,
            marks=[pytest.mark.long, pytest.mark.timeout(3_600)],
        ),
        pytest.param(
            "postgresql",
            chains.LOOK_BACK,
            200,
            marks=[pytest.mark.long, pytest.mark.timeout(3_600), pytest.mark.postgres],
        ),
    ],
    indirect=["database_url"],
)
def test_few_calls_come_in_every_way(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, look_back: int, examples: int
) -> None:
    """However a few calls are batched and ordered, their chains are those of a naive reading.

    With a memory of one failure a chain forgets what was parallel to it, in every way alike.
    """
    monkeypatch.setattr(chains, "LOOK_BACK", look_back)

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(drawn=few_calls, seed=st.integers(0, 2**32))
    def explore(drawn: list[dict[str, Any]], seed: int) -> None:
        generator = random.Random(seed)
        ways = {f"c{next(_examples)}": way for way in _ways(len(drawn), generator)}
        arriving: list[list[dict[str, Any]]] = [[] for _ in drawn]
        for session, way in ways.items():
            for place, (one, batch) in enumerate(zip(drawn, way, strict=True)):
                arriving[batch].append(_event(one, session, int(session[1:]), place))
        with write_transaction(engine) as conn:
            assert ensure_project(conn, "demo") == 1
            for events in arriving:
                generator.shuffle(events)
                receipt = store_events(conn, 1, events, received_at=now_us())
                assert receipt.accepted == len(events)
        with read_connection(engine) as conn:
            stored = _stored(conn, list(ways))
            placed: dict[str, list[Any]] = {session: [] for session in ways}
            for row in conn.execute(_of(tool_call, list(ways))):
                if row.chain_id is not None:
                    found = (_place(row.event_id), _place(row.chain_id), row.attempt)
                    placed[row.session_id].append(found)

        by_content = {repr(rows): ways[session] for session, rows in stored.items()}
        assert len(by_content) == 1, by_content
        wanted = _naive(drawn, look_back)
        assert {ways[each] for each in placed if sorted(placed[each]) != wanted} == set()

    explore()
