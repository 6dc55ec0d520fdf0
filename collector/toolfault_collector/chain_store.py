"""Chains in the database: the fold of `chains`, continued at constant cost per call.

In the usual order a batch continues the newest stored chain of its key (project, conversation,
tool). A call that arrives late is folded again from the nearest point at which no chain was open,
up to the next such point, so the work does not depend on the length of the conversation.
"""

# ruff: noqa: S608 - only names of this code are put into statements, values are bound

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Connection

from toolfault_collector.arrays import array_text
from toolfault_collector.bulk import columns, fetch, insert_rows, run, upsert_rows
from toolfault_collector.chain_rows import (
    CHAIN_COLUMNS,
    LOADED_COLUMNS,
    OF_FIRST_FAILURE,
    OF_KEY,
    ChainKey,
    StoredCall,
    chain_row,
    read_chain,
    stored_calls,
)
from toolfault_collector.chains import Call, Chain, OrderKey, fold
from toolfault_collector.engine import is_sqlite
from toolfault_collector.tables import chain as chain_table

__all__ = ["ChainChanges", "continue_chains", "write_chains"]

_KEY: Final = columns("project_id chain_id")
_NEWEST_FIRST: Final = "ORDER BY started_at DESC, first_seq DESC, chain_id DESC LIMIT 1"


@dataclass(slots=True)
class ChainChanges:
    """What a batch changes among the chains of the keys it touched.

    Attributes:
        new: Chains that are not stored.
        continued: Stored chains that have grown at their end.
        changed: Chains that were folded again, stored or not.
        gone: Project and id of stored chains that are none any more.
        moved: Stored calls whose place changed: chain, attempt, id of the call.
    """

    new: list[tuple[ChainKey, Chain]] = field(default_factory=list)
    continued: list[tuple[ChainKey, Chain]] = field(default_factory=list)
    changed: list[tuple[ChainKey, Chain]] = field(default_factory=list)
    gone: list[tuple[int, str]] = field(default_factory=list)
    moved: list[tuple[str | None, int | None, int]] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether anything changes."""
        return bool(self.new or self.changed or self.gone or self.moved)


def continue_chains(
    conn: Connection, batches: Mapping[ChainKey, list[Call]], *, stored: set[ChainKey]
) -> ChainChanges:
    """Return what the new calls of *batches* change.

    Args:
        conn: In a write transaction that holds the conversations of the keys.
        batches: The new calls of each key, in order.
        stored: The keys that may have calls stored already.
    """
    changes = ChainChanges()
    newest = _newest_chains(conn, [key for key in batches if key in stored])
    folded: dict[ChainKey, list[Chain]] = {}
    since: dict[ChainKey, Call] = {}
    for key, calls in batches.items():
        chain = newest.get(key)
        if chain is not None and calls[0].key < chain.last_key:
            _fold_again(conn, key, calls, changes=changes)
            continue
        goes_on = chain if chain is not None and not chain.recovered else None
        turns = {None} if goes_on is None else {None, *goes_on.turns}
        folded[key] = fold(calls, goes_on)
        opened = next((one for one in folded[key] if one is not goes_on), None)
        if goes_on is not None and goes_on.forgets and any(one.turn not in turns for one in calls):
            since[key] = calls[0]
        elif opened is not None and key in stored:
            since[key] = opened.members[0][0]
    # A call stored behind an opening failure belongs to its chain: a success that had no chain to
    # end, or that was parallel to the chain which went on until now. Parallel it is no more once
    # the chain has forgotten its turn.
    followed = _followed(conn, since)
    for key, chains in folded.items():
        if key in followed:
            _fold_again(conn, key, batches[key], changes=changes)
        else:
            _record(changes, key, chains, continued=newest.get(key))
    return changes


def write_chains(conn: Connection, changes: ChainChanges) -> None:
    """Write *changes*."""
    gone = sorted(set(changes.gone))
    run(conn, "DELETE FROM chain WHERE project_id = ? AND chain_id = ?", gone)
    insert_rows(
        conn, chain_table, CHAIN_COLUMNS, [chain_row(key, chain) for key, chain in changes.new]
    )
    for chains, keep in ((changes.continued, OF_FIRST_FAILURE), (changes.changed, frozenset())):
        rows = [chain_row(key, chain) for key, chain in chains]
        upsert_rows(conn, chain_table, CHAIN_COLUMNS, key=_KEY, rows=rows, keep=keep)
    run(conn, "UPDATE tool_call SET chain_id = ?, attempt = ? WHERE id = ?", changes.moved)


def _record(
    changes: ChainChanges, key: ChainKey, chains: list[Chain], *, continued: Chain | None = None
) -> None:
    for chain in chains:
        (changes.continued if chain is continued else changes.new).append((key, chain))


def _fold_again(
    conn: Connection, key: ChainKey, calls: list[Call], *, changes: ChainChanges
) -> None:
    """Fold the stored calls around the late *calls* again, from clean point to clean point."""
    since = min(_clean_point(conn, key, calls[0].key), calls[0].key)
    pending = iter(calls)
    late = next(pending, None)
    chains: list[Chain] = []
    touched: list[StoredCall] = []
    open_chain: Chain | None = None
    was_open = False

    def take(call: Call) -> None:
        nonlocal open_chain
        added = fold([call], open_chain)
        chains.extend(chain for chain in added if chain is not open_chain)
        last = added[-1] if added else None
        open_chain = None if last is None or last.recovered else last

    for known in stored_calls(conn, key, since=since):
        while late is not None and late.key < known.call.key:
            take(late)
            late = next(pending, None)
        if late is None and open_chain is None and not was_open:
            break
        if known.chain_id is not None:
            was_open = not known.call.success
        touched.append(known)
        take(known.call)
    while late is not None:
        take(late)
        late = next(pending, None)
    _compare(changes, key, chains, touched=touched)


def _compare(
    changes: ChainChanges, key: ChainKey, chains: list[Chain], *, touched: list[StoredCall]
) -> None:
    places = {
        call.event_id: (chain.chain_id, attempt)
        for chain in chains
        for call, attempt in chain.members
    }
    before = {known.chain_id for known in touched if known.chain_id is not None}
    changes.changed.extend((key, chain) for chain in chains)
    after = {chain.chain_id for chain in chains}
    changes.gone.extend((key[0], chain_id) for chain_id in sorted(before - after))
    for known in touched:
        place = places.get(known.call.event_id, (None, None))
        if place != (known.chain_id, known.attempt):
            changes.moved.append((*place, known.id))


def _clean_point(conn: Connection, key: ChainKey, at: OrderKey) -> OrderKey:
    """Return the last point up to *at* where no chain of *key* was open."""
    sql = (
        f"SELECT {LOADED_COLUMNS} FROM chain WHERE {OF_KEY}"
        f" AND (started_at, first_seq, chain_id) < (?, ?, ?) {_NEWEST_FIRST}"
    )
    rows = fetch(conn, sql, (*key, *at))
    if not rows:
        return at
    chain = read_chain(rows[0])
    if chain.recovered and chain.last_key < at:
        return at
    return (chain.started_at, chain.first_seq, chain.chain_id)


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
