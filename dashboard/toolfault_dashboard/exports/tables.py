"""Tables of a page as row streams: every table exports exactly what it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final

from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.queries.lists.streams import RowStream

__all__ = ["rate_columns", "table_stream"]

# As annotations are written: modules that define rows postpone their evaluation.
_KINDS: Final = {"int": "integer", "float": "number", "bool": "boolean"}

_Part = tuple[Mapping[str, str], Callable[[Any], Any]]


def rate_columns(name: str) -> dict[str, str]:
    """Return the columns that a file has for a rate: its value, the ends of its interval, n."""
    return dict.fromkeys((name, f"{name}_low", f"{name}_high"), "number") | {f"{name}_n": "integer"}


def table_stream(
    rows: Iterable[Any],
    kind: type | None,
    *,
    without: frozenset[str] = frozenset(),
    more: Sequence[_Part] = (),
) -> RowStream:
    """Return *rows* as a stream; a ``Rate`` becomes four columns.

    Args:
        rows: What to write.
        kind: Their class, a dataclass, whose fields are columns. One whose name ends in ``_at`` is
            a time. None writes nothing but *more*.
        without: Fields to leave out.
        more: Further columns: name -> kind (``integer``, ``number``, ``boolean``, ``json``,
            ``time`` or empty for text), with the function that returns their value.
    """
    parts = [*(_of_fields(kind, without) if kind else ()), *more]
    kinds = {name: each for columns, _ in parts for name, each in columns.items()}
    return RowStream(
        columns=tuple(kinds),
        times=frozenset(name for name, each in kinds.items() if each == "time"),
        rows=iter(
            [[cell for columns, of in parts for cell in _cells(columns, of(row))] for row in rows]
        ),
        kinds={name: each for name, each in kinds.items() if each not in {"", "time"}},
    )


def _of_fields(kind: type, without: frozenset[str]) -> list[_Part]:
    return [
        (_columns(field.name, field.type), attrgetter(field.name))
        for field in fields(kind)
        if field.name not in without
    ]


def _columns(name: str, annotation: object) -> Mapping[str, str]:
    if annotation in {"Rate", Rate}:
        return rate_columns(name)
    if name.endswith("_at"):
        return {name: "time"}
    return {name: _KINDS.get(str(annotation).removesuffix(" | None"), "")}


def _cells(columns: Mapping[str, str], value: Any) -> list[Any]:
    if len(columns) == 1:
        return [value]
    return [getattr(value, part, None) for part in ("value", "low", "high", "n")]
