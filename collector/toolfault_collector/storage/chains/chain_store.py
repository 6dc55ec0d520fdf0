"""Chains in the database: the fold of `chains.fold`, continued at constant cost per call.

In the usual order a batch continues the newest stored chain of its key (project, conversation,
tool). Around a call that arrives late a *window* of the stored calls is folded again: from the last
`LOOK_BACK` failures of its chain before it to the point from which on all is as it was, which is
where no chain is open, neither as stored nor as folded, or `LOOK_BACK` failures further that are of
one chain in both. What the window adds to a chain then is written as a difference to its row, so
nothing else of the chain is read.

The window has a fixed number of failures, whatever the length of the chain. Not bounded by that are

* the successes in it that are parallel to the chain: all are judged again;
* a late success that ends a chain, or a late failure by which a success no longer does, may let the
  same happen to the next success, and so on. Every chain that begins or ends anew moves the end of
  the window so many failures further. It takes calls whose turns cross, each success being of the
  turn of a failure that others came after;
* the calls behind the window when their chain gets another id: where it has another first failure
  (one came late, or a success that came late ends what is before it), or is joined to the chain
  before it. One statement writes the id to all of them, and where a chain is divided another one
  adds them up.
"""

# ruff: noqa: S608 - only names of this code are put into statements, values are bound

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import add, attrgetter, sub
from typing import Any, Final

from sqlalchemy import Connection

from toolfault_collector.chains import fold as chains
from toolfault_collector.chains.fold import (
    IDENTICAL_REPEAT,
    REPEAT_CONFUSION,
    ROUND_TRIP,
    SERIAL_DISCOVERY,
    Call,
    Chain,
    Memory,
    OrderKey,
    Place,
    fold,
)
from toolfault_collector.storage.chains.chain_rows import (
    CHAIN_COLUMNS,
    LOADED_COLUMNS,
    OF_FIRST_FAILURE,
    OF_KEY,
    ChainKey,
    StoredCall,
    chain_row,
    failures_before,
    read_chain,
    stored_calls,
    stored_chain_rows,
)
from toolfault_collector.storage.chains.conversations import Conversation, ConversationKey
from toolfault_collector.storage.database.bulk import columns, fetch, insert_rows, run, upsert_rows
from toolfault_collector.storage.database.engine import is_sqlite
from toolfault_collector.storage.database.postgres import array_text
from toolfault_collector.storage.tables import chain as chain_table

__all__ = ["ChainChanges", "compare_key", "continue_chains", "write_chains"]

_KEY: Final = columns("project_id chain_id")
_NEWEST_FIRST: Final = "ORDER BY started_at DESC, first_seq DESC, chain_id DESC LIMIT 1"

# What a chain adds up, and what one stored call of it is in that order.
_SUMS: Final = columns(
    "calls failures round_trips identical_repeats serial_discoveries repeat_confusions"
    " time_lost_us tokens_lost token_reports"
)
_sums_of: Final = attrgetter(*_SUMS)
_NOTHING: Final = (0,) * len(_SUMS)
_MARKS: Final = (ROUND_TRIP, IDENTICAL_REPEAT, SERIAL_DISCOVERY, REPEAT_CONFUSION)
# What the last calls of a chain decide.
_OF_END: Final = columns(
    "last_started_at last_seq last_event_id failed_until last_failure_turn recovered_at memory"
    " beside"
)
Sums = tuple[int, ...]
Settle = Callable[[ChainKey, Chain], None]


@dataclass(slots=True)
class ChainChanges:
    """What changes among the chains of some keys.

    Attributes:
        new: Chains that are not stored.
        continued: Stored chains that have grown at their end.
        changed: Chains that were folded again, stored or not.
        gone: Project and id of stored chains that are none any more.
        moved: Stored calls whose place changed, each with the id of the call.
    """

    new: list[tuple[ChainKey, Chain]] = field(default_factory=list)
    continued: list[tuple[ChainKey, Chain]] = field(default_factory=list)
    changed: list[tuple[ChainKey, Chain]] = field(default_factory=list)
    gone: list[tuple[int, str]] = field(default_factory=list)
    moved: list[tuple[Place, int]] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether anything changes."""
        return bool(self.new or self.changed or self.gone or self.moved)


def continue_chains(
    conn: Connection,
    batches: Mapping[ChainKey, list[Call]],
    *,
    stored: set[ChainKey],
    settle: Settle,
) -> dict[tuple[int, str], Place]:
    """Write what the new calls of *batches* change, but for the calls themselves.

    Args:
        conn: In a write transaction that holds the conversations of the keys.
        batches: The new calls of each key, in order.
        stored: The keys that may have calls stored already.
        settle: Says of every chain that is written what it comes to.

    Returns:
        The place of each new call that is in a chain, by project and event id.
    """
    changes = ChainChanges()
    late: dict[ChainKey, list[Call]] = {}
    newest = _newest_chains(conn, [key for key in batches if key in stored])
    folded: dict[ChainKey, list[Chain]] = {}
    since: dict[ChainKey, Call] = {}
    for key, calls in batches.items():
        chain = newest.get(key)
        if chain is not None and _comes_late(calls, chain):
            late[key] = calls
            continue
        goes_on = chain if chain is not None and not chain.recovered else None
        folded[key] = fold(calls, goes_on)
        opened = next((one for one in folded[key] if one is not goes_on), None)
        if opened is not None and key in stored:
            since[key] = opened.members[0][0]
    # A success stored behind an opening failure belongs to its chain: it had no chain to end, or
    # was parallel to the chain which went on until now.
    followed = _followed(conn, since)
    for key, of_key in folded.items():
        if key in followed:
            late[key] = batches[key]
        else:
            known = newest.get(key)
            for each in of_key:
                settle(key, each)
                (changes.continued if each is known else changes.new).append((key, each))
    write_chains(conn, changes)
    folded_now = [*changes.new, *changes.continued]
    for key, calls in late.items():
        # The newest chain is as it is stored unless it was continued above.
        known = None if key in folded else newest[key]
        again = _fold_late(conn, key, calls, newest=known, settle=settle)
        folded_now += [(key, chain) for chain in again]
    return {
        (key[0], member.event_id): place
        for key, chain in folded_now
        for member, place in chain.members
    }


def _comes_late(calls: Sequence[Call], chain: Chain) -> bool:
    """Whether one of *calls* may change what a call that is stored behind it means to *chain*."""
    if calls[0].key < chain.last_key:
        return True
    # A parallel success may be parallel no more once the chain forgets a failure.
    forgets = chain.failures + len(calls) > chains.LOOK_BACK
    return forgets and chain.beside is not None and calls[0].key < chain.beside


def write_chains(conn: Connection, changes: ChainChanges) -> None:
    """Write *changes*."""
    gone = sorted(set(changes.gone))
    run(conn, "DELETE FROM chain WHERE project_id = ? AND chain_id = ?", gone)
    insert_rows(
        conn, chain_table, CHAIN_COLUMNS, [chain_row(key, chain) for key, chain in changes.new]
    )
    for chains_, keep in ((changes.continued, OF_FIRST_FAILURE), (changes.changed, frozenset())):
        rows = [chain_row(key, chain) for key, chain in chains_]
        upsert_rows(conn, chain_table, CHAIN_COLUMNS, key=_KEY, rows=rows, keep=keep)
    names = ", ".join(f"{name} = ?" for name in Place._fields)
    moved = [(*place, call_id) for place, call_id in changes.moved]
    run(conn, f"UPDATE tool_call SET {names} WHERE id = ?", moved)


def _fold_late(
    conn: Connection, key: ChainKey, calls: list[Call], *, newest: Chain | None, settle: Settle
) -> list[Chain]:
    """Fold the windows around the late *calls* again, write them, and return their chains."""
    found: list[Chain] = []
    late = deque(calls)
    while late:
        at = late[0].key
        window = _Window(conn, key, at, before=_open_chain(conn, key, at, newest=newest))
        window.fold(late)
        window.write(settle)
        found += window.folded
        newest = None
    return found


class _Window:
    """The stored calls of one key around late ones, folded again.

    Args:
        conn: In a write transaction.
        key: Of which calls.
        at: Of the first late call. The window begins behind the failure before it.
        before: The stored chain that was open there.
    """

    def __init__(
        self, conn: Connection, key: ChainKey, at: OrderKey, *, before: Chain | None
    ) -> None:
        self.folded: list[Chain] = []
        self._conn, self._key, self._after = conn, key, at
        self._touched: list[StoredCall] = []
        # The chain that is open, as folded now and as stored.
        self._open: Chain | None = None
        self._stored_open: str | None = None
        # How many failures in a row were of one chain as folded and as stored, and the ids of both.
        self._alike = 0
        self._both: tuple[str | None, str] | None = None
        # The stored chains that began before the window and that go on behind it, and from where.
        self._before = before
        self._behind: Chain | None = None
        self._behind_at = at
        if self._before is not None:
            self._stored_open = self._before.chain_id
            known = failures_before(conn, key, at, chain_id=self._before.chain_id)
            self._open = _resumed(self._before, known)
            self._after = self._open.last_key
            self.folded.append(self._open)

    def fold(self, late: deque[Call]) -> None:
        """Fold up to where all is as it was; take from *late*, in order, what lies before."""
        for known in stored_calls(self._conn, self._key, after=self._after):
            if known.over_limit:
                continue
            while late and late[0].key < known.call.key:
                self._take(late.popleft())
                self._alike = 0
            if self._alike >= chains.LOOK_BACK:
                self._behind, self._behind_at = self._stored_chain(), known.call.key
                return
            if self._open is None and self._stored_open is None:
                return
            self._take_stored(known)
        while late:
            self._take(late.popleft())

    def write(self, settle: Settle) -> None:
        """Write what has changed, but for the late calls themselves."""
        seen: dict[str, Sums] = {}
        for known in self._touched:
            if known.place.chain_id is not None:
                so_far = seen.get(known.place.chain_id, _NOTHING)
                seen[known.place.chain_id] = _plus(so_far, _sums_of_call(known))
        before, behind = self._before, self._behind
        if before is not None:
            outside = _minus(_sums_of(before), seen.get(before.chain_id, _NOTHING))
            if behind is not None and behind.chain_id == before.chain_id and len(self.folded) > 1:
                rest = self._sum_behind(behind)
                _add(self.folded[-1], rest)
                outside = _minus(outside, rest)
            _add(self.folded[0], outside)
        if behind is not None:
            if before is None or behind.chain_id != before.chain_id:
                _add(self.folded[-1], _minus(_sums_of(behind), seen[behind.chain_id]))
            _end_as(self.folded[-1], behind)
        for each in self.folded:
            each.memory.renumber(each.failures)
            settle(self._key, each)
        write_chains(self._conn, self._changes(seen.keys()))
        if behind is not None and behind.chain_id != self.folded[-1].chain_id:
            sql = f"UPDATE tool_call SET chain_id = ? WHERE {_BEHIND}"
            run(self._conn, sql, [(self.folded[-1].chain_id, *self._of_rest(behind))])

    def _take(self, call: Call) -> None:
        if self._open is not None:
            self._open.add(call)
            if self._open.recovered:
                self._open = None
        elif not call.success:
            self._open = Chain.open(call)
            self.folded.append(self._open)

    def _take_stored(self, known: StoredCall) -> None:
        self._touched.append(known)
        self._take(known.call)
        stored_in = known.place.chain_id
        if stored_in is not None:
            self._stored_open = None if known.call.success else stored_in
        if self._open is not None and not known.call.success:
            both = (stored_in, self._open.chain_id)
            self._alike = self._alike + 1 if both == self._both else 1
            self._both = both

    def _stored_chain(self) -> Chain | None:
        """Return the stored chain that is open."""
        if self._before is not None and self._before.chain_id == self._stored_open:
            return self._before
        sql = f"SELECT {LOADED_COLUMNS} FROM chain WHERE project_id = ? AND chain_id = ?"
        rows = fetch(self._conn, sql, (self._key[0], self._stored_open))
        return read_chain(rows[0]) if rows else None

    def _changes(self, stored_in: Iterable[str]) -> ChainChanges:
        places = {call.event_id: place for each in self.folded for call, place in each.members}
        stored = {each.chain_id for each in (self._before, self._behind) if each is not None}
        gone = stored.union(stored_in).difference(each.chain_id for each in self.folded)
        moved = [
            (place, known.id)
            for known in self._touched
            if (place := places.get(known.call.event_id, Place())) != known.place
        ]
        return ChainChanges(
            changed=[(self._key, each) for each in self.folded],
            gone=[(self._key[0], chain_id) for chain_id in gone],
            moved=moved,
        )

    def _sum_behind(self, behind: Chain) -> Sums:
        """Return what the calls behind the window add to the stored chain *behind*."""
        rows = fetch(self._conn, f"SELECT {_ADDED_UP} WHERE {_BEHIND}", self._of_rest(behind))
        return tuple(int(value or 0) for value in rows[0])

    def _of_rest(self, behind: Chain) -> tuple[Any, ...]:
        return (*self._key, *self._behind_at, *behind.last_key, behind.chain_id)


# Written so that no index of chains is chosen, which would find the calls before the window too.
_BEHIND: Final = (
    f"{OF_KEY} AND (started_at, seq, event_id) >= (?, ?, ?)"
    " AND (started_at, seq, event_id) <= (?, ?, ?) AND coalesce(chain_id, '') = ?"
)
_FAILED: Final = "CASE WHEN success THEN 0 ELSE 1 END"
_ADDED_UP: Final = (
    f"count(*), sum({_FAILED}), "
    + ", ".join(f"count(nullif(chain_marks & {mark}, 0))" for mark in _MARKS)
    + f", sum(lost_us), sum(tokens * {_FAILED}), sum(CASE WHEN tokens IS NULL THEN 0 ELSE {_FAILED}"
    " END) FROM tool_call"
)


def _sums_of_call(known: StoredCall) -> Sums:
    marks, tokens = known.place.chain_marks or 0, known.call.tokens
    failed = not known.call.success
    return (
        1,
        int(failed),
        *(int(marks & mark > 0) for mark in _MARKS),
        known.place.lost_us or 0,
        (tokens or 0) if failed else 0,
        int(failed and tokens is not None),
    )


def _plus(one: Sums, other: Sums) -> Sums:
    return tuple(map(add, one, other))


def _minus(one: Sums, other: Sums) -> Sums:
    return tuple(map(sub, one, other))


def _add(chain: Chain, sums: Sums) -> None:
    """Add to *chain* what calls outside its window are to it."""
    for name, value in zip(_SUMS, sums, strict=True):
        setattr(chain, name, getattr(chain, name) + value)


def _resumed(chain: Chain, failures: Iterable[StoredCall]) -> Chain:
    """Return *chain* as it was after its last *failures*, with nothing added up yet."""
    resumed = replace(chain, recovered_at=None, beside=None, memory=Memory(), members=[])
    for name in _SUMS:
        setattr(resumed, name, 0)
    for each in failures:
        resumed.memory.add(each.call)
        resumed.attempt = each.place.attempt or 0
        resumed.last_started_at, resumed.last_seq, resumed.last_event_id = each.call.key
        resumed.last_failure_turn = each.call.turn
        resumed.failed_until = resumed.memory.ends[0][0]
    return resumed


def _end_as(chain: Chain, other: Chain) -> None:
    """Let *chain* end as *other* does, with which it has its last calls in common."""
    for name in _OF_END:
        setattr(chain, name, getattr(other, name))


def _open_chain(
    conn: Connection, key: ChainKey, at: OrderKey, *, newest: Chain | None
) -> Chain | None:
    """Return the stored chain of *key* that was open just before *at*; *newest* if it is known."""
    chain = newest
    if chain is None or at < (chain.started_at, chain.first_seq, chain.chain_id):
        sql = (
            f"SELECT {LOADED_COLUMNS} FROM chain WHERE {OF_KEY}"
            f" AND (started_at, first_seq, chain_id) < (?, ?, ?) {_NEWEST_FIRST}"
        )
        rows = fetch(conn, sql, (*key, *at))
        chain = read_chain(rows[0]) if rows else None
    return None if chain is None or (chain.recovered and chain.last_key < at) else chain


def _newest_chains(conn: Connection, keys: Sequence[ChainKey]) -> dict[ChainKey, Chain]:
    if not keys:
        return {}
    inner = f"SELECT {LOADED_COLUMNS} FROM chain WHERE {OF_KEY} {_NEWEST_FIRST}"
    if is_sqlite(conn):
        return {key: read_chain(row) for key in keys for row in fetch(conn, inner, key)}
    inner = (
        f"SELECT {LOADED_COLUMNS} FROM chain WHERE project_id = p AND session_id = s AND tool = t"
    )
    sql = (
        "SELECT p, s, t, newest.* FROM unnest(%s::int[], %s::text[], %s::text[]) AS k(p, s, t)"
        f" CROSS JOIN LATERAL ({inner} {_NEWEST_FIRST}) AS newest"
    )
    found = conn.exec_driver_sql(sql, tuple(map(array_text, zip(*keys, strict=True))))
    return {(row[0], row[1], row[2]): read_chain(row[3:]) for row in found}


def _followed(conn: Connection, since: Mapping[ChainKey, Call]) -> set[ChainKey]:
    """Return the keys that have a stored call after the given one."""
    if not since:
        return set()
    wanted = [(*key, *call.key) for key, call in since.items()]
    if is_sqlite(conn):
        sql = (
            f"SELECT 1 FROM tool_call WHERE {OF_KEY}"
            " AND (started_at, seq, event_id) > (?, ?, ?) LIMIT 1"
        )
        return {key for key, call in since.items() if fetch(conn, sql, (*key, *call.key))}
    sql = (
        "SELECT p, s, t FROM unnest(%s::int[], %s::text[], %s::text[], %s::bigint[], %s::bigint[],"
        " %s::text[]) AS k(p, s, t, a, q, e) WHERE EXISTS (SELECT 1 FROM tool_call WHERE"
        " project_id = p AND session_id = s AND tool = t"
        " AND (started_at, seq, event_id) > (a, q, e))"
    )
    found = conn.exec_driver_sql(sql, tuple(map(array_text, zip(*wanted, strict=True))))
    return {(row[0], row[1], row[2]) for row in found}


def compare_key(
    conn: Connection, key: ChainKey, conversations: Mapping[ConversationKey, Conversation]
) -> tuple[int, int, ChainChanges]:
    """Return calls read, chains made and what would have to change for *key*."""
    known = list(stored_calls(conn, key, after=(-(2**62), -(2**62), "")))
    chains = fold([each.call for each in known if not each.over_limit])
    changes = ChainChanges()
    before = stored_chain_rows(conn, key)
    for chain in chains:
        if key[:2] in conversations:
            conversations[key[:2]].settle(key[2], chain)
        if before.pop(chain.chain_id, None) != chain_row(key, chain):
            changes.changed.append((key, chain))
    changes.gone.extend((key[0], chain_id) for chain_id in before)
    places = _places(chains)
    for each in known:
        place = places.get(each.call.event_id, Place())
        if place != each.place:
            changes.moved.append((place, each.id))
    return len(known), len(chains), changes


def _places(chains: list[Chain]) -> dict[str, Place]:
    return {call.event_id: place for chain in chains for call, place in chain.members}
