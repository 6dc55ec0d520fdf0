"""The newest failures of a scope, as many as are wanted: where they begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, func, or_, select

from toolfault_collector.storage.tables import tool_call
from toolfault_dashboard.queries.conditions import failures_of
from toolfault_dashboard.queries.counting.memoise import memoised
from toolfault_dashboard.queries.counting.segments import as_kept, in_segments, is_asked_at_once
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import between, window

__all__ = ["Newest", "newest"]


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest failures of a scope.

    Attributes:
        later: Those later than the moment of the oldest of them.
        same: Those of that moment, more than are meant: only rows from *row* on are.
        row: The row number of the oldest.
    """

    later: Scope
    same: Scope
    row: int

    def of_same(self) -> ColumnElement[bool]:
        """Return the condition for those of the moment of the oldest."""
        return failures_of(self.same) & (tool_call.c.id >= self.row)

    def of_all(self) -> ColumnElement[bool]:
        """Return the condition for all of them: one look, where nothing of a window is kept."""
        (at, _), (_, until) = window(self.same), window(self.later)
        behind = or_(tool_call.c.occurred_at != at, tool_call.c.id >= self.row)
        return failures_of(between(self.later, at, until)) & behind


@memoised
def newest(conn: Connection, scope: Scope, failures: int) -> Newest:
    """Return where the newest *failures* of *scope* begin; it must have as many.

    The day is found from what is known of each day (``queries.counting.segments``), so that only
    that one's rows are walked through.
    """
    left, (begin, end) = failures, window(scope)
    if not is_asked_at_once(conn, scope):
        for begin, end, held in reversed(_by_segment(conn, scope)):  # noqa: B007 - the last one
            if held >= left:
                break
            left -= held
    around = between(scope, begin, end)
    at, row = as_kept(conn, [around], lambda: _oldest(conn, around, left), _oldest, left)
    until = window(scope)[1]
    return Newest(between(scope, at + 1, until), between(scope, at, at + 1), row)


def _by_segment(conn: Connection, scope: Scope) -> list[tuple[int | None, int | None, int]]:
    """Return begin, end (microseconds, None where open) and failures of the segments of the window.

    Oldest first; of a large window they are its whole days and what is around them.
    """
    segments = in_segments(conn, scope, _number, together=_one_after_the_other)
    return [each for segment in segments for each in segment]


_Numbers = tuple[tuple[int | None, int | None, int], ...]


def _number(conn: Connection, scope: Scope) -> _Numbers:
    counted = select(func.count()).select_from(tool_call).where(failures_of(scope))
    return ((*window(scope), conn.execute(counted).scalar_one()),)


def _one_after_the_other(segments: Sequence[_Numbers]) -> _Numbers:
    return tuple(each for segment in segments for each in segment)


def _oldest(conn: Connection, scope: Scope, failures: int) -> tuple[int, int]:
    key = (tool_call.c.occurred_at, tool_call.c.id)
    row = conn.execute(
        select(*key)
        .where(failures_of(scope))
        .order_by(*(column.desc() for column in key))
        .offset(failures - 1)
        .limit(1)
    ).one()
    return int(row[0]), int(row[1])
