"""Which calls of a chain are round trips, call by call: what its row has only the number of.

The calls of a chain with parallel calls have to be looked at one by one: those that the model
issued beside a failure are no round trips. The fold is the collector's
(``toolfault_collector.chains``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, Text, case, cast, func, select

from toolfault_collector.chains import Call, Chain
from toolfault_collector.engine import is_sqlite
from toolfault_collector.tables import chain, tool_call

__all__ = ["calls_of_chain", "round_trips"]

_OF_CALL: Final = (
    "event_id", "started_at", "occurred_at", "seq", "turn", "success", "time_source",
)  # fmt: skip
"""What the fold wants to know of a call."""


def calls_of_chain(conn: Connection) -> ColumnElement[str]:
    """Return the calls of a row of ``chain`` as JSON where any was issued beside another.

    It is null where the row tells: its calls are its round trips and the first.
    """
    member = tool_call.alias("member")
    lite = is_sqlite(conn)
    values = (member.c.attempt, *(member.c[name] for name in _OF_CALL))
    one = (func.json_array if lite else func.json_build_array)(*values)
    of_chain = (
        select(cast((func.json_group_array if lite else func.json_agg)(one), Text))
        .where(member.c.project_id == chain.c.project_id, member.c.chain_id == chain.c.chain_id)
        .correlate(chain)
        .scalar_subquery()
    )
    return case((chain.c.calls != chain.c.round_trips + 1, of_chain))


def round_trips(calls: str) -> list[tuple[int, bool]]:
    """Return the attempts of a chain in order, and whether each was a round trip.

    Args:
        calls: What `calls_of_chain` selects.
    """
    rows: list[list[Any]] = msgspec.json.decode(calls)
    return list(_folded(sorted(rows, key=lambda row: int(row[0]))))


def _folded(rows: Sequence[Sequence[Any]]) -> Iterator[tuple[int, bool]]:
    so_far: Chain | None = None
    for attempt, *about in rows:
        call = Call(**dict(zip(_OF_CALL, about, strict=True)))
        before = 0 if so_far is None else so_far.round_trips
        if so_far is None:
            so_far = Chain.open(call)
        else:
            so_far.add(call)
        yield attempt, so_far.round_trips > before
