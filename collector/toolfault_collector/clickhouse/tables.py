"""The schema on ClickHouse: which tables of SQL are shipped, and how they lie there.

A row is shipped again whenever it changes, with a higher ``version``; of rows with one sorting key
`ReplacingMergeTree` keeps the last, and the setting ``final`` makes reading do so before it merged
them. So a sorting key may only have columns that never change of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import BigInteger, Boolean, Column, Float, Integer, LargeBinary, Table

from toolfault_collector.clock import MINUTE_US
from toolfault_collector.storage import tables
from toolfault_collector.storage.database.bulk import columns

__all__ = ["DDL", "SHIPPED", "VERSION", "Shipped", "type_of"]

_HOUR_US: Final = 60 * MINUTE_US

VERSION: Final = "shipment"
"""The column that says with which shipment a row came."""


@dataclass(frozen=True, slots=True)
class Shipped:
    """A table of SQL that is shipped.

    Attributes:
        table: The table, under the same name and with the same columns there.
        key: The columns by which the outbox names a row.
        order: The sorting key.
        month: The column in microseconds since the epoch whose month is the partition; none for
            tables that are small, or whose rows have no time that never changes.
    """

    table: Table
    key: tuple[str, ...]
    order: tuple[str, ...]
    month: str | None = None


_BY_ID: Final = ("id",)

SHIPPED: Final[tuple[Shipped, ...]] = (
    Shipped(tables.message, _BY_ID, ("project_id", "id")),
    Shipped(tables.signature, _BY_ID, ("project_id", "id")),
    Shipped(tables.conversation_end, _BY_ID, ("project_id", "id")),
    Shipped(
        tables.call_counts,
        _BY_ID,
        ("project_id", f"intDiv(minute, {_HOUR_US})", "id"),
        "minute",
    ),
    Shipped(
        tables.tool_call,
        _BY_ID,
        ("project_id", f"intDiv(occurred_at, {_HOUR_US})", "tool", "id"),
        "occurred_at",
    ),
    Shipped(
        tables.issue,
        ("tool_call_id",),
        ("project_id", f"intDiv(occurred_at, {_HOUR_US})", "tool_call_id", "position"),
        "occurred_at",
    ),
    Shipped(tables.chain, _BY_ID, ("project_id", "id")),
    Shipped(
        tables.conversation,
        ("project_id", "session_id"),
        ("project_id", "session_id"),
    ),
)
"""In the order in which a shipment writes them: what rows refer to comes before them."""

# Columns of few different values: stored as numbers into a list of them.
_FEW: Final = frozenset(
    columns(
        "agent audience category code conversation_rung detection environment event_type"
        " exception_type field_pattern first_category first_code framework kind model outcome"
        " phase provider reason received_type release root_field rung side time_source tool type"
        " validation_mode validation_version variant"
    )
)


def type_of(column: Column[object]) -> str:
    """Return the type of *column* on ClickHouse; what is JSON in SQL is text there."""
    kind = "String"
    if isinstance(column.type, Boolean):
        kind = "Bool"
    elif isinstance(column.type, Float):
        kind = "Float64"
    elif isinstance(column.type, BigInteger | Integer):
        kind = "Int64"
    elif isinstance(column.type, LargeBinary):
        raise TypeError(f"{column} has bytes, which are not shipped")
    if column.nullable:
        kind = f"Nullable({kind})"
    return f"LowCardinality({kind})" if column.name in _FEW else kind


def _create(shipped: Shipped) -> str:
    made = [f"`{each.name}` {type_of(each)}" for each in shipped.table.columns]
    made.append(f"`{VERSION}` UInt64")
    month = f" PARTITION BY toYYYYMM(fromUnixTimestamp64Micro({shipped.month}, 'UTC'))"
    return (
        f"CREATE TABLE IF NOT EXISTS `{shipped.table.name}` ({', '.join(made)})"
        f" ENGINE = ReplacingMergeTree({VERSION})"
        f"{month if shipped.month else ''}"
        f" ORDER BY ({', '.join(shipped.order)})"
    )


def _merge_whole_months(shipped: Shipped) -> str:
    """Return the statement that makes one part of a month to which nothing came for a day.

    Reading with ``final`` compares the rows of several parts, which takes three times as long. Once
    a day at most, since that writes the month anew.
    """
    return (
        f"ALTER TABLE `{shipped.table.name}` MODIFY SETTING"
        " min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1"
    )


DDL: Final[Sequence[Sequence[str]]] = (
    tuple(_create(each) for each in SHIPPED),
    tuple(_merge_whole_months(each) for each in SHIPPED if each.month),
)
"""The statements of each version of the schema there, the first version first."""
