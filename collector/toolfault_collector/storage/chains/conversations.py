"""Conversations: what is known of a session beyond its single calls, kept at constant cost.

What a chain without a success comes to is decided here: its conversation knows when it is over, and
whether another tool succeeded. It is stored with the chain, by every transaction that changes the
conversation, so that a reader compares a chain's own columns with the time.
"""

# ruff: noqa: S608 - only names of this code are put into statements, values are bound

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, Final, Protocol

import msgspec
from sqlalchemy import Connection, Row, select

from toolfault_collector.chains.fold import (
    IDLE_US,
    Chain,
    Success,
    Unresolved,
    switches,
)
from toolfault_collector.protocol.ladder import EXPLICIT, NONE, better_rung, rung_of
from toolfault_collector.protocol.records import CallRecord, EndRecord
from toolfault_collector.storage.database.bulk import (
    columns,
    find_rows,
    select_in,
    update_rows,
    upsert_rows,
)
from toolfault_collector.storage.database.engine import is_sqlite
from toolfault_collector.storage.database.postgres import insert_arrays
from toolfault_collector.storage.tables import chain as chain_table
from toolfault_collector.storage.tables import conversation, conversation_end, tool_call

__all__ = [
    "Conversation",
    "ConversationKey",
    "count_conversation",
    "load_conversations",
    "select_conversations",
    "write_conversations",
]

ConversationKey = tuple[int, str]

# A conversation whose calls come from several sources counts as timed if any of them has times.
_TIME_SOURCES: Final = ("client", "server", "import", "none")


@dataclass(slots=True)
class Conversation:
    """One row of ``conversation``; the members up to ``received_at`` are its columns in order.

    Attributes:
        successes: Those of which one is after a chain, and of another tool, if any of all is; the
            newest first. At most six: see `add_success`.
    """

    project_id: int
    session_id: str
    first_at: int
    last_at: int
    ended_at: int | None = None
    end_event_id: str | None = None
    end_calls: dict[str, int] | None = None
    ends: int = 0
    successes: list[Success] = field(default_factory=list)
    time_source: str = "none"
    rung: str = NONE
    received_at: int = 0
    stored: bool = field(default=False, compare=False)

    def add_call(self, call: CallRecord | Row[Any]) -> None:
        """Take in a call: a new one, or the stored row of one."""
        self.add(
            call.started_at, call.occurred_at, received_at=call.received_at, source=call.time_source
        )
        self.add_rung(rung_of(call.conversation_rung, call.session_id, call.run_id))
        if call.success:
            self.add_success((call.started_at, call.seq, call.tool, call.turn))

    def add(self, started_at: int, occurred_at: int, *, received_at: int, source: str) -> None:
        """Take in that something happened, and whose the times are."""
        self.first_at = min(self.first_at, started_at)
        self.last_at = max(self.last_at, occurred_at)
        self.received_at = max(self.received_at, received_at)
        if _TIME_SOURCES.index(source) < _TIME_SOURCES.index(self.time_source):
            self.time_source = source

    def add_rung(self, of_call: str) -> None:
        """Take in what named the conversation to the sender of a call."""
        if self.rung != EXPLICIT:
            self.rung = better_rung(self.rung, of_call)

    def add_end(self, end: EndRecord | Row[Any]) -> None:
        """Take in an end: a new one, or the stored row of one; the calls of several add up."""
        at = end.occurred_at
        self.add(at, at, received_at=end.received_at, source="none")
        if (at, end.event_id) > (self.ended_at or 0, self.end_event_id or ""):
            self.ended_at, self.end_event_id = at, end.event_id
        known = Counter(self.end_calls or {})
        known.update(end.calls)
        self.end_calls = dict(sorted(known.items()))
        self.ends += 1

    def add_success(self, new: Success) -> None:
        """Keep, for any tool and turn of a chain, the newest success of another tool and turn.

        These are at most four (Bollobás's theorem on pairs of sets), and two whose turn is unknown.
        """
        known, self.successes = sorted({*self.successes, new}, key=_order, reverse=True), []
        for each in known:
            if _is_newest_for_some_chain(each, self.successes):
                self.successes.append(each)

    def settle(self, tool: str, chain: Chain) -> None:
        """Say what *chain*, of calls of *tool*, comes to, and from when on."""
        unresolved = None if chain.recovered else Unresolved(tool, *_LAST_OF(chain))
        found = ("recovered", 0) if unresolved is None else self.outcome_of(unresolved)
        chain.outcome, chain.settles_at = found

    def outcome_of(self, chain: Unresolved) -> tuple[str, int]:
        """Return what *chain* comes to, and when.

        It is over when the end was reported after the last call, half an hour after that call, or
        at once where the source has no times (a finished transcript).
        """
        ended = self.ended_at is not None and self.ended_at >= self.last_at
        over = ended or self.time_source == "none"
        settles_at = 0 if over else self.last_at + IDLE_US
        switched = any(switches(each, chain) for each in self.successes)
        return "switched" if switched else "abandoned", settles_at


def _is_newest_for_some_chain(success: Success, newer: Iterable[Success]) -> bool:
    """Return whether all *newer* are of a tool or of a turn that *success* is not of.

    Turns that are unknown are compared by time, so those successes do not stand for the others.
    """
    _, _, own_tool, own_turn = success
    alike = [(tool, turn) for _, _, tool, turn in newer if (turn is None) is (own_turn is None)]
    if not alike:
        return True
    # The first of them is of that tool or of that turn; so the others tell the turn, or the tool.
    first_tool, first_turn = alike[0]
    turns = {turn for tool, turn in alike if tool != first_tool}
    tools = {tool for tool, turn in alike if turn != first_turn}
    of_tool = own_tool != first_tool and own_turn not in turns and len(turns) <= 1
    return of_tool or (own_turn != first_turn and own_tool not in tools and len(tools) <= 1)


_COLUMNS: Final = tuple(member.name for member in fields(Conversation))[:-1]
_VALUES: Final = attrgetter(*_COLUMNS)
# What `Conversation.add_call` asks a call for.
_OF_CALL: Final = columns(
    "started_at occurred_at received_at time_source conversation_rung session_id run_id success seq"
    " tool turn"
)
_CALLS, _SUCCESSES = _COLUMNS.index("end_calls"), _COLUMNS.index("successes")
_KEY: Final = columns("project_id session_id")
_place: Final = attrgetter(*_KEY)
_LAST: Final = columns("last_started_at last_seq failed_until last_failure_turn")
_LAST_OF: Final = attrgetter(*_LAST)
_UNRESOLVED: Final = (
    f"SELECT session_id, id, outcome, settles_at, tool, {', '.join(_LAST)} FROM chain{{}}"
    " WHERE project_id = ? AND recovered_at IS NULL AND session_id IN ?"
)
_OUTCOME: Final = columns("id outcome settles_at")
_SET_OUTCOME: Final = "outcome = given.outcome, settles_at = given.settles_at"
# SQLite may choose an index of all chains of a conversation, of which most are resolved.
_BY_INDEX: Final = " INDEXED BY ix_chain_unresolved"


class _Member(Protocol):
    """What lies in a conversation."""

    @property
    def project_id(self) -> int: ...
    @property
    def session_id(self) -> str | None: ...
    @property
    def occurred_at(self) -> int: ...


def load_conversations(
    conn: Connection, members: Iterable[_Member]
) -> dict[ConversationKey, Conversation]:
    """Return the conversation of each of *members*, locked until the transaction ends.

    A conversation that is not ``stored`` had no row before, so it had no calls either. On
    PostgreSQL rows are made and locked in the order of their keys: two collectors that write the
    same conversations take turns and never wait for each other in a circle.
    """
    wanted: dict[ConversationKey, int] = {}
    for member in members:
        if member.session_id is not None:
            wanted.setdefault((member.project_id, member.session_id), member.occurred_at)
    found: dict[ConversationKey, Conversation] = {}
    if is_sqlite(conn):
        found = select_conversations(conn, wanted, lock=True)
    else:
        missing = wanted
        while missing:
            made = _make_rows(conn, missing)
            there = [key for key in missing if key not in made]
            found |= select_conversations(conn, there, lock=True)
            # Retention may remove a row that was there before it can be locked.
            missing = {key: wanted[key] for key in there if key not in found}
    for (project_id, session_id), at in wanted.items():
        key = (project_id, session_id)
        if key not in found:
            found[key] = Conversation(project_id, session_id, at, at)
    return found


def write_conversations(conn: Connection, conversations: Iterable[Conversation]) -> list[int]:
    """Write *conversations* as they are now, and what their chains in the database come to.

    A conversation that is not ``stored`` has no chain but those of this transaction, which came to
    something as they were written.

    Returns:
        The row ids of the chains whose outcome is another one now.
    """
    stored: defaultdict[int, dict[str, Conversation]] = defaultdict(dict)
    rows = []
    for each in sorted(conversations, key=_place):
        rows.append(_row(each))
        if each.stored:
            stored[each.project_id][each.session_id] = each
    upsert_rows(conn, conversation, _COLUMNS, key=_KEY, rows=rows)
    changed: list[tuple[int, str, int]] = []
    other_outcome: list[int] = []
    for project_id, known in stored.items():
        sql = _UNRESOLVED.format(_BY_INDEX if is_sqlite(conn) else "")
        unresolved = select_in(conn, sql, fixed=(project_id,), among=known)
        for session_id, chain_id, outcome, settles_at, *of_chain in unresolved:
            now = known[session_id].outcome_of(Unresolved(*of_chain))
            if now != (outcome, settles_at):
                changed.append((chain_id, *now))
            if now[0] != outcome:
                other_outcome.append(chain_id)
    update_rows(conn, chain_table, _OUTCOME, change=_SET_OUTCOME, rows=sorted(changed))
    return other_outcome


def _make_rows(conn: Connection, wanted: dict[ConversationKey, int]) -> set[ConversationKey]:
    made = insert_arrays(
        conn,
        conversation,
        columns("project_id session_id first_at last_at time_source"),
        rows=[(*key, wanted[key], wanted[key], "none") for key in sorted(wanted)],
        conflict="ON CONFLICT DO NOTHING",
        returning="project_id, session_id",
    )
    return {(row[0], row[1]) for row in made}


def select_conversations(
    conn: Connection, wanted: Iterable[ConversationKey], *, lock: bool
) -> dict[ConversationKey, Conversation]:
    """Return the stored conversations among *wanted*; with *lock* PostgreSQL locks them."""
    found = {}
    for row in find_rows(
        conn, conversation, _COLUMNS, key="session_id", among=sorted(wanted), lock=lock
    ):
        values = dict(zip(_COLUMNS, row, strict=True))
        values["end_calls"] = _object(values["end_calls"])
        values["successes"] = [tuple(success) for success in _object(values["successes"]) or ()]
        each = Conversation(**values, stored=True)
        found[each.project_id, each.session_id] = each
    return found


def count_conversation(conn: Connection, key: ConversationKey) -> Conversation | None:
    """Return the conversation *key* as its calls and ends say it is; None if it has neither."""
    project_id, session_id = key
    counted = Conversation(project_id, session_id, 2**62, 0)
    call, end = tool_call.c, conversation_end.c
    calls = select(*(call[name] for name in _OF_CALL))
    calls = calls.where(call.project_id == project_id, call.session_id == session_id)
    for row in conn.execute(calls):
        counted.add_call(row)
    ends = select(conversation_end)
    ends = ends.where(end.project_id == project_id, end.session_id == session_id)
    for row in conn.execute(ends):
        counted.add_end(row)
    return counted if counted.first_at < 2**62 else None


def _row(each: Conversation) -> tuple[Any, ...]:
    values: list[Any] = list(_VALUES(each))
    if each.end_calls is not None:
        values[_CALLS] = msgspec.json.encode(each.end_calls).decode()
    values[_SUCCESSES] = msgspec.json.encode(each.successes).decode() if each.successes else None
    return tuple(values)


def _object(value: Any) -> Any:
    """Return a JSON column read by plain SQL: text on SQLite, already an object on PostgreSQL."""
    return msgspec.json.decode(value) if isinstance(value, str) else value


def _order(success: Success) -> tuple[int, int, str, str]:
    at, seq, tool, turn = success
    return (at, seq, tool, turn or "")
