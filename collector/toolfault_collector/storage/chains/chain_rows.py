"""Chains and the calls they are made of, as rows and as what `chains.fold` takes."""

# ruff: noqa: S608 - only names of this code are put into statements, values are bound

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

import msgspec
from sqlalchemy import Connection

from toolfault_collector.chains import fold as chains
from toolfault_collector.chains.fold import Call, Chain, Memory, OrderKey, Place
from toolfault_collector.storage.database.bulk import bind, columns, fetch, select_in
from toolfault_collector.storage.name_limits import TOOL_LIMIT

__all__ = [
    "CHAIN_COLUMNS",
    "LOADED_COLUMNS",
    "OF_FIRST_FAILURE",
    "OF_KEY",
    "ChainKey",
    "StoredCall",
    "chain_row",
    "failures_before",
    "read_chain",
    "stored_calls",
    "stored_chain_rows",
]

# Chains are kept apart by project, conversation and tool.
ChainKey = tuple[int, str, str]

_CONTEXT: Final = columns("agent model environment release variant")
_PLAIN: Final = columns(
    "chain_id started_at first_seq first_failed_at last_started_at last_seq last_event_id"
    " failed_until last_failure_turn first_code first_category first_field first_message_id calls"
    " failures round_trips recovered_at identical_repeats serial_discoveries repeat_confusions"
    " token_reports"
)
CHAIN_COLUMNS: Final = (
    *columns("project_id session_id tool"),
    *_CONTEXT,
    *_PLAIN,
    *columns("last_at outcome settles_at first_retry_fix serial_discovery repeat_confusion"),
    *columns("time_lost_ms tokens_lost time_source state"),
)
# What the first failure decides, so that no later call changes it.
OF_FIRST_FAILURE: Final = frozenset(
    columns(
        "session_id tool agent model environment release variant started_at first_seq"
        " first_failed_at first_code first_category first_field first_message_id time_source"
    )
)
_STATE: Final = CHAIN_COLUMNS.index("state")
_LOADED: Final = (*_CONTEXT, *_PLAIN, *columns("time_lost_ms tokens_lost time_source state"))
LOADED_COLUMNS: Final = ", ".join(_LOADED)
OF_KEY: Final = "project_id = ? AND session_id = ? AND tool = ?"
_VALUES: Final = attrgetter(*_PLAIN)

_CallRow = namedtuple(
    "_CallRow",
    "id success code event_id started_at occurred_at seq turn time_source category message_id"
    " args_fingerprint tokens agent model environment release variant chain_id attempt chain_marks"
    " lost_us flags",
)
_CALL_COLUMNS: Final = ", ".join(_CallRow._fields)

# Calls read at a time: around a late one `LOOK_BACK` failures are needed, and seldom more calls.
PAGE: Final = 100


@dataclass(slots=True)
class StoredCall:
    """One stored call with its place among the chains; the place of one *over_limit* is none."""

    id: int
    call: Call
    place: Place
    over_limit: bool


def stored_calls(conn: Connection, key: ChainKey, *, after: OrderKey) -> Iterator[StoredCall]:
    """Yield the stored calls of *key* after *after*, in order, read a page at a time."""
    sql = (
        f"SELECT {_CALL_COLUMNS} FROM tool_call WHERE {OF_KEY}"
        " AND (started_at, seq, event_id) > (?, ?, ?)"
        f" ORDER BY started_at, seq, event_id LIMIT {PAGE}"
    )
    while True:
        page = _read_calls(conn, fetch(conn, sql, (*key, *after)))
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].call.key


def failures_before(
    conn: Connection, key: ChainKey, at: OrderKey, *, chain_id: str
) -> list[StoredCall]:
    """Return the last `LOOK_BACK` calls up to *at* of a chain that is open there, in order."""
    # The condition on the chain is written so that no index of it is chosen.
    sql = (
        f"SELECT {_CALL_COLUMNS} FROM tool_call WHERE {OF_KEY}"
        " AND (started_at, seq, event_id) < (?, ?, ?) AND coalesce(chain_id, '') = ?"
        f" ORDER BY started_at DESC, seq DESC, event_id DESC LIMIT {chains.LOOK_BACK}"
    )
    return _read_calls(conn, fetch(conn, sql, (*key, *at, chain_id))[::-1])


def stored_chain_rows(conn: Connection, key: ChainKey) -> dict[str, tuple[Any, ...]]:
    """Return the stored chains of *key* by id, comparable with `chain_row`."""
    names = ", ".join(CHAIN_COLUMNS)
    sql = bind(conn, f"SELECT {names} FROM chain WHERE {OF_KEY}")
    found = {}
    for row in conn.exec_driver_sql(sql, key):
        values = list(row)
        if values[_STATE] is not None and not isinstance(values[_STATE], str):
            values[_STATE] = msgspec.json.encode(values[_STATE]).decode()
        found[row.chain_id] = tuple(values)
    return found


def _issues(conn: Connection, call_ids: Iterable[int]) -> dict[int, tuple[tuple[str, str], ...]]:
    sql = (
        "SELECT tool_call_id, field_pattern, code FROM issue WHERE tool_call_id IN ?"
        " ORDER BY tool_call_id, position"
    )
    found: dict[int, tuple[tuple[str, str], ...]] = {}
    for call_id, pattern, code in select_in(conn, sql, among=call_ids):
        found[call_id] = (*found.get(call_id, ()), (pattern, code))
    return found


def _read_calls(conn: Connection, rows: Sequence[Any]) -> list[StoredCall]:
    """Return the calls of *rows*, which have `_CALL_COLUMNS`."""
    calls = list(map(_CallRow._make, rows))
    issues = _issues(conn, [call.id for call in calls if not call.success])
    return [_read_call(call, issues.get(call.id, ())) for call in calls]


def _read_call(row: Any, fields: tuple[tuple[str, str], ...]) -> StoredCall:
    call = Call(
        event_id=row.event_id,
        started_at=row.started_at,
        occurred_at=row.occurred_at,
        seq=row.seq,
        turn=row.turn,
        success=bool(row.success),
        time_source=row.time_source,
        code=row.code or "",
        category=row.category,
        fields=fields,
        message_id=row.message_id,
        args_fingerprint=row.args_fingerprint,
        tokens=row.tokens,
        context=(row.agent, row.model, row.environment, row.release, row.variant),
    )
    place = Place(row.chain_id, row.attempt, row.chain_marks, row.lost_us)
    # A list on PostgreSQL, its text on SQLite.
    return StoredCall(row.id, call, place, TOOL_LIMIT in (row.flags or ()))


def read_chain(row: Sequence[Any]) -> Chain:
    """Return the chain of a row that has `LOADED_COLUMNS`."""
    values = dict(zip(_LOADED, row, strict=True))
    context = tuple(values.pop(name) for name in _CONTEXT)
    lost_ms, state = values.pop("time_lost_ms"), values.pop("state")
    values["tokens_lost"] = values["tokens_lost"] or 0
    memory, beside = Memory(), None
    if state is not None:
        state = msgspec.json.decode(state) if isinstance(state, str) else state
        memory = Memory(
            values["failures"],
            state["turns"],
            state["fingerprints"],
            {(pattern, code): number for pattern, code, number in state["fields"]},
            state["ends"],
            state["unturned_ends"],
        )
        beside = tuple(state["beside"]) if state["beside"] else None
    attempt = min(values["calls"], chains.LOOK_BACK + 1)
    return Chain(
        **values,
        context=context,
        time_lost_us=round(lost_ms * 1_000),
        memory=memory,
        beside=beside,
        attempt=attempt,
    )


def chain_row(key: ChainKey, chain: Chain) -> tuple[Any, ...]:
    """Return the row of *chain*, in the order of `CHAIN_COLUMNS`."""
    state, memory = None, chain.memory
    if chain.recovered_at is None:
        state = {
            "turns": memory.turns,
            "fingerprints": memory.fingerprints,
            "fields": [(*pair, number) for pair, number in memory.fields.items()],
            "ends": memory.ends,
            "unturned_ends": memory.unturned_ends,
            "beside": chain.beside,
        }
    return (
        *key,
        *chain.context,
        *_VALUES(chain),
        chain.last_at,
        chain.outcome,
        chain.settles_at,
        chain.first_retry_fix,
        chain.serial_discoveries > 0,
        chain.repeat_confusions > 0,
        chain.time_lost_us / 1_000,
        chain.tokens_lost if chain.token_reports else None,
        chain.time_source,
        None if state is None else msgspec.json.encode(state).decode(),
    )
