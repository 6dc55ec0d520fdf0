"""Counting everything again from the calls, to prove (or repair) what is kept beside them.

Chains, conversations and rollups are maintained as events arrive; this reads the calls from the
beginning, folds them with the same pure functions and compares. What is compared is read from one
snapshot, so events that arrive meanwhile are no difference; what differs is looked at once more
under the lock of its conversation before it is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Engine, Table, delete, exists, func, select, tuple_, update

from toolfault_collector.storage.cache_versions import raise_versions
from toolfault_collector.storage.chains.chain_rows import ChainKey
from toolfault_collector.storage.chains.chain_store import ChainChanges, compare_key, write_chains
from toolfault_collector.storage.chains.conversations import (
    Conversation,
    ConversationKey,
    count_conversation,
    select_conversations,
    write_conversations,
)
from toolfault_collector.storage.chains.other_calls import recount_other_calls
from toolfault_collector.storage.database.bulk import columns
from toolfault_collector.storage.database.dialect import insert_ignore
from toolfault_collector.storage.database.engine import (
    is_sqlite,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.rollups import CountKey, add_counts, counted_by_sql, folded_by_sql
from toolfault_collector.storage.tables import chain as chain_table
from toolfault_collector.storage.tables import (
    conversation,
    conversation_end,
    event_key,
    failure_counts,
    tool_call,
    trace,
    trace_batch,
)

__all__ = ["Recount", "recount"]

# Keys compared in one transaction: writers wait no longer than for a large batch.
KEYS_AT_ONCE: Final = 200
_CHAIN_KEY: Final = columns("project_id session_id tool")
_CONVERSATION_KEY: Final = columns("project_id session_id")


@dataclass(frozen=True, slots=True)
class Recount:
    """What a recount found.

    Attributes:
        calls: Calls read.
        chains: Chains that they make.
        wrong_chains: Stored chains that differ from, or are missing among, those; what a chain
            came to is told by its conversation as it is stored.
        wrong_places: Calls whose place in a chain was stored wrong.
        wrong_other_calls: Chains whose number of calls of other tools was stored wrong.
        wrong_conversations: Conversations whose summary differs.
        wrong_counts: Rows of the rollups that differ.
        wrong_keys: Calls without the key by which a resend is known, and keys without a call.
        wrong_traces: Traces whose number of spans is not that of the batches that are kept.
    """

    calls: int = 0
    chains: int = 0
    wrong_chains: int = 0
    wrong_places: int = 0
    wrong_conversations: int = 0
    wrong_counts: int = 0
    wrong_keys: int = 0
    wrong_other_calls: int = 0
    wrong_traces: int = 0

    @property
    def right(self) -> bool:
        """Whether everything was as counted."""
        of_calls = (
            *(self.wrong_places, self.wrong_keys, self.wrong_other_calls, self.wrong_traces),
        )
        return not any((*of_calls, self.wrong_chains, self.wrong_conversations, self.wrong_counts))


def recount(
    engine: Engine, *, repair: bool = False, progress: Callable[[int], None] | None = None
) -> Recount:
    """Count everything again and say what differs.

    Args:
        engine: The database; others may go on writing to it.
        repair: Write what was counted where it differs.
        progress: Called with the number of calls read so far.
    """
    # First: what an unresolved chain came to hangs on its conversation.
    wrong_conversations = _compare_conversations(engine, repair=repair)
    calls = chains = wrong_chains = wrong_places = 0
    for keys in _chain_keys(engine):
        with read_connection(engine) as conn:
            talks = select_conversations(conn, {key[:2] for key in keys}, lock=False)
            compared = [compare_key(conn, key, talks) for key in keys]
        calls += sum(read for read, _, _ in compared)
        chains += sum(found for _, found, _ in compared)
        differing = {key: each[2] for key, each in zip(keys, compared, strict=True) if each[2]}
        if repair and differing:
            differing = _repair_keys(engine, differing)
        for changes in differing.values():
            wrong_chains += len(changes.changed) + len(changes.gone)
            wrong_places += len(changes.moved)
        if progress is not None:
            progress(calls)
    return Recount(
        calls,
        chains,
        wrong_chains,
        wrong_places,
        wrong_conversations,
        wrong_counts=_compare_counts(engine, repair=repair),
        wrong_keys=_compare_keys(engine, repair=repair),
        wrong_other_calls=_compare_other_calls(engine, repair=repair),
        wrong_traces=_compare_traces(engine, repair=repair),
    )


def _compare_other_calls(engine: Engine, *, repair: bool) -> int:
    """Compare the calls of other tools that chains cost, as they are stored or repaired by now."""
    wrong, key = 0, chain_table.c
    for keys in _pages(engine, chain_table, _CONVERSATION_KEY):
        pairs = tuple_(key.project_id, key.session_id)
        query = select(key.id).where(pairs.in_(keys))
        with read_connection(engine) as conn:
            differing = recount_other_calls(conn, set(conn.execute(query).scalars()), repair=False)
        if repair and differing:
            with write_transaction(engine) as conn:
                select_conversations(conn, keys, lock=True)
                differing = recount_other_calls(conn, set(conn.execute(query).scalars()))
                _raise_all(conn, [project_id for project_id, _ in keys])
        wrong += differing
    return wrong


def _chain_keys(engine: Engine) -> Iterator[list[ChainKey]]:
    """Yield the keys that have a call, then those of chains that have none."""
    yield from _pages(engine, tool_call, _CHAIN_KEY)
    yield from _pages(engine, chain_table, _CHAIN_KEY, unless_in=tool_call)


def _conversation_keys(engine: Engine) -> Iterator[list[ConversationKey]]:
    """Yield the keys of conversations, and those that calls and ends name and nothing else."""
    yield from _pages(engine, conversation, _CONVERSATION_KEY)
    for table in (tool_call, conversation_end):
        yield from _pages(engine, table, _CONVERSATION_KEY, unless_in=conversation)


def _pages(
    engine: Engine, table: Table, names: tuple[str, ...], *, unless_in: Table | None = None
) -> Iterator[list[Any]]:
    """Yield the distinct *names* of *table* in the order of its index, so many at a time."""
    key = [table.c[name] for name in names]
    query = select(*key).distinct().where(table.c.session_id.is_not(None))
    query = query.order_by(*key).limit(KEYS_AT_ONCE)
    if unless_in is not None:
        query = query.where(~exists().where(*(unless_in.c[each.name] == each for each in key)))
    after: tuple[Any, ...] = (-1, *[""] * (len(names) - 1))
    while True:
        with read_connection(engine) as conn:
            rows = conn.execute(query.where(tuple_(*key) > tuple_(*after)))
            keys = [tuple(row) for row in rows]
        if not keys:
            return
        yield keys
        after = keys[-1]


def _repair_keys(engine: Engine, keys: Iterable[ChainKey]) -> dict[ChainKey, ChainChanges]:
    """Compare *keys* again while nobody adds to their conversations; write and return changes."""
    written = {}
    with write_transaction(engine) as conn:
        talks = select_conversations(conn, {key[:2] for key in keys}, lock=True)
        for key in keys:
            _, _, changes = compare_key(conn, key, talks)
            write_chains(conn, changes)
            written[key] = changes
        _raise_all(conn, [key[0] for key in keys])
    return written


def _raise_all(conn: Connection, projects: Iterable[int]) -> None:
    """Raise the versions of all days of *projects*: a repair is rare, and may be of any of them."""
    raise_versions(conn, [(project_id, 0, 2**62) for project_id in set(projects)])


def _compare_conversations(engine: Engine, *, repair: bool) -> int:
    wrong = 0
    for keys in _conversation_keys(engine):
        with read_connection(engine) as conn:
            differing = _differing_conversations(conn, keys, lock=False)
        if repair and differing:
            with write_transaction(engine) as conn:
                differing = _differing_conversations(conn, list(differing), lock=True)
                write_conversations(conn, filter(None, differing.values()))
                for key in (key for key, counted in differing.items() if counted is None):
                    conn.execute(
                        delete(conversation).where(
                            conversation.c.project_id == key[0],
                            conversation.c.session_id == key[1],
                        )
                    )
                _raise_all(conn, [key[0] for key in differing])
        wrong += len(differing)
    return wrong


def _differing_conversations(
    conn: Connection, keys: Iterable[ConversationKey], *, lock: bool
) -> dict[ConversationKey, Conversation | None]:
    """Return those of *keys* that are stored wrong, as they should be; None if not at all."""
    keys = list(keys)
    stored = select_conversations(conn, keys, lock=lock)
    counted = {key: count_conversation(conn, key) for key in keys}
    return {key: each for key, each in counted.items() if each != stored.get(key)}


def _compare_keys(engine: Engine, *, repair: bool) -> int:
    """Compare the keys of events with the calls; a key and its call come and go together."""
    if is_sqlite(engine):
        return 0  # an index of the calls themselves
    call, key = tool_call.c, event_key.c
    same = (key.project_id == call.project_id) & (key.event_id == call.event_id)
    without_key = select(call.project_id, call.event_id).where(~exists().where(same))
    has_no_call = ~exists(select(call.id).where(same))
    with read_connection(engine) as conn:
        wrong = sum(
            conn.execute(select(func.count()).select_from(each.subquery())).scalar_one()
            for each in (without_key, select(key.event_id).where(has_no_call))
        )
    if repair and wrong:
        with write_transaction(engine) as conn:
            names = ["project_id", "event_id"]
            conn.execute(insert_ignore(conn, event_key).from_select(names, without_key))
            conn.execute(delete(event_key).where(has_no_call))
    return wrong


def _compare_traces(engine: Engine, *, repair: bool) -> int:
    """Compare traces with the batches of them; a repair lets go what has no other half."""
    row, batch = trace.c, trace_batch.c
    same = (batch.project_id == row.project_id) & (batch.trace_id == row.trace_id)
    spans = select(func.coalesce(func.sum(batch.spans), 0)).where(same).scalar_subquery()
    differs, has_no_trace = row.spans != spans, ~exists(select(row.trace_id).where(same))
    with read_connection(engine) as conn:
        wrong = sum(
            conn.execute(select(func.count()).select_from(each.subquery())).scalar_one()
            for each in (
                select(row.trace_id).where(differs),
                select(batch.id).where(has_no_trace),
            )
        )
    if repair and wrong:
        with write_transaction(engine) as conn:
            conn.execute(update(trace).where(differs).values(spans=spans))
            conn.execute(delete(trace_batch).where(has_no_trace))
    return wrong


def _compare_counts(engine: Engine, *, repair: bool) -> int:
    """Compare the rollups in one snapshot; a repair adds what is missing, or takes away.

    Sums stay right under additions, so calls that are stored meanwhile do not matter.
    """
    with read_connection(engine) as conn:
        failures, reported = counted_by_sql(conn)
        reported.update(folded_by_sql(conn)[1])
        stored = list(conn.execute(select(failure_counts)))
    missing: Counter[CountKey] = Counter(failures)
    missing_calls: Counter[CountKey] = Counter(reported)
    for row in stored:
        key = (row.project_id, row.by, row.period, row.tool, row.name)
        missing[key] -= row.failures
        missing_calls[key] -= row.calls
    wrong = {
        key for key in missing.keys() | missing_calls.keys() if missing[key] or missing_calls[key]
    }
    if repair and wrong:
        with write_transaction(engine) as conn:
            add_counts(
                conn,
                (
                    Counter({key: missing[key] for key in wrong}),
                    Counter({key: missing_calls[key] for key in wrong}),
                ),
            )
            counts = failure_counts.c
            conn.execute(delete(failure_counts).where(counts.failures == 0, counts.calls == 0))
            _raise_all(conn, [key[0] for key in wrong])
    return len(wrong)
