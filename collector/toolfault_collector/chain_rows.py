"""Chains and the calls they are made of, as rows and as what `chains` folds."""

# ruff: noqa: S608 - only names of this code are put into statements, values are bound

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

import msgspec
from sqlalchemy import Connection

from toolfault_collector.bulk import bind, columns, select_in
from toolfault_collector.chains import Call, Chain, OrderKey

__all__ = [
    "CHAIN_COLUMNS",
    "LOADED_COLUMNS",
    "OF_FIRST_FAILURE",
    "OF_KEY",
    "ChainKey",
    "StoredCall",
    "chain_row",
    "read_chain",
    "stored_calls",
    "stored_chain_rows",
]

# Chains are kept apart by project, conversation and tool.
ChainKey = tuple[int, str, str]

_CONTEXT: Final = columns("agent model environment release variant")
_PLAIN: Final = columns(
    "chain_id started_at first_seq first_failed_at last_at last_started_at last_seq last_event_id"
    " failed_until last_failure_turn first_code first_category first_field first_message_id calls"
    " failures round_trips recovered_at identical_repeats serial_discovery repeat_confusion"
    " tokens_lost"
)
CHAIN_COLUMNS: Final = (
    *columns("project_id session_id tool"),
    *_CONTEXT,
    *_PLAIN,
    *columns("outcome first_retry_fix time_lost_ms time_source state"),
)
# What the first failure decides, so that no later call changes it.
OF_FIRST_FAILURE: Final = frozenset(
    columns(
        "session_id tool agent model environment release variant started_at first_seq"
        " first_failed_at first_code first_category first_field first_message_id time_source"
    )
)
_OUTCOME: Final = CHAIN_COLUMNS.index("outcome")
_STATE: Final = CHAIN_COLUMNS.index("state")
_LOADED: Final = (*_CONTEXT, *_PLAIN, *columns("time_lost_ms time_source state"))
LOADED_COLUMNS: Final = ", ".join(_LOADED)
OF_KEY: Final = "project_id = ? AND session_id = ? AND tool = ?"
_VALUES: Final = attrgetter(*_PLAIN)

# Calls read at a time when chains are folded again.
PAGE: Final = 200


@dataclass(slots=True)
class StoredCall:
    """One stored call with its place among the chains."""

    id: int
    call: Call
    chain_id: str | None
    attempt: int | None


def stored_calls(conn: Connection, key: ChainKey, *, since: OrderKey) -> Iterator[StoredCall]:
    """Yield the stored calls of *key* from *since* on, in order, read a page at a time."""
    compare = ">="
    while True:
        sql = bind(
            conn,
            "SELECT id, event_id, started_at, occurred_at, seq, turn, success, time_source, code,"
            " category, message_id, args_fingerprint, tokens, agent, model, environment, release,"
            f" variant, chain_id, attempt FROM tool_call WHERE {OF_KEY}"
            f" AND (started_at, seq, event_id) {compare} (?, ?, ?)"
            f" ORDER BY started_at, seq, event_id LIMIT {PAGE}",
        )
        page = conn.exec_driver_sql(sql, (*key, *since)).all()
        issues = _issues(conn, [row.id for row in page if not row.success])
        for row in page:
            yield _read_call(row, issues.get(row.id, ()))
        if len(page) < PAGE:
            return
        compare, since = ">", (page[-1].started_at, page[-1].seq, page[-1].event_id)


def stored_chain_rows(conn: Connection, key: ChainKey) -> dict[str, tuple[Any, ...]]:
    """Return the stored chains of *key* by id, comparable with `chain_row`.

    A chain that is not recovered counts as open: its stored outcome is settled from time to time.
    """
    names = ", ".join(CHAIN_COLUMNS)
    sql = bind(conn, f"SELECT {names} FROM chain WHERE {OF_KEY}")
    found = {}
    for row in conn.exec_driver_sql(sql, key):
        values = list(row)
        if values[_OUTCOME] != "recovered":
            values[_OUTCOME] = "open"
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
    return StoredCall(row.id, call, row.chain_id, row.attempt)


def read_chain(row: Sequence[Any]) -> Chain:
    """Return the chain of a row that has `LOADED_COLUMNS`."""
    values = dict(zip(_LOADED, row, strict=True))
    context = tuple(values.pop(name) for name in _CONTEXT)
    lost_ms, state = values.pop("time_lost_ms"), values.pop("state")
    state = msgspec.json.decode(state) if isinstance(state, str) else state or {}
    state["seen_fields"] = [tuple(pair) for pair in state.get("seen_fields", ())]
    values["serial_discovery"] = bool(values["serial_discovery"])
    values["repeat_confusion"] = bool(values["repeat_confusion"])
    return Chain(**values, **state, context=context, time_lost_us=round(lost_ms * 1_000))


def chain_row(key: ChainKey, chain: Chain) -> tuple[Any, ...]:
    """Return the row of *chain*, in the order of `CHAIN_COLUMNS`."""
    state = None
    if not chain.recovered:
        state = {
            "turns": chain.turns,
            "unturned_until": chain.unturned_until,
            "covered_until": chain.covered_until,
            "fingerprints": chain.fingerprints,
            "seen_fields": chain.seen_fields,
        }
    return (
        *key,
        *chain.context,
        *_VALUES(chain),
        "recovered" if chain.recovered else "open",
        chain.first_retry_fix,
        chain.time_lost_us / 1_000,
        chain.time_source,
        None if state is None else msgspec.json.encode(state).decode(),
    )
