"""OpenTelemetry: what was made of the last requests of OTLP, for who misses a failure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc
from typing import ClassVar

from fastapi import APIRouter
from starlette.responses import Response

from toolfault_dashboard.pages.shared.ask import Asked
from toolfault_dashboard.pages.shared.frame import Context
from toolfault_dashboard.queries.counted import CountedLine, counted_lines
from toolfault_dashboard.queries.received import Reached, ReceivedRow, reached_calls, received_list
from toolfault_dashboard.search import parse

__all__ = ["router"]


@dataclass(frozen=True, slots=True)
class ReceivedContext(Context):
    """What `received.html` shows."""

    template: ClassVar[str] = "received.html"

    rows: Doc[tuple[ReceivedRow, ...], "This page of requests, newest first."]
    total: Doc[int, "Requests that are kept in all."]
    reached: Doc[Reached, "Calls that came over OpenTelemetry, and those without a span."]
    counted: Doc[tuple[CountedLine, ...], "Tools as metrics count them, beside what is stored."]
    counted_csv: Doc[str, "These as CSV."]
    endpoint: Doc[str, "Where an exporter sends to."]
    pages: Doc[dict[str, str], "Addresses of the newer and older page; empty at the ends."]
    csv: Doc[str, "All of them as CSV."]


router = APIRouter()


@router.get("/received", name="received")
def received(ask: Asked) -> Response:
    """Render the last requests of the project."""
    cursor = ask.request.query_params.get("cursor") or None
    page = received_list(ask.conn, ask.scope_of(parse("")), cursor=cursor)

    def to(where: str | None) -> str:
        return ask.link("/received", "", window="", cursor=where) if where else ""

    context = ReceivedContext(
        rows=page.rows,
        total=page.total,
        reached=reached_calls(ask.conn, ask.scope_of(parse(""))),
        counted=tuple(counted_lines(ask.conn, ask.scope_of(parse("")))),
        counted_csv=ask.link("/counted.csv", "", window=""),
        endpoint=f"{ask.request.url.scheme}://{ask.request.url.netloc}",
        csv=ask.link("/received.csv", "", window=""),
        pages={"newer": to(page.previous_cursor), "older": to(page.next_cursor)},
    )
    return ask.render(context, title="OpenTelemetry")
