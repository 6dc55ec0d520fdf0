"""The last requests of OTLP, and what was made of each of their spans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, case, func, select

from toolfault_collector.storage.tables import otlp_request, tool_call
from toolfault_dashboard.queries.lists.pages import read_page
from toolfault_dashboard.queries.scope import Scope

__all__ = [
    "NEWEST_CALLS",
    "Reached",
    "ReceivedItem",
    "ReceivedLine",
    "ReceivedPage",
    "ReceivedRow",
    "reached_calls",
    "received_lines",
    "received_list",
]

# Of which it is said how many never reached a span: a look at these takes some 50 ms.
NEWEST_CALLS: Final = 20_000


@dataclass(frozen=True, slots=True)
class ReceivedItem:
    """One span, log record or metric: its name, what became of it, and why."""

    name: str
    verdict: str  # failure | call | no call | rejected
    why: str


@dataclass(frozen=True, slots=True)
class ReceivedRow:
    """One request; ``calls`` are those that are new, or known better, because of it."""

    received_at: int
    signal: str
    encoding: str
    sender: str | None
    items: int
    calls: int
    rejected: int
    detail: tuple[ReceivedItem, ...]

    @property
    def verdicts(self) -> tuple[tuple[str, int], ...]:
        """How often what became of those in ``detail``, most first."""
        return tuple(Counter(each.verdict for each in self.detail).most_common())


@dataclass(frozen=True, slots=True)
class Reached:
    """Calls that came over OpenTelemetry, and those that only messages of a model tell of."""

    calls: int
    never: int


@dataclass(frozen=True, slots=True)
class ReceivedLine:
    """One span of a request, as a file has it; a request of which none is shown is one line."""

    received_at: int
    signal: str
    encoding: str
    sender: str | None
    items: int
    calls: int
    rejected: int
    name: str | None
    verdict: str | None
    why: str | None


@dataclass(frozen=True, slots=True)
class ReceivedPage:
    """A page of requests, newest first, and how many are kept."""

    rows: tuple[ReceivedRow, ...]
    total: int
    next_cursor: str | None
    previous_cursor: str | None


def received_list(
    conn: Connection, scope: Scope, *, cursor: str | None = None, limit: int = 50
) -> ReceivedPage:
    """Return one page of the last requests of the project; queries do not apply to them.

    Raises:
        CursorError: The cursor belongs to another list.
    """
    table = otlp_request.c
    mine = table.project_id == scope.project_id
    page = read_page(
        conn,
        scope,
        kind="received",
        statement=select(
            otlp_request, table.received_at.label("_at"), table.id.label("_row")
        ).where(mine),
        key=(table.received_at, table.id),
        cursor=cursor,
        limit=limit,
    )
    return ReceivedPage(
        rows=tuple(_row(row) for row in page.rows),
        total=conn.execute(select(func.count()).select_from(otlp_request).where(mine)).scalar_one(),
        next_cursor=page.next_cursor,
        previous_cursor=page.previous_cursor,
    )


def _row(row: Any) -> ReceivedRow:
    detail = tuple(ReceivedItem(*line) for line in row["detail"] or ())
    return ReceivedRow(
        received_at=row["received_at"],
        signal=row["signal"],
        encoding=row["encoding"],
        sender=row["sender"],
        items=row["items"],
        calls=row["calls"],
        rejected=row["rejected"],
        detail=detail,
    )


def reached_calls(conn: Connection, scope: Scope) -> Reached:
    """Return how many calls came over OpenTelemetry, among the newest of the project.

    A call that the model asked for and that was refused before it ran (an unknown tool, arguments
    that do not fit) has no span in most frameworks: the messages alone tell of it.
    """
    call = tool_call.c
    newest = (
        select(call.extra)
        .where(call.project_id == scope.project_id)
        .order_by(call.received_at.desc(), call.id.desc())
        .limit(NEWEST_CALLS)
        .subquery()
    )
    came = newest.c.extra["dialect"].as_string().is_not(None)
    never = newest.c.extra["reached"].as_boolean().is_(False)
    row = conn.execute(
        select(func.count(), func.coalesce(func.sum(case((never, 1), else_=0)), 0)).where(came)
    ).one()
    return Reached(int(row[0]), int(row[1]))


def received_lines(rows: Iterable[ReceivedRow]) -> list[ReceivedLine]:
    """Return *rows* with one line for each of their spans."""
    return [
        ReceivedLine(
            *(row.received_at, row.signal, row.encoding, row.sender),
            *(row.items, row.calls, row.rejected),
            *((None, None, None) if item is None else (item.name, item.verdict, item.why)),
        )
        for row in rows
        for item in row.detail or (None,)
    ]
