"""Rows of the queries as programs get them: the same values as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from toolfault_collector.clock import format_time
from toolfault_dashboard.queries import RowStream

__all__ = ["as_json", "rows_as_json"]


def as_json(value: object, *, time: bool = False) -> Any:
    """A row of a query as JSON has it: times, in fields that end in ``_at``, are RFC 3339."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            each.name: as_json(
                getattr(value, each.name), time=each.name.endswith("_at") or each.name == "starts"
            )
            for each in fields(value)
        }
    if isinstance(value, Mapping):
        return {str(key): as_json(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [as_json(each, time=time) for each in value]
    return format_time(value) if time and isinstance(value, int) else value


def rows_as_json(stream: RowStream) -> list[dict[str, Any]]:
    """The rows of a table, each with its columns by name."""

    def cell(column: str, value: object) -> Any:
        kind = stream.kinds.get(column)
        if kind == "json" and isinstance(value, str):
            return json.loads(value)
        if kind == "boolean" and value is not None:
            return bool(value)
        return as_json(value, time=column in stream.times)

    return [
        {column: cell(column, value) for column, value in zip(stream.columns, row, strict=True)}
        for row in stream.rows
    ]
