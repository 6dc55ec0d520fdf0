"""Rows that are fetched while they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["Page", "Row", "Rows", "frame_of"]

Row = dict[str, Any]
"""One row, as the API names its columns. Times are RFC 3339 text in UTC, None where unknown; a
rate is ``{"count", "n", "value", "low", "high"}``."""

Page = tuple[Sequence[Row], "str | None", Mapping[str, Any]]
"""Rows, the cursor of the next page, and what the answer says beside its rows."""


class Rows:
    """The rows of one question. Iterating asks the server, page by page, each time anew.

    Args:
        fetch: Returns the page of a cursor; None is the first.
    """

    def __init__(self, fetch: Callable[[str | None], Page]) -> None:
        self._fetch = fetch

    def __iter__(self) -> Iterator[Row]:
        cursor: str | None = None
        while True:
            rows, cursor, _ = self._fetch(cursor)
            yield from rows
            if cursor is None:
                return

    @property
    def about(self) -> Mapping[str, Any]:
        """What the answer says beside its rows: the total of a list, the calls of a table."""
        return self._fetch(None)[2]

    def to_frame(self) -> DataFrame:
        """Return all rows as a pandas frame: times as UTC, each part of a rate as a column.

        Raises:
            ModuleNotFoundError: pandas is not installed.
        """
        return frame_of(list(self))


def frame_of(rows: Sequence[Row]) -> DataFrame:
    """Return *rows* as a frame; columns are named as in an export of the same table."""
    try:
        pandas = import_module("pandas")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "to_frame() needs pandas, which the SDK does not bring along: pip install pandas."
            " Without it, iterate over the rows.",
            name="pandas",
        ) from None
    frame = pandas.DataFrame([_flat(row) for row in rows])
    for name in frame.columns:
        if name.endswith("_at"):
            frame[name] = pandas.to_datetime(frame[name], utc=True, format="ISO8601")
    found: DataFrame = frame
    return found


def _flat(row: Row) -> Row:
    flat: Row = {}
    for name, value in row.items():
        if isinstance(value, dict) and value.keys() >= {"low", "high"}:
            if "value" in value:
                flat[name] = value["value"]
            flat |= {
                f"{name}_{part}": value[part] for part in ("low", "high", "n") if part in value
            }
        else:
            flat[name] = value
    return flat
