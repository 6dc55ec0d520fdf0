"""Tables as CSV: exactly what the page beside it shows, streamed.

Lists stream from the database row by row; tables that were computed are written from their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fastapi import APIRouter
from starlette.responses import StreamingResponse

from toolfault_dashboard import queries
from toolfault_dashboard.analysis.rates import Rate, rate
from toolfault_dashboard.exports.tables import table_stream
from toolfault_dashboard.exports.writers import MEDIA_TYPES, write
from toolfault_dashboard.pages._ask import Asked
from toolfault_dashboard.queries.fix_next import FixRow, fix_next
from toolfault_dashboard.queries.messages import MessageRow, message_efficacy
from toolfault_dashboard.queries.rows import ChainGroup, ChangeRow, FrequencyRow
from toolfault_dashboard.queries.streams import RowStream

__all__ = ["router"]

router = APIRouter()


class _Csv(StreamingResponse):
    """A CSV download."""

    def __init__(self, stream: RowStream, name: str, *, excel: bool) -> None:
        super().__init__(
            write(_checked(stream), "csv", excel=excel),
            media_type=MEDIA_TYPES["csv"],
            headers={"Content-Disposition": f"attachment; filename*=UTF-8''toolfault-{name}.csv"},
        )


def _checked(stream: RowStream) -> RowStream:
    """Fetch the first row now, so that a failing statement is an error page and no broken file."""
    rows = iter(stream.rows)
    first = next(rows, None)

    def again() -> Iterator[Sequence[Any]]:
        if first is not None:
            yield first
            yield from rows

    return RowStream(stream.columns, stream.times, again())


def _answer(ask: Asked, stream: RowStream, name: str) -> _Csv:
    return _Csv(stream, name, excel="excel" in ask.request.query_params)


def _table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], times: Iterable[str] = ()
) -> RowStream:
    return RowStream(tuple(columns), frozenset(times), iter(rows))


@router.get("/failures.csv", name="failures_csv")
def failures(ask: Asked) -> StreamingResponse:
    """Stream the failures of the view."""
    return _answer(ask, queries.iter_failures(ask.conn, ask.scope), "failures")


@router.get("/chains.csv", name="chains_csv")
def chains(ask: Asked) -> StreamingResponse:
    """Stream the chains of the view."""
    return _answer(ask, queries.iter_chains(ask.conn, ask.scope), "chains")


def _rate_cells(found: Rate) -> tuple[Any, ...]:
    return (found.value, found.low, found.high, found.n)


def _rate_columns(name: str) -> tuple[str, ...]:
    return (name, f"{name}_low", f"{name}_high", f"{name}_n")


@router.get("/overview.csv", name="overview_csv")
def overview(ask: Asked) -> StreamingResponse:
    """Write the headline figures of the overview."""
    found = queries.overview(ask.conn, ask.scope)
    counted = found.summary
    rows: list[tuple[Any, ...]] = [
        (name, getattr(counted, name), None, None, None)
        for name in (
            "conversations",
            "calls",
            "failures",
            "chains",
            "recovered",
            "switched",
            "abandoned",
            "open",
            "round_trips",
            "mean_failures_before_recovery",
        )
    ]
    for name, each in (
        ("failure_rate", found.failure_rate),
        ("recovery_rate", found.recovery_rate),
        ("first_try_success", found.first_try),
    ):
        rows.append((name, *_rate_cells(each)))
    return _answer(ask, _table(("figure", "value", "low", "high", "n"), rows), "overview")


@router.get("/round-trips.csv", name="round_trips_csv")
def round_trips(ask: Asked) -> StreamingResponse:
    """Write the chains of the view by tool."""
    groups = queries.chains_by(ask.conn, ask.scope, "tool")
    return _answer(ask, table_stream(groups, ChainGroup), "round-trips")


@router.get("/tools.csv", name="tools_csv")
def tools(ask: Asked) -> StreamingResponse:
    """Write the tools of the view."""
    counted = queries.summary(ask.conn, ask.scope)
    groups = {g.name: g for g in queries.chains_by(ask.conn, ask.scope, "tool")}
    empty = rate(0, 0)
    rows = (
        (
            name,
            each.calls,
            each.failures,
            *_rate_cells(rate(each.failures, each.calls)),
            groups[name].chains if name in groups else 0,
            groups[name].round_trips if name in groups else 0,
            *_rate_cells(groups[name].recovery_rate if name in groups else empty),
        )
        for name, each in counted.tools.items()
    )
    columns = (
        "tool",
        "calls",
        "failures",
        *_rate_columns("failure_rate"),
        "chains",
        "round_trips",
        *_rate_columns("recovery_rate"),
    )
    return _answer(ask, _table(columns, rows), "tools")


@router.get("/codes.csv", name="codes_csv")
def codes(ask: Asked) -> StreamingResponse:
    """Write every code of the view."""
    table = queries.frequency(ask.conn, ask.scope, "code")
    return _answer(ask, table_stream(table.rows, FrequencyRow), "codes")


@router.get("/fields.csv", name="fields_csv")
def fields(ask: Asked) -> StreamingResponse:
    """Write every field of the view."""
    table = queries.frequency(ask.conn, ask.scope, "field")
    return _answer(ask, table_stream(table.rows, FrequencyRow), "fields")


@router.get("/changes.csv", name="changes_csv")
def changes(ask: Asked) -> StreamingResponse:
    """Write the changes of the view."""
    rows = queries.changes(ask.conn, ask.scope)
    return _answer(ask, table_stream(rows, ChangeRow), "changes")


@router.get("/fix-next.csv", name="fix_next_csv")
def fixes(ask: Asked) -> StreamingResponse:
    """Write everything that could be mended."""
    rows = fix_next(ask.conn, ask.scope).rows
    return _answer(ask, table_stream(rows, FixRow), "fix-next")


@router.get("/messages.csv", name="messages_csv")
def messages(ask: Asked) -> StreamingResponse:
    """Write every wording of the view."""
    rows = [row for group in message_efficacy(ask.conn, ask.scope) for row in group.rows]
    return _answer(ask, table_stream(rows, MessageRow), "messages")
