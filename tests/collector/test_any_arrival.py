"""Whatever way the same events come, the same is stored: a machine that tries ways to break that.

Two databases are given the same events. One gets each once, in order, in one batch at the end; the
other gets them as they come: permuted, split, repeated, late, mixed with resends, through two
writers that remember different things.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy import Engine, select
from tests.factories import change, conversation_end, counts, event_id, failure, success, tool_error
from tests.tables import tables_of

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import MINUTE_US, SECOND_US, now_us
from toolfault_collector.doctor.recount import recount
from toolfault_collector.protocol.receipt import Receipt
from toolfault_collector.protocol.records import Context
from toolfault_collector.protocol.submission import read_events
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.name_limits import NameLimits
from toolfault_collector.storage.store import store_group
from toolfault_collector.storage.tables import (
    call_counts,
    chain,
    conversation,
    failure_counts,
    issue,
    message,
    signature,
    tool_call,
)
from toolfault_collector.storage.tables import change as changes
from toolfault_collector.storage.tables import conversation_end as ends

_projects = itertools.count()
BEGAN = now_us() - 3_600 * SECOND_US
NOW = now_us()

# Numbers of the database's own making, and what only says how it came to be.
_IGNORED = {
    tool_call: {"id", "project_id", "message_id", "signature_id"},
    issue: {"id", "project_id", "tool_call_id"},
    chain: {"id", "project_id", "first_message_id"},
    conversation: {"project_id"},
    ends: {"id", "project_id"},
    call_counts: {"id", "project_id"},
    failure_counts: {"project_id"},
    message: {"id", "project_id"},
    signature: {"id", "project_id"},
    changes: {"id", "project_id"},
}


def contents(engine: Engine, project_id: int) -> dict[str, list[str]]:
    """Everything stored of the project, comparable with another."""
    found = {}
    with read_connection(engine) as conn:
        for table, ignored in _IGNORED.items():
            columns = [column for column in table.c if column.name not in ignored]
            query = select(*columns).where(table.c.project_id == project_id)
            found[table.name] = sorted(map(repr, conn.execute(query)))
    return found


class AnyArrival(RuleBasedStateMachine):
    """Events are made, and arrive in whatever way."""

    engine: Engine

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        """Make a project, and what will never be sent in order."""
        self.generator = random.Random(seed)
        self.number = next(_projects)
        self.made: list[dict[str, Any]] = []
        self.waiting: list[dict[str, Any]] = []
        self.arrived: list[dict[str, Any]] = []
        self.writers = [NameLimits() for _ in range(2)]
        with write_transaction(self.engine) as conn:
            self.project_id = ensure_project(conn, f"as they come {self.number}")

    @rule(
        tool=st.sampled_from(["t", "t", "u"]),
        session=st.sampled_from(["c1", "c1", "c2", None]),
        kind=st.sampled_from([failure, failure, success, tool_error]),
        start=st.integers(0, 6),
        length=st.integers(0, 2),
        turn=st.sampled_from([None, "a", "b"]),
        field=st.sampled_from([None, "url", "port"]),
        rate=st.sampled_from([1.0, 1.0, 0.3]),
    )
    def call(
        self, tool: str, session: str | None, kind: Any, start: int, length: int, **more: Any
    ) -> None:
        """A call happens; it is not sent yet."""
        members: dict[str, Any] = {"turn": more["turn"]} if more["turn"] else {}
        if kind is not success:
            members["field"] = more["field"]
        self._make(
            kind(
                tool,
                session_id=session,
                at=BEGAN + (start + length) * SECOND_US,
                seq=len(self.made),
                duration_ms=length * 1_000.0,
                sample_rate=more["rate"],
                **members,
            )
        )

    @rule(minute=st.integers(0, 3), tool=st.sampled_from(["t", "u", None]))
    def fold(self, minute: int, tool: str | None) -> None:
        """An agent counts its successes of a minute."""
        self._make(counts(tool, at=BEGAN + minute * MINUTE_US))

    @rule(session=st.sampled_from(["c1", "c2", "c3"]), at=st.integers(0, 9))
    def end(self, session: str, at: int) -> None:
        """A conversation ends, perhaps before its last call, perhaps more than once."""
        self._make(conversation_end(session, at=BEGAN + at * SECOND_US, calls={"t": 2, "u": 1}))

    @rule(at=st.integers(0, 45))
    def mark(self, at: int) -> None:
        """Somebody records a change."""
        self._make(change(at=BEGAN + at * SECOND_US))

    @rule(size=st.integers(1, 6), resent=st.integers(0, 4), writer=st.integers(0, 1))
    def deliver(self, size: int, resent: int, writer: int) -> None:
        """Some of what waits arrives in any order, with some that has arrived before."""
        self.generator.shuffle(self.waiting)
        new, self.waiting = self.waiting[:size], self.waiting[size:]
        again = self.generator.sample(self.arrived, min(resent, len(self.arrived)))
        twice = new[:1] if resent == 4 else []
        batch = [*new, *again, *twice]
        self.generator.shuffle(batch)
        receipt = self._store(self.project_id, batch, writer)
        assert receipt.accepted == len(new)
        assert receipt.duplicate == len(again) + len(twice)
        assert receipt.rejected == []
        self.arrived += new

    @rule(writer=st.integers(0, 1))
    def lose_the_answer(self, writer: int) -> None:
        """Everything that arrived is sent again by an agent that heard no answer."""
        receipt = self._store(self.project_id, self.arrived, writer)
        assert (receipt.accepted, receipt.duplicate) == (0, len(self.arrived))

    @rule(writer=st.integers(0, 1))
    def restart(self, writer: int) -> None:
        """A collector starts again and remembers nothing."""
        self.writers[writer] = NameLimits()

    @invariant()
    def counts_of_what_arrived_hold(self) -> None:
        """At any moment the aggregates are those of the rows."""
        if self.generator.random() < 0.2:
            assert recount(self.engine).right

    def teardown(self) -> None:
        """Let the rest arrive, and compare with events that came once and in order."""
        if not hasattr(self, "made"):
            return
        self._store(self.project_id, self.waiting, 0)
        with write_transaction(self.engine) as conn:
            together = ensure_project(conn, f"in order {self.number}")
        self._store(together, self.made, 1)

        assert contents(self.engine, self.project_id) == contents(self.engine, together)
        assert recount(self.engine).right
        # The next example begins with nothing, also no projects: maintenance looks at each.
        with write_transaction(self.engine) as conn:
            for table in reversed(tables_of(conn)):
                conn.execute(table.delete())

    def _make(self, event: dict[str, Any]) -> None:
        event["event_id"] = event_id(self.generator)
        self.made.append(event)
        self.waiting.append(event)

    def _store(self, project_id: int, events: list[dict[str, Any]], writer: int) -> Receipt:
        batch = read_events(events, Context(project_id, NOW))
        with write_transaction(self.engine) as conn:
            return store_group(conn, [batch], limits=self.writers[writer]).receipts[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database_url", "examples"),
    [
        ("sqlite", 6),
        pytest.param("postgresql", 1, marks=pytest.mark.postgres),
        pytest.param("sqlite", 300, marks=[pytest.mark.long, pytest.mark.timeout(3_600)]),
        pytest.param(
            "postgresql",
            300,
            marks=[pytest.mark.long, pytest.mark.timeout(3_600), pytest.mark.postgres],
        ),
    ],
    indirect=["database_url"],
)
def test_any_arrival_stores_the_same(engine: Engine, examples: int) -> None:
    """Any permutation, split, repetition and interleaving gives identical tables and aggregates."""

    class Machine(AnyArrival):
        """The machine on one engine."""

    Machine.engine = engine
    Machine.TestCase.settings = settings(
        max_examples=examples,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    Machine.TestCase().runTest()
