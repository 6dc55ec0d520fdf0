"""Counting everything again from the calls, to prove (or repair) what is kept beside them.

Chains, conversations and rollups are maintained as events arrive; this reads the calls from the
beginning, folds them with the same pure functions and compares.
"""

# ruff: noqa: S608 - only names of this code are put into statements, values are bound

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Engine, delete, select, tuple_

from toolfault_collector.chain_rows import (
    ChainKey,
    chain_row,
    stored_calls,
    stored_chain_rows,
)
from toolfault_collector.chain_store import ChainChanges, write_chains
from toolfault_collector.chains import Chain, fold
from toolfault_collector.conversations import (
    Conversation,
    select_conversations,
    write_conversations,
)
from toolfault_collector.engine import is_sqlite, read_connection, write_transaction
from toolfault_collector.rollups import CountKey, add_counts, counted_by_sql
from toolfault_collector.tables import conversation, conversation_end, failure_counts, tool_call

__all__ = ["Recount", "recount"]

# Conversations compared in one transaction: writers wait no longer than for a large batch.
KEYS_AT_ONCE: Final = 200
_BEGINNING: Final = (-(2**62), -(2**62), "")


@dataclass(frozen=True, slots=True)
class Recount:
    """What a recount found.

    Attributes:
        calls: Calls read.
        chains: Chains that they make.
        wrong_chains: Stored chains that differ from, or are missing among, those.
        wrong_places: Calls whose chain or attempt was stored wrong.
        wrong_conversations: Conversations whose summary differs.
        wrong_counts: Rows of the rollups that differ.
    """

    calls: int = 0
    chains: int = 0
    wrong_chains: int = 0
    wrong_places: int = 0
    wrong_conversations: int = 0
    wrong_counts: int = 0

    @property
    def right(self) -> bool:
        """Whether everything was as counted."""
        wrong = (self.wrong_chains, self.wrong_places, self.wrong_conversations, self.wrong_counts)
        return not any(wrong)


def recount(
    engine: Engine, *, repair: bool = False, progress: Callable[[int], None] | None = None
) -> Recount:
    """Count everything again and say what differs.

    Args:
        engine: The database; others may go on writing to it.
        repair: Write what was counted where it differs.
        progress: Called with the number of calls read so far.
    """
    calls = chains = wrong_chains = wrong_places = 0
    for keys in _batched_keys(engine):
        with _transaction(engine, repair) as conn:
            for key in keys:
                read, found, changes = _compare_key(conn, key)
                calls, chains = calls + read, chains + found
                wrong_chains += len(changes.changed) + len(changes.gone)
                wrong_places += len(changes.moved)
                if repair:
                    write_chains(conn, changes)
        if progress is not None:
            progress(calls)
    wrong_conversations = _compare_conversations(engine, repair=repair)
    wrong_counts = _compare_counts(engine, repair=repair)
    return Recount(calls, chains, wrong_chains, wrong_places, wrong_conversations, wrong_counts)


def _transaction(engine: Engine, write: bool) -> Any:
    return write_transaction(engine) if write else read_connection(engine)


def _batched_keys(engine: Engine) -> Iterator[list[ChainKey]]:
    """Yield the keys that have a failure or a chain, so many at a time."""
    after: tuple[Any, ...] = (-1, "", "")
    mark = "?" if is_sqlite(engine) else "%s"
    columns = "project_id, session_id, tool"
    sql = (
        f"SELECT {columns} FROM (SELECT {columns} FROM tool_call WHERE session_id IS NOT NULL"
        f" UNION SELECT {columns} FROM chain) AS k"
        f" WHERE ({columns}) > ({mark}, {mark}, {mark}) ORDER BY {columns} LIMIT {KEYS_AT_ONCE}"
    )
    while True:
        with read_connection(engine) as conn:
            keys = [(row[0], row[1], row[2]) for row in conn.exec_driver_sql(sql, after)]
        if not keys:
            return
        yield keys
        after = keys[-1]


def _compare_key(conn: Connection, key: ChainKey) -> tuple[int, int, ChainChanges]:
    """Return calls read, chains made and what would have to change for *key*."""
    known = list(stored_calls(conn, key, since=_BEGINNING))
    chains = fold([each.call for each in known])
    changes = ChainChanges()
    before = stored_chain_rows(conn, key)
    for chain in chains:
        if before.pop(chain.chain_id, None) != chain_row(key, chain):
            changes.changed.append((key, chain))
    changes.gone.extend((key[0], chain_id) for chain_id in before)
    places = _places(chains)
    for each in known:
        place = places.get(each.call.event_id, (None, None))
        if place != (each.chain_id, each.attempt):
            changes.moved.append((*place, each.id))
    return len(known), len(chains), changes


def _places(chains: list[Chain]) -> dict[str, tuple[str | None, int | None]]:
    return {
        call.event_id: (chain.chain_id, attempt)
        for chain in chains
        for call, attempt in chain.members
    }


def _compare_conversations(engine: Engine, *, repair: bool) -> int:
    wrong = 0
    after: tuple[Any, ...] = (-1, "")
    key = conversation.c.project_id, conversation.c.session_id
    while True:
        with _transaction(engine, repair) as conn:
            page = select(*key).where(tuple_(*key) > after).order_by(*key).limit(KEYS_AT_ONCE)
            found = [(row[0], row[1]) for row in conn.execute(page)]
            stored = select_conversations(conn, found)
            counted = [_count_conversation(conn, stored[each]) for each in found]
            differ = [each for each in counted if each != stored[each.project_id, each.session_id]]
            if repair:
                write_conversations(conn, differ)
        wrong += len(differ)
        if len(found) < KEYS_AT_ONCE:
            return wrong
        after = found[-1]


def _count_conversation(conn: Connection, stored: Conversation) -> Conversation:
    """Return *stored* as its calls and ends say it should be."""
    of_it = (
        tool_call.c.project_id == stored.project_id,
        tool_call.c.session_id == stored.session_id,
    )
    counted = Conversation(stored.project_id, stored.session_id, 2**62, 0)
    call = tool_call.c
    for row in conn.execute(
        select(
            call.started_at,
            call.occurred_at,
            call.received_at,
            call.time_source,
            call.success,
            call.seq,
            call.tool,
            call.turn,
        ).where(*of_it)
    ):
        counted.add(
            row.started_at, row.occurred_at, received_at=row.received_at, source=row.time_source
        )
        if row.success:
            counted.add_success((row.started_at, row.seq, row.tool, row.turn))
    for row in conn.execute(
        select(conversation_end).where(
            conversation_end.c.project_id == stored.project_id,
            conversation_end.c.session_id == stored.session_id,
        )
    ):
        counted.add_end_at(
            row.occurred_at, row.event_id, received_at=row.received_at, calls=row.calls
        )
    return counted


def _compare_counts(engine: Engine, *, repair: bool) -> int:
    with _transaction(engine, repair) as conn:
        failures, reported = counted_by_sql(conn)
        stored: dict[CountKey, tuple[int, int]] = {
            (row.project_id, row.by, row.period, row.tool, row.name): (row.failures, row.calls)
            for row in conn.execute(select(failure_counts))
        }
        wrong = [
            key
            for key in failures.keys() | reported.keys() | stored.keys()
            if (failures[key], reported[key]) != stored.get(key, (0, 0))
        ]
        if repair and wrong:
            conn.execute(delete(failure_counts))
            add_counts(conn, (failures, reported))
    return len(wrong)
