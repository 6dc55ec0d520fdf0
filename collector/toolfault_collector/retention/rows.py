"""Removing old data in transactions that are short, and of which each leaves every count right.

A conversation goes whole, with everything in it. One that goes on is cut between its chains: what
is removed of it is whole chains and successes outside any, so that what is left folds to the chains
that are stored. Its last call and newest successes stay, by which it is known, and the success that
came last beside a chain without one. A chain that goes on stays whole; only one of very many calls
is cut, once most of it is old, and then begins with the first failure that is left. Killed between
two transactions, nothing is half removed and the next run goes on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, groupby, takewhile
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Select,
    and_,
    delete,
    func,
    or_,
    select,
    tuple_,
)
from sqlalchemy.exc import DBAPIError

from toolfault_collector import failpoints
from toolfault_collector.clock import MINUTE_US
from toolfault_collector.protocol.ladder import NONE
from toolfault_collector.retention.partitions import is_lock_timeout
from toolfault_collector.storage.cache_versions import Span, raise_versions
from toolfault_collector.storage.chains.chain_rows import ChainKey
from toolfault_collector.storage.chains.chain_store import compare_key, write_chains
from toolfault_collector.storage.chains.conversations import (
    Conversation,
    ConversationKey,
    select_conversations,
    write_conversations,
)
from toolfault_collector.storage.chains.other_calls import recount_other_calls
from toolfault_collector.storage.chains.rungs import rung
from toolfault_collector.storage.chains.withdrawal import remove_calls
from toolfault_collector.storage.database.dialect import among
from toolfault_collector.storage.database.engine import (
    is_sqlite,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.rollups import Counts, add_counts, folded_by_sql
from toolfault_collector.storage.tables import (
    call_counts,
    chain,
    conversation,
    conversation_end,
    failure_counts,
    message,
    signature,
    tool_call,
)

__all__ = ["EVER", "Line", "Pruned", "count_before", "remove_before"]

EVER: Final = 2**62
# Removed in one transaction: writers wait for some milliseconds, not for a clean-up of hours. A
# conversation, or chain, of more calls than that goes by itself.
CONVERSATIONS_AT_ONCE: Final = 200
ROWS_AT_ONCE: Final = 500
# A chain of more calls is one that nothing will end: a broken tool that is asked again and again.
LONG_CHAIN: Final = 500
# How long writers may be held up for the removal of signatures, which can come again.
_LOCK_MS: Final = 200

Rows = Sequence[Any]
"""Rows of a statement."""

_call, _talk, _end = tool_call.c, conversation.c, conversation_end.c
_OF_TALK: Final = and_(_call.project_id == _talk.project_id, _call.session_id == _talk.session_id)


@dataclass(frozen=True, slots=True)
class Line:
    """Where a project is cut; times are in microseconds.

    Attributes:
        project_id: The project.
        last: What was received up to then goes ...
        first_call: ... if it came before the call of this id ...
        first_counts: ... or the row of ``call_counts`` of this one.
        cut: Of a conversation that goes on, what was received up to then goes.
        until: A later time was written by a clock that was wrong; what has one goes as well, once
            it lies before those ids.
    """

    project_id: int
    last: int
    first_call: int
    first_counts: int
    cut: int
    until: int

    @property
    def windows(self) -> tuple[tuple[int, int], ...]:
        """From when to when what goes was received."""
        return ((-EVER, self.last), (self.until + 1, EVER))

    def is_old(self, received: ColumnElement[int]) -> ColumnElement[bool]:
        """Whether what was *received* then goes, if it came before the ids of the line."""
        return or_(received <= self.last, received > self.until)


class Pruned(NamedTuple):
    """What was, or would be, removed; *counts* are rows of folded successes."""

    conversations: int = 0
    calls: int = 0
    counts: int = 0


def remove_before(engine: Engine, line: Line) -> Pruned:
    """Remove what lies before *line*."""
    conversations = calls = 0
    for sessions in _old_conversations(engine, line):
        with _portion(engine) as conn:
            gone, of_them = _remove_conversations(conn, line, sessions)
        conversations, calls = conversations + gone, calls + of_them
    for page in _old_calls(engine, line, alone=True):
        with _portion(engine) as conn:
            calls += _remove_alone(conn, line, page)
    going_on: set[str] = set()
    for page in _old_calls(engine, line, alone=False):
        calls += _cut(engine, line, page, going_on)
    counts = sum(_remove_counts(engine, line))
    removed = Pruned(conversations, calls, counts)
    if any(removed):
        with write_transaction(engine) as conn:
            _remove_unused(conn, line.project_id)
    return removed


def count_before(conn: Connection, line: Line) -> Pruned:
    """Return what `remove_before` would remove, as if every chain could be cut."""

    def count(*where: ColumnElement[bool]) -> int:
        return conn.execute(select(func.count()).where(*where)).scalar_one()

    # Looks by index for each conversation, where a join might read all calls.
    newest = select(func.coalesce(func.max(_call.id), 0)).where(_OF_TALK).scalar_subquery()
    number = select(func.count(_call.id)).where(_OF_TALK).scalar_subquery()
    last = select(_talk.received_at).where(_OF_TALK).scalar_subquery()
    old = select(func.count(), func.sum(number)).where(
        _talk.project_id == line.project_id,
        line.is_old(_talk.received_at),
        newest < line.first_call,
    )
    conversations, calls = conn.execute(old).one()
    before = and_(_call.project_id == line.project_id, _call.id < line.first_call)
    alone = count(before, _call.session_id.is_(None), line.is_old(_call.received_at))
    cut = count(before, _call.received_at <= line.cut, last.between(line.last + 1, line.until))
    folded = count(*_old_counts(line), call_counts.c.minute <= line.last + MINUTE_US)
    return Pruned(conversations, int(calls or 0) + alone + cut, folded)


@contextmanager
def _portion(engine: Engine) -> Iterator[Connection]:
    """Yield a write transaction, one of many that remove something each."""
    with write_transaction(engine) as conn:
        yield conn
        failpoints.reach("removed")
    failpoints.reach("removal_committed")


def _pages(engine: Engine, query: Select[Any], *since: Any) -> Iterator[Rows]:
    """Yield rows of *query* some at a time, found without holding up any writer.

    They are in the order of its first columns, and come after *since*, values of these.
    """
    order = query.selected_columns[: len(since)]
    while True:
        with read_connection(engine) as conn:
            found = conn.execute(query.where(tuple_(*order) > since).order_by(*order)).all()
        if not found:
            return
        since = tuple(found[-1][: len(since)])
        yield found


def _old_conversations(engine: Engine, line: Line) -> Iterator[list[str]]:
    """Yield old conversations, never so many that their calls are far beyond `ROWS_AT_ONCE`."""
    number = select(func.count(_call.id)).where(_OF_TALK).scalar_subquery()
    mine = select(_talk.received_at, _talk.session_id, number).where(
        _talk.project_id == line.project_id
    )
    for low, high in line.windows:
        query = mine.where(_talk.received_at <= high).limit(CONVERSATIONS_AT_ONCE)
        for page in _pages(engine, query, low, ""):
            so_far = accumulate(row[2] for row in page)
            portions = groupby(zip(page, so_far, strict=True), lambda each: each[1] // ROWS_AT_ONCE)
            for _, portion in portions:
                yield [row.session_id for row, _ in portion]


def _remove_conversations(conn: Connection, line: Line, sessions: list[str]) -> tuple[int, int]:
    """Remove those of *sessions* that are old; return how many, and their calls."""
    # Collectors lock in the same order. Before the lock was taken another call may have come.
    keys = [(line.project_id, each) for each in sessions]
    locked = select_conversations(conn, keys, lock=True)
    calls = conn.execute(
        select(_call.id, _call.event_id, _call.session_id).where(
            _call.project_id == line.project_id, among(conn, _call.session_id, sessions)
        )
    ).all()
    kept = {row.session_id for row in calls if row.id >= line.first_call}
    kept |= {name for (_, name), each in locked.items() if _goes_on(each, line)}
    old = {name: each for (_, name), each in locked.items() if name not in kept}
    going = [row for row in calls if row.session_id in old]
    _remove_calls(conn, line.project_id, going)
    for table in (chain, conversation_end, conversation):
        mine = table.c.project_id == line.project_id
        conn.execute(delete(table).where(mine, among(conn, table.c.session_id, old)))
    raise_versions(conn, [(line.project_id, each.first_at, each.last_at) for each in old.values()])
    return len(old), len(going)


def _goes_on(talk: Conversation, line: Line) -> bool:
    return line.last < talk.received_at <= line.until


def _old_calls(engine: Engine, line: Line, *, alone: bool) -> Iterator[Rows]:
    """Yield calls outside conversations that go, or calls of conversations that are to be cut."""
    mine = (
        select(_call.received_at, _call.id, _call.session_id, _call.chain_id)
        .where(_call.project_id == line.project_id, _call.id < line.first_call)
        .where(_call.session_id.is_(None) if alone else _call.session_id.is_not(None))
        .limit(ROWS_AT_ONCE)
    )
    for low, high in line.windows if alone else ((-EVER, line.cut),):
        yield from _pages(engine, mine.where(_call.received_at <= high), low, 0)


def _remove_alone(conn: Connection, line: Line, page: Rows) -> int:
    there = conn.execute(
        select(_call.id, _call.event_id, _call.occurred_at)
        .where(among(conn, _call.id, [row.id for row in page]))
        .order_by(_call.id)
        .with_for_update()
    ).all()
    _remove_calls(conn, line.project_id, there)
    raise_versions(conn, [(line.project_id, row.occurred_at, row.occurred_at) for row in there])
    return len(there)


def _cut(engine: Engine, line: Line, page: Rows, going_on: set[str]) -> int:
    """Remove what is due of *page*, calls of conversations that go on; return how many calls went.

    *going_on* are chains that are known not to be due; more are added.
    """
    named = {row.chain_id for row in page} - going_on - {None}
    # A call ends at most a minute after it was received. What stays of a chain is folded again,
    # which costs no more than storing did what goes, if that is more.
    mostly = and_(chain.c.calls > LONG_CHAIN, chain.c.started_at + chain.c.last_at <= 2 * line.cut)
    due = select(chain.c.chain_id, mostly).where(
        chain.c.project_id == line.project_id,
        or_(chain.c.last_at <= line.last + MINUTE_US, mostly),
    )
    with read_connection(engine) as conn:
        found = conn.execute(due.where(among(conn, chain.c.chain_id, named)))
        chains: dict[str | None, bool] = {row[0]: row[1] for row in found}
    going_on |= named - chains.keys()
    chains[None] = False
    page = [row for row in page if row.chain_id in chains]
    if not page:
        return 0
    with _portion(engine) as conn:
        keys = {(line.project_id, row.session_id) for row in page}
        locked = select_conversations(conn, keys, lock=True)
        gone, parted = _due(conn, line, page, locked, chains)
        _remove_calls(conn, line.project_id, gone)
        whole = {row.chain_id for row in gone} - {None}
        mine = chain.c.project_id == line.project_id
        conn.execute(delete(chain).where(mine, among(conn, chain.c.chain_id, whole)))
        for key in sorted(parted):
            write_chains(conn, compare_key(conn, key, locked)[2])
        spans: list[Span] = [(line.project_id, row.occurred_at, row.occurred_at) for row in gone]
        told = {key[1] for key in parted}
        told |= {row.session_id for row in gone if row.success and row.args_fingerprint}
        for name in sorted({row.session_id for row in gone}):
            talk = locked[line.project_id, name]
            if talk.ended_at is not None or name in told:
                # What its end said, where its calls stand, or which of them were executed before,
                # is told with every day of it.
                spans.append((line.project_id, talk.first_at, talk.last_at))
            _mend(conn, line, talk)
        beside = _chains_beside(conn, line.project_id, gone, parted)
        if recount_other_calls(conn, beside):
            # What a chain cost is told with its first failure, days before the calls that go.
            spans += [(line.project_id, at, at) for at in beside.values()]
        raise_versions(conn, spans)
    return len(gone)


def _chains_beside(
    conn: Connection, project_id: int, gone: Rows, parted: set[ChainKey]
) -> dict[int, int]:
    """Return the chains that stay and may have cost one of the calls that go.

    Returns:
        When the first failure of each ended, by row id.
    """
    newest: dict[str, int] = {}
    for row in gone:
        newest[row.session_id] = max(newest.get(row.session_id, 0), row.started_at)
    mine = chain.c.project_id == project_id
    before = [
        and_(chain.c.session_id == name, chain.c.started_at <= at) for name, at in newest.items()
    ]
    cut = [and_(chain.c.session_id == name, chain.c.tool == tool) for _, name, tool in parted]
    if not before and not cut:
        return {}
    found = select(chain.c.id, chain.c.first_failed_at).where(mine, or_(*before, *cut))
    return {row.id: row.first_failed_at for row in conn.execute(found)}


def _due(
    conn: Connection,
    line: Line,
    page: Rows,
    locked: Mapping[ConversationKey, Conversation],
    chains: Mapping[str | None, bool],
) -> tuple[list[Any], set[ChainKey]]:
    """Return the calls of *page* and of its chains that may go, and the keys of chains cut by that.

    Args:
        conn: In the transaction that removes them.
        line: Where the project is cut.
        page: Calls of conversations that go on.
        locked: These conversations.
        chains: Their chains, and whether the first calls of one may go without the others.
    """
    single = [row.id for row in page if row.chain_id is None]
    of_chain = {row.chain_id for row in page if row.chain_id is not None}
    found = conn.execute(
        select(
            *(_call.id, _call.event_id, _call.session_id, _call.chain_id, _call.tool, _call.turn),
            *(_call.started_at, _call.seq, _call.occurred_at, _call.received_at, _call.success),
            _call.args_fingerprint,
        )
        .where(
            or_(
                and_(among(conn, _call.id, single), _call.chain_id.is_(None)),
                and_(_call.project_id == line.project_id, among(conn, _call.chain_id, of_chain)),
            )
        )
        .order_by(_call.started_at, _call.seq, _call.event_id)
    )
    units: dict[str | int, list[Any]] = defaultdict(list)
    for row in found:
        units[row.chain_id or row.id].append(row)
    unresolved = select(chain.c.state).where(
        chain.c.project_id == line.project_id,
        among(conn, chain.c.session_id, [session_id for _, session_id in locked]),
        chain.c.recovered_at.is_(None),
    )
    beside = {tuple(state["beside"] or ()) for state in conn.execute(unresolved).scalars()}
    gone: list[Any] = []
    parted: set[ChainKey] = set()
    for rows in units.values():
        talk = locked.get((line.project_id, rows[0].session_id))
        stays = [
            talk is None
            or (row.started_at, row.seq, row.event_id) in beside
            or _is_needed(row, talk, line)
            for row in rows
        ]
        if not any(stays):
            gone += rows
        elif chains[rows[0].chain_id]:
            old = zip(rows, stays, strict=True)
            first = [row for row, _ in takewhile(lambda each: not each[1], old)]
            first = list(takewhile(lambda row: row.received_at <= line.cut, first))
            gone += first
            parted |= {(line.project_id, row.session_id, row.tool) for row in first}
    return gone, parted


def _is_needed(row: Any, talk: Conversation, line: Line) -> bool:
    """Return whether a call is young, or what its conversation is known by.

    The last call and the newest successes decide the outcome of chains that stay.
    """
    young = row.received_at > line.last or row.id >= line.first_call
    if young or not _goes_on(talk, line) or row.occurred_at >= talk.last_at:
        return True
    return bool(row.success) and (row.started_at, row.seq, row.tool, row.turn) in talk.successes


def _mend(conn: Connection, line: Line, talk: Conversation) -> None:
    """Write what is left of a conversation that was cut: its begin, its name and its ends."""
    mine = (_call.project_id == talk.project_id, _call.session_id == talk.session_id)
    tool, talk.first_at = "", talk.last_at
    first = select(_call.tool, _call.started_at).where(*mine).order_by(_call.tool, _call.started_at)
    # A look by index for each tool, since the calls of a conversation may be very many.
    while (row := conn.execute(first.where(_call.tool > tool).limit(1)).first()) is not None:
        tool, talk.first_at = row.tool, min(talk.first_at, row.started_at)
    source = select(_call.time_source).where(*mine)
    if conn.execute(source.where(_call.time_source == talk.time_source).limit(1)).first() is None:
        talk.time_source = "none"
        for each in conn.execute(source.distinct()).scalars():
            talk.add(talk.last_at, talk.last_at, received_at=talk.received_at, source=each)
    named = select(rung(tool_call)).where(*mine)
    if conn.execute(named.where(rung(tool_call) == talk.rung).limit(1)).first() is None:
        talk.rung = NONE
        for each in conn.execute(named.distinct()).scalars():
            talk.add_rung(each)
    ends = and_(_end.project_id == talk.project_id, _end.session_id == talk.session_id)
    old = and_(_end.received_at <= line.cut, _end.occurred_at < talk.last_at)
    conn.execute(delete(conversation_end).where(ends, old))
    talk.ended_at = talk.end_event_id = talk.end_calls = None
    talk.ends = 0
    for end in conn.execute(select(conversation_end).where(ends)):
        talk.add_end(end)
    write_conversations(conn, [talk])


def _remove_calls(conn: Connection, project_id: int, calls: Rows) -> None:
    """Remove *calls* with their issues and keys, and take them out of the rollups."""
    keys = [(row.id, project_id, row.event_id) for row in calls]
    for counted in remove_calls(conn, keys):
        _take_back(conn, counted)


def _take_back(conn: Connection, counts: Counts) -> None:
    """Take *counts* out of the rollups."""
    failures, calls = (Counter({key: -n for key, n in each.items()}) for each in counts)
    add_counts(conn, (failures, calls))


def _old_counts(line: Line) -> tuple[ColumnElement[bool], ...]:
    row = call_counts.c
    mine = row.project_id == line.project_id
    return (mine, row.id < line.first_counts, line.is_old(row.received_at))


def _remove_counts(engine: Engine, line: Line) -> Iterator[int]:
    """Remove old rows of folded successes; yield how many went at a time."""
    row = call_counts.c
    for low, high in line.windows:
        # Minutes have an index, and are at most one ahead of when their row was received.
        old = select(row.id, row.minute).where(
            *_old_counts(line), row.minute.between(low, high + MINUTE_US)
        )
        more = True
        while more:
            with write_transaction(engine) as conn:
                found = conn.execute(old.limit(ROWS_AT_ONCE).with_for_update()).all()
                ids = [each.id for each in found]
                if ids:
                    # Numbers of this database's own making may stand in a statement.
                    these = ", ".join(map(str, ids))
                    _take_back(conn, folded_by_sql(conn, f"f.id IN ({these})"))
                    conn.execute(delete(call_counts).where(among(conn, row.id, ids)))
                    middles = [each.minute + MINUTE_US // 2 for each in found]
                    raise_versions(conn, [(line.project_id, at, at) for at in middles])
            more = len(ids) == ROWS_AT_ONCE
            yield len(ids)


def _remove_unused(conn: Connection, project_id: int) -> None:
    """Remove counts that are zero, and signatures and messages that no call has any more."""
    if not _nobody_writes(conn):
        return  # they go with the next clean-up
    counted = failure_counts.c
    empty = (counted.failures == 0, counted.calls == 0)
    conn.execute(delete(failure_counts).where(counted.project_id == project_id, *empty))
    # What was last seen before the oldest call that is left is seen in none. Asked twice, since the
    # index begins with success.
    first = select(func.min(_call.occurred_at)).where(_call.project_id == project_id)
    found = [conn.execute(first.where(_call.success.is_(each))).scalar() for each in (True, False)]
    oldest = min((at for at in found if at is not None), default=EVER)
    for table in (signature, message):
        unused = table.c.last_at < oldest
        conn.execute(delete(table).where(table.c.project_id == project_id, unused))


def _nobody_writes(conn: Connection) -> bool:
    """Keep everybody from storing calls until the transaction ends; return whether that was done.

    Who stores a failure writes the key of its event before anything is looked up, so who can lock
    these waits for all who have looked up a signature and not yet committed.
    """
    if is_sqlite(conn):
        return True  # nobody else writes
    try:
        with conn.begin_nested():
            conn.exec_driver_sql(f"SET LOCAL lock_timeout = {_LOCK_MS}")
            conn.exec_driver_sql("LOCK TABLE event_key IN SHARE MODE")
            conn.exec_driver_sql("SET LOCAL lock_timeout TO DEFAULT")
    except DBAPIError as error:
        if not is_lock_timeout(error):
            raise
        return False
    return True
