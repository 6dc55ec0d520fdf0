"""OpenTelemetry: what was made of the last requests of OTLP, for who misses a failure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc
from typing import ClassVar, Final

from fastapi import APIRouter
from starlette.responses import Response

from toolfault_dashboard.pages.shared.ask import Asked
from toolfault_dashboard.pages.shared.frame import Context
from toolfault_dashboard.pages.shared.table import Column, Drawn, Table
from toolfault_dashboard.queries.counted import CountedLine, counted_lines
from toolfault_dashboard.queries.received import (
    Reached,
    ReceivedLine,
    reached_calls,
    received_lines,
    received_list,
)
from toolfault_dashboard.search import parse

__all__ = ["COUNTED", "RECEIVED", "router"]


@dataclass(frozen=True, slots=True)
class ReceivedContext(Context):
    """What `received.html` shows."""

    template: ClassVar[str] = "received.html"

    rows: Doc[Drawn, "This page of requests, newest first."]
    total: Doc[int, "Requests that are kept in all."]
    reached: Doc[Reached, "Calls that came over OpenTelemetry, and those without a span."]
    counted: Doc[Drawn, "Tools as metrics count them, beside what is stored."]
    counted_csv: Doc[str, "These as CSV."]
    endpoint: Doc[str, "Where an exporter sends to."]
    pages: Doc[dict[str, str], "Addresses of the newer and older page; empty at the ends."]
    csv: Doc[str, "All of them as CSV."]


router = APIRouter()

RECEIVED: Final = Table(
    Column("received_at", "Received", "moment"),
    Column("signal", "What", "request"),
    Column("items", "Items", "count", number=False),
    Column("calls", "Calls", "count", number=False),
    Column("rejected", "Rejected", "count", number=False),
    Column("detail", "What became of them", "verdicts"),
    file="received",
    row=ReceivedLine,  # a row for each span that is shown
    rows=lambda ask: received_lines(
        received_list(ask.conn, ask.scope_of(parse("")), limit=500).rows
    ),
    header="signal",
)
COUNTED: Final = Table(
    Column("tool", "Tool", "code"),
    Column("source", "Metric"),
    Column("counted", "Counted", "count", number=False),
    Column("failed", "of them failed", "count", "counted_failures", number=False),
    Column("stored", "Stored", "count", number=False),
    Column("stored_failed", "of these failed", "count", "stored_failures", number=False),
    Column("missing", "Missing", "count", number=False),
    file="counted",
    row=CountedLine,
    rows=lambda ask: counted_lines(ask.conn, ask.scope_of(parse(""))),
)


@router.get("/received", name="received")
def received(ask: Asked) -> Response:
    """Render the last requests of the project."""
    cursor = ask.request.query_params.get("cursor") or None
    page = received_list(ask.conn, ask.scope_of(parse("")), cursor=cursor)

    def to(where: str | None) -> str:
        return ask.link("/received", "", window="", cursor=where) if where else ""

    context = ReceivedContext(
        rows=RECEIVED.drawn(page.rows),
        total=page.total,
        reached=reached_calls(ask.conn, ask.scope_of(parse(""))),
        counted=COUNTED.drawn(counted_lines(ask.conn, ask.scope_of(parse("")))),
        counted_csv=ask.link("/counted.csv", "", window=""),
        endpoint=f"{ask.request.url.scheme}://{ask.request.url.netloc}",
        csv=ask.link("/received.csv", "", window=""),
        pages={"newer": to(page.previous_cursor), "older": to(page.next_cursor)},
    )
    return ask.render(context, title="OpenTelemetry")
