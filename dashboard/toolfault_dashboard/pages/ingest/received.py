"""OpenTelemetry: what was made of the last requests of OTLP, for who misses a failure."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from toolfault_dashboard.contexts.settings import ReceivedContext
from toolfault_dashboard.pages.shared.ask import Asked
from toolfault_dashboard.queries.counted import counted_lines
from toolfault_dashboard.queries.received import reached_calls, received_list
from toolfault_dashboard.search import parse

__all__ = ["router"]

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
    return ask.render("received.html", context, title="OpenTelemetry")
