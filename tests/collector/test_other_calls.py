"""Calls of other tools that a chain cost: what counts, whatever comes late, and at which price."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, select, update
from tests.collector.test_late_calls import Work
from tests.engines import POSTGRESQL_IS_LONG
from tests.factories import failure, success

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import SECOND_US, now_us
from toolfault_collector.doctor.recount import recount
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.rollups import HOUR_US
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import chain

# An hour that is over: what is written to a quarter of a day more is no cost of the calls.
BEGAN = (now_us() // HOUR_US - 1) * HOUR_US


def _call(tool: str, at: float, *, ok: bool = True, **members: Any) -> dict[str, Any]:
    """A call that began *at* so many seconds and took half of one."""
    rest = {"at": BEGAN + round((at + 0.5) * SECOND_US), "duration_ms": 500.0, "seq": 0, **members}
    return success(tool, **rest) if ok else failure(tool, **rest)


def _stored(engine: Engine, *batches: list[dict[str, Any]]) -> dict[str, int]:
    """The other calls of the chains of each tool, after *batches* came one by one."""
    found = _stored_of(engine, "demo", *batches)
    assert recount(engine).right
    return found


def _stored_of(engine: Engine, project: str, *batches: list[dict[str, Any]]) -> dict[str, int]:
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, project)
        for batch in batches:
            store_events(conn, project_id, batch, received_at=now_us())
    with read_connection(engine) as conn:
        asked = select(chain.c.tool, chain.c.other_calls).where(chain.c.project_id == project_id)
        found = conn.execute(asked.order_by(chain.c.started_at))
        return {row.tool: row.other_calls for row in found}


EDITED = [
    _call("Edit", 0, ok=False),
    _call("Read", 1),
    _call("Bash", 2, ok=False),
    _call("Edit", 3),
    _call("Read", 4),
]


# By name: the events, and how many calls of other tools the chain of Edit cost.
CASES: dict[str, tuple[list[dict[str, Any]], int]] = {
    "between, and not behind the end": (EDITED, 2),
    "abandoned": ([_call("Edit", 0, ok=False), _call("Bash", 1, ok=False)], 0),
    "up to what replaced it": (
        [
            _call("Edit", 0, ok=False),
            _call("Read", 1, ok=False),
            _call("Edit", 2, ok=False),
            _call("Bash", 3, ok=False),
            _call("Write", 4),
            _call("Write", 5),
        ],
        3,
    ),
    "not of the turn of the first failure": (
        [
            _call("Edit", 0, ok=False, turn="a"),
            _call("Read", 0.1, turn="a"),
            _call("Read", 1, turn="b"),
            _call("Edit", 2, turn="c"),
        ],
        1,
    ),
    "not begun before the first failure ended": (
        [_call("Edit", 0, ok=False), _call("Read", 0.2), _call("Read", 1), _call("Edit", 2)],
        1,
    ),
    "twenty at most": (
        [
            _call("Edit", 0, ok=False),
            *[_call("Read", place) for place in range(1, 30)],
            _call("Edit", 30),
        ],
        20,
    ),
    "twenty at most before what replaced it": (
        [
            _call("Edit", 0, ok=False),
            *[_call("Read", place, ok=False) for place in range(1, 30)],
            _call("Write", 30),
        ],
        20,
    ),
    "up to what replaced it, though that is of the turn of the first failure": (
        [
            _call("Edit", 0, ok=False, turn="a"),
            _call("Edit", 1, ok=False, turn="b"),
            _call("Read", 1.6, ok=False, turn="c"),
            _call("Write", 2, turn="a"),
            _call("Bash", 3, turn="c"),
        ],
        1,
    ),
    "up to what replaced it, where the turn of the last failure is unknown": (
        [
            _call("Edit", 0, ok=False, turn="a"),
            _call("Edit", 1, ok=False),
            _call("Write", 2, turn="a"),
            _call("Bash", 3),
        ],
        0,
    ),
    "none of twenty after what replaced it": (
        [
            _call("Edit", 0, ok=False, turn="a"),
            _call("Edit", 1, ok=False, turn="b"),
            *[_call("Read", 2 + place, ok=False, turn="c") for place in range(20)],
            _call("Write", 1.6, turn="a"),
        ],
        0,
    ),
}


@POSTGRESQL_IS_LONG
def test_what_counts(engine: Engine) -> None:
    """Calls of other tools count from the first failure to the end of its chain, together or late.

    Each event comes in a batch of its own, the last one first.
    """
    found = {
        name: _stored_of(engine, name, *[[each] for each in reversed(events)])["Edit"]
        for name, (events, _) in CASES.items()
    }
    assert found == {name: others for name, (_, others) in CASES.items()}
    assert recount(engine).right


@POSTGRESQL_IS_LONG
def test_a_conversation_in_one_batch(engine: Engine) -> None:
    """What comes as one batch is counted like what comes call by call."""
    assert _stored(engine, EDITED)["Edit"] == 2


@POSTGRESQL_IS_LONG
def test_a_late_call_counts_in_a_chain_that_is_over(engine: Engine) -> None:
    """A call that arrives after the chain around it has recovered is added to it."""
    first, late, *rest = EDITED
    assert _stored(engine, [first, *rest], [late])["Edit"] == 2


@POSTGRESQL_IS_LONG
def test_a_late_retry_moves_the_end(engine: Engine) -> None:
    """A success that arrives late ends its chain earlier, and what came after counts no more."""
    assert _stored(engine, EDITED, [_call("Edit", 1.6)])["Edit"] == 1


def test_damage_is_found_and_repaired(engine: Engine) -> None:
    """A wrong number is found by a recount, and written anew."""
    _stored(engine, EDITED)
    with write_transaction(engine) as conn:
        conn.execute(update(chain).values(other_calls=7))
    assert recount(engine).wrong_other_calls == 2
    assert recount(engine, repair=True).wrong_other_calls == 2
    assert recount(engine).right


@POSTGRESQL_IS_LONG
def test_a_call_costs_a_fixed_number(engine: Engine) -> None:
    """A call, late or not, reads as much in a conversation of 400 calls as in one of 100."""
    work = []
    for size in (100, 400):
        session = f"{size:04}"
        chains = [
            _call("Edit", place, ok=place % 10 == 9, session_id=session) for place in range(size)
        ]
        others = [_call("Read", place + 0.5, session_id=session) for place in range(size)]
        late = [_call("Bash", place, session_id=session) for place in (size / 2 + 0.7, size + 1)]
        with write_transaction(engine) as conn:
            project = ensure_project(conn, session)
            for low in range(0, size, 500):
                batch = [*chains[low : low + 500], *others[low : low + 500]]
                store_events(conn, project, batch, received_at=now_us())
            with Work(engine, conn) as counted:
                store_events(conn, project, late, received_at=now_us())
        work.append(counted)

    short, long = work
    assert short.statements == long.statements
    assert long.steps == pytest.approx(short.steps, rel=0.02)
