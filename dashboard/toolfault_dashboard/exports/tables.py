"""Tables of a page as row streams: every table exports exactly what it shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final

from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.queries.lists.streams import RowStream

__all__ = ["table_stream"]

# As annotations are written: modules that define rows postpone their evaluation.
_KINDS: Final = {"int": "integer", "float": "number", "bool": "boolean"}


def table_stream(
    rows: Sequence[Any], kind: type, *, without: frozenset[str] = frozenset()
) -> RowStream:
    """Return dataclass *rows* of *kind* as a stream; a ``Rate`` becomes four columns.

    Fields whose name ends in ``_at`` are times. Fields that hold further rows are left
    out, and those named in *without*.
    """
    columns: list[str] = []
    kinds: dict[str, str] = {}
    for field in fields(kind):
        if field.name in without:
            continue
        if field.type in {"Rate", Rate}:
            parts = [f"{field.name}{part}" for part in ("", "_low", "_high", "_n")]
            kinds |= dict.fromkeys(parts[:3], "number") | {parts[3]: "integer"}
            columns += parts
        else:
            columns.append(field.name)
            own = _KINDS.get(str(field.type).removesuffix(" | None"))
            if own is not None:
                kinds[field.name] = own
    return RowStream(
        columns=tuple(columns),
        times=frozenset(name for name in columns if name.endswith("_at")),
        rows=iter([_cells(row, without) for row in rows]),
        kinds=kinds,
    )


def _cells(row: Any, without: frozenset[str]) -> list[Any]:
    cells: list[Any] = []
    for field in fields(row):
        if field.name in without:
            continue
        value = getattr(row, field.name)
        if isinstance(value, Rate):
            cells += [value.value, value.low, value.high, value.n]
        else:
            cells.append(value)
    return cells
