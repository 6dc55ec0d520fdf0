"""Calls that are taken out again, in the transaction that stores what is known better.

A call of a trace is stored as soon as its span is there, with what is known by then. When a later
span says more, or the SDK reports the same call, the row goes and everything that was made of it is
made again from the calls that are left: counts, chains, the summary of its conversation.
"""

# ruff: noqa: S608 - only ids of this database are put into statements

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sqlalchemy import Connection, delete

from toolfault_collector.protocol.records import CallRecord, EndRecord
from toolfault_collector.storage.cache_versions import Span
from toolfault_collector.storage.chains.chain_store import compare_key, write_chains
from toolfault_collector.storage.chains.conversations import (
    Conversation,
    ConversationKey,
    count_conversation,
)
from toolfault_collector.storage.database.bulk import columns, find_rows, select_in
from toolfault_collector.storage.database.engine import is_sqlite
from toolfault_collector.storage.database.postgres import array_text
from toolfault_collector.storage.rollups import Counts, counted_by_sql
from toolfault_collector.storage.tables import conversation, tool_call

__all__ = ["TakenOut", "TakenOutCall", "chains_beside", "fold_rest", "remove_calls", "take_out"]

# Numbers in one statement; each is an id of this database's own making.
_AT_ONCE: Final = 500
_DELETE_KEYS: Final = (
    "DELETE FROM event_key USING unnest(%s::int[], %s::text[]) AS gone(p, e)"
    " WHERE project_id = gone.p AND event_id = gone.e"
)


class TakenOutCall(NamedTuple):
    """What has to be known of a row that is gone; times are in microseconds."""

    id: int
    project_id: int
    event_id: str
    session_id: str | None
    tool: str
    occurred_at: int


_COLUMNS: Final = columns(" ".join(TakenOutCall._fields))


@dataclass(slots=True)
class TakenOut:
    """What was taken out.

    Attributes:
        calls: The rows.
        counts: What they were counted as, negative.
        spans: When something changes.
    """

    calls: list[TakenOutCall] = field(default_factory=list)
    counts: Counts = field(default_factory=lambda: (Counter(), Counter()))
    spans: list[Span] = field(default_factory=list)


def take_out(conn: Connection, events: Iterable[tuple[int, str]]) -> TakenOut:
    """Remove the calls of *events* with their issues and keys; `fold_rest` has to follow.

    Args:
        conn: In a write transaction.
        events: Project and event id of each; those that are not stored are passed over.
    """
    taken = TakenOut()
    found = find_rows(conn, tool_call, _COLUMNS, key="event_id", among=sorted(events), lock=True)
    taken.calls = [TakenOutCall(*row) for row in found]
    for counted in remove_calls(conn, [each[:3] for each in taken.calls]):
        for total, of_some in zip(taken.counts, counted, strict=True):
            total.subtract(of_some)
    taken.spans = [(each.project_id, each.occurred_at, each.occurred_at) for each in taken.calls]
    return taken


def remove_calls(conn: Connection, calls: Sequence[tuple[int, int, str]]) -> Iterator[Counts]:
    """Remove calls with their issues and keys, some at a time; yield what each lot was counted as.

    Args:
        conn: In a write transaction.
        calls: Id, project and event id of each.
    """
    for low in range(0, len(calls), _AT_ONCE):
        some = calls[low : low + _AT_ONCE]
        ids = ", ".join(str(each[0]) for each in some)
        yield counted_by_sql(conn, f"c.id IN ({ids})")
        conn.exec_driver_sql(f"DELETE FROM issue WHERE tool_call_id IN ({ids})")
        conn.exec_driver_sql(f"DELETE FROM tool_call WHERE id IN ({ids})")
        if not is_sqlite(conn):
            keys = zip(*sorted(each[1:] for each in some), strict=True)
            conn.exec_driver_sql(_DELETE_KEYS, tuple(map(array_text, keys)))


def fold_rest(
    conn: Connection,
    taken: TakenOut,
    conversations: dict[ConversationKey, Conversation],
    new: Iterable[CallRecord | EndRecord],
) -> None:
    """Make chains and conversations anew from the calls that are left of those of *taken*.

    Args:
        conn: In the transaction of `take_out`, which holds *conversations*.
        taken: What was taken out.
        conversations: As they are stored; those of *taken* are replaced, or removed with their
            last call.
        new: What will be added to them.
    """
    keys = {(each.project_id, each.session_id, each.tool) for each in taken.calls}
    chain_keys = sorted((one, two, three) for one, two, three in keys if two is not None)
    if not chain_keys:
        return
    begins = {(each.project_id, each.session_id): each.occurred_at for each in new}
    for key in dict.fromkeys((one, two) for one, two, _ in chain_keys):
        before, left = conversations[key], count_conversation(conn, key)
        if before.stored:
            taken.spans.append((key[0], before.first_at, before.last_at))
        if left is None and key in begins:
            # As one that begins with any of what is new.
            left = Conversation(*key, begins[key], begins[key])
        if left is None:
            row = conversation.c
            mine = (row.project_id == key[0], row.session_id == key[1])
            conn.execute(delete(conversation).where(*mine))
            del conversations[key]
        else:
            left.stored = before.stored
            conversations[key] = left
    for chain_key in chain_keys:
        write_chains(conn, compare_key(conn, chain_key, conversations)[2])


def chains_beside(conn: Connection, taken: TakenOut) -> set[int]:
    """Return the row ids of the chains that may have cost one of the calls of *taken*."""
    by_project: defaultdict[int, set[str]] = defaultdict(set)
    for each in taken.calls:
        if each.session_id is not None:
            by_project[each.project_id].add(each.session_id)
    sql = "SELECT id FROM chain WHERE project_id = ? AND session_id IN ?"
    return {
        row[0]
        for project_id, sessions in by_project.items()
        for row in select_in(conn, sql, fixed=(project_id,), among=sorted(sessions))
    }
