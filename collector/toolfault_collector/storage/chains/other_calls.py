"""The calls of other tools that each chain cost, counted wherever a transaction may change them.

The number is a function of the stored calls, so it does not depend on the order in which they came.
It is counted again for the chains that were written, for those whose outcome changed, and, where a
call comes late, for the one chain of each other tool that the call lies in. Each costs a look by
index for every tool of the conversation and `MOST_OTHER_CALLS` calls, however long it is.
"""

# ruff: noqa: S608 - only names of this code are put into statements, values are bound

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection

from toolfault_collector.chains.fold import Chain
from toolfault_collector.chains.other_calls import (
    MOST_OTHER_CALLS,
    ChainSpan,
    OtherCall,
    count_other_calls,
    is_looked_at,
)
from toolfault_collector.protocol.records import CallRecord
from toolfault_collector.storage.chains.chain_rows import ChainKey
from toolfault_collector.storage.chains.conversations import ConversationKey
from toolfault_collector.storage.database.bulk import (
    columns,
    fetch,
    run,
    select_in,
    update_rows,
)
from toolfault_collector.storage.database.engine import is_sqlite
from toolfault_collector.storage.database.postgres import array_text
from toolfault_collector.storage.tables import chain as chain_table

__all__ = ["WrittenChains", "recount_other_calls", "write_other_calls"]

WrittenChains = Mapping[tuple[int, str], tuple[ChainKey, Chain]]
"""Chains that a transaction wrote, by project and id."""


def write_other_calls(
    conn: Connection,
    calls: Iterable[CallRecord],
    *,
    written: WrittenChains,
    changed: Iterable[int],
    known_until: Mapping[ConversationKey, int],
) -> None:
    """Write the other calls of all chains whose number *calls* may have changed.

    Args:
        conn: In a write transaction that has stored the calls and what their chains come to.
        calls: The new calls.
        written: The chains that were written.
        changed: The row ids of further chains whose outcome changed.
        known_until: The latest end of a call in the conversations that were stored before.
    """
    of_new: dict[ConversationKey, list[OtherCall]] = {}
    late: dict[ConversationKey, list[tuple[int, int]]] = {}
    for call in calls:
        if call.session_id is None:
            continue
        talk = (call.project_id, call.session_id)
        if talk not in known_until:
            of_new.setdefault(talk, []).append(_other_call(call))
        elif call.started_at <= known_until[talk]:
            late.setdefault(talk, []).append((call.started_at, call.seq))
    stored: dict[int, list[str]] = {}
    rows = []
    for (project_id, chain_id), (key, chain) in written.items():
        if key[:2] in known_until:
            stored.setdefault(project_id, []).append(chain_id)
        elif number := _count_new(key, chain, of_new[key[:2]]):
            rows.append((number, project_id, chain_id))
    sql = "UPDATE chain SET other_calls = ? WHERE project_id = ? AND chain_id = ?"
    run(conn, sql, sorted(rows))
    ids = {*changed, *_chains_around(conn, late)}
    for project_id, chain_ids in stored.items():
        sql = "SELECT id FROM chain WHERE project_id = ? AND chain_id IN ?"
        ids |= {row[0] for row in select_in(conn, sql, fixed=(project_id,), among=chain_ids)}
    recount_other_calls(conn, ids)


def recount_other_calls(conn: Connection, ids: Collection[int], *, repair: bool = True) -> int:
    """Count the other calls of chains again, and return of how many the stored number is another.

    Args:
        conn: An open connection, in a write transaction if *repair* is true.
        ids: Row ids of the chains.
        repair: Write what was counted where it differs.
    """
    rows = []
    for chain_id, stored, span, calls in _stored_spans(conn, sorted(ids)):
        number = count_other_calls(span, calls)
        if number != stored:
            rows.append((chain_id, number))
    if repair:
        names, change = ("id", "other_calls"), "other_calls = given.other_calls"
        update_rows(conn, chain_table, names, change=change, rows=rows)
    return len(rows)


def _other_call(call: CallRecord) -> OtherCall:
    return OtherCall(call.started_at, call.seq, call.event_id, call.tool, call.turn, call.success)


def _count_new(key: ChainKey, chain: Chain, calls: list[OtherCall]) -> int:
    """Return the other calls of a chain whose conversation is all in this transaction."""
    first, _ = chain.members[0]
    span = ChainSpan(
        key[2],
        chain.started_at,
        chain.first_seq,
        chain.first_failed_at,
        first.turn,
        chain.last_started_at,
        chain.last_seq,
        chain.failed_until,
        chain.last_failure_turn,
        chain.outcome == "switched",
    )
    return count_other_calls(span, sorted(call for call in calls if is_looked_at(call, span)))


_SPAN: Final = ", ".join(
    [f"c.{name}" for name in columns("tool started_at first_seq first_failed_at")]
    + ["f.turn"]
    + [
        f"c.{name}"
        for name in columns("last_started_at last_seq failed_until last_failure_turn outcome")
    ]
)
_SPANS: Final = (
    f"SELECT c.id, c.other_calls, c.project_id, c.session_id, {_SPAN}"
    " FROM chain c JOIN tool_call f ON f.project_id = c.project_id AND f.event_id = c.chain_id"
    " WHERE c.id IN ?"
)
# The tools of a conversation, each found by one look at the index.
_TOOLS: Final = (
    "WITH RECURSIVE tools(tool) AS ("
    "SELECT (SELECT min(tool) FROM {table} WHERE project_id = {p} AND session_id = {s})"
    " UNION ALL SELECT (SELECT min(tool) FROM {table} WHERE project_id = {p}"
    " AND session_id = {s} AND tool > tools.tool) FROM tools WHERE tools.tool IS NOT NULL)"
)
_ORDER: Final = "started_at, seq, event_id"
_FOUND: Final = f"{_ORDER}, tool, turn, success"
# `is_looked_at` of another tool.
_LOOKED_AT: Final = (
    "SELECT {shown} FROM tool_call WHERE project_id = {p} AND session_id = {s}"
    " AND tool = tools.tool AND (started_at, seq) > ({at}, {seq})"
    " AND (CASE WHEN turn IS NULL OR {turn} IS NULL"
    " THEN started_at >= {failed_at} ELSE turn <> {turn} END"
    " OR (success AND (started_at, seq) > ({last_at}, {last_seq})"
    " AND CASE WHEN turn IS NULL OR {last_turn} IS NULL"
    " THEN started_at >= {failed_until} ELSE turn <> {last_turn} END))"
    f" ORDER BY {_ORDER} LIMIT {MOST_OTHER_CALLS}"
)
_IN_SQLITE: Final = {
    "p": "?1", "s": "?2", "own": "?3", "at": "?4", "seq": "?5", "failed_at": "?6", "turn": "?7",
    "last_at": "?8", "last_seq": "?9", "failed_until": "?10", "last_turn": "?11",
}  # fmt: skip
_SQLITE: Final = (
    f"{_TOOLS.format(table='tool_call', **_IN_SQLITE)} SELECT {_FOUND} FROM tool_call WHERE id IN"
    f" (SELECT of_tool.id FROM tools JOIN tool_call of_tool ON of_tool.id IN"
    f" ({_LOOKED_AT.format(shown='id', **_IN_SQLITE)}) WHERE tools.tool <> ?3)"
    f" ORDER BY {_ORDER} LIMIT {MOST_OTHER_CALLS}"
)
_IN_POSTGRESQL: Final = {
    "p": "c.project_id", "s": "c.session_id", "own": "c.tool", "at": "c.started_at",
    "seq": "c.first_seq", "failed_at": "c.first_failed_at", "turn": "f.turn",
    "last_at": "c.last_started_at", "last_seq": "c.last_seq",
    "failed_until": "c.failed_until", "last_turn": "c.last_failure_turn",
}  # fmt: skip
_POSTGRESQL: Final = (
    f"SELECT c.id, c.other_calls, c.project_id, c.session_id, {_SPAN}, found.*"
    " FROM chain c JOIN tool_call f ON f.project_id = c.project_id AND f.event_id = c.chain_id"
    f" LEFT JOIN LATERAL ({_TOOLS.format(table='tool_call', **_IN_POSTGRESQL)}"
    f" SELECT one.* FROM tools CROSS JOIN LATERAL"
    f" ({_LOOKED_AT.format(shown=_FOUND, **_IN_POSTGRESQL)}) AS one WHERE tools.tool <> c.tool"
    f" ORDER BY {_ORDER} LIMIT {MOST_OTHER_CALLS}) AS found ON true"
    f" WHERE c.id IN ? ORDER BY c.id, {', '.join(f'found.{name}' for name in _ORDER.split(', '))}"
)


def _stored_spans(
    conn: Connection, ids: Sequence[int]
) -> Iterable[tuple[int, int, ChainSpan, Sequence[OtherCall]]]:
    """Yield id, stored number, span and first other calls of the chains of *ids*."""
    if not is_sqlite(conn):
        yield from _grouped(select_in(conn, _POSTGRESQL, among=ids))
        return
    for row in select_in(conn, _SPANS, among=ids):
        chain_id, stored, project_id, session_id, *of_chain = row
        span = _span(of_chain)
        key = (project_id, session_id, *span[:9])
        found = fetch(conn, _SQLITE, key)
        calls = [OtherCall._make((*each[:5], bool(each[5]))) for each in found]
        yield chain_id, stored, span, calls


def _grouped(
    rows: Iterable[Any],
) -> Iterable[tuple[int, int, ChainSpan, Sequence[OtherCall]]]:
    chains: dict[int, tuple[int, ChainSpan, list[OtherCall]]] = {}
    width = 4 + len(ChainSpan._fields)
    for row in rows:
        _, _, calls = chains.setdefault(row[0], (row[1], _span(row[4:width]), []))
        if row[width] is not None:
            calls.append(OtherCall(*row[width:]))
    for chain_id, (stored, span, calls) in chains.items():
        yield chain_id, stored, span, calls


def _span(values: Sequence[Any]) -> ChainSpan:
    return ChainSpan._make((*values[:9], values[9] == "switched"))


# The newest chain of each tool that began before a call, if the call may lie in it.
_AROUND: Final = (
    "SELECT c.id FROM tools JOIN chain c ON c.id = (SELECT id FROM chain WHERE project_id = {p}"
    " AND session_id = {s} AND tool = tools.tool AND (started_at, first_seq) < ({at}, {seq})"
    " ORDER BY started_at DESC, first_seq DESC, chain_id DESC LIMIT 1)"
    " WHERE tools.tool IS NOT NULL AND (c.recovered_at IS NULL"
    " OR (c.last_started_at, c.last_seq) > ({at}, {seq}))"
)


def _chains_around(
    conn: Connection, late: Mapping[ConversationKey, Iterable[tuple[int, int]]]
) -> set[int]:
    """Return the row ids of the chains that one of the *late* calls lies in, or comes after."""
    wanted = [(*talk, *place) for talk, places in late.items() for place in sorted(set(places))]
    if not wanted:
        return set()
    if is_sqlite(conn):
        names = {"p": "?1", "s": "?2", "at": "?3", "seq": "?4"}
        sql = f"{_TOOLS.format(table='chain', **names)} {_AROUND.format(**names)}"
        return {row[0] for key in wanted for row in fetch(conn, sql, key)}
    names = {"p": "k.p", "s": "k.s", "at": "k.at", "seq": "k.seq"}
    inner = f"{_TOOLS.format(table='chain', **names)} {_AROUND.format(**names)}"
    sql = (
        "SELECT found.id FROM unnest(%s::int[], %s::text[], %s::bigint[], %s::bigint[])"
        f" AS k(p, s, at, seq) CROSS JOIN LATERAL ({inner}) AS found"
    )
    found = conn.exec_driver_sql(sql, tuple(map(array_text, zip(*wanted, strict=True))))
    return {row[0] for row in found}
