"""Rejected: what senders got wrong, so that they can be mended."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from toolfault_dashboard.contexts.settings import RejectedContext
from toolfault_dashboard.pages.shared.ask import Asked
from toolfault_dashboard.queries.rejected import rejected_list
from toolfault_dashboard.search import parse

__all__ = ["router"]

router = APIRouter()


@router.get("/rejected", name="rejected")
def rejected(ask: Asked) -> Response:
    """Render the refused events of the project."""
    cursor = ask.request.query_params.get("cursor") or None
    page = rejected_list(ask.conn, ask.scope_of(parse("")), cursor=cursor)

    def to(where: str | None) -> str:
        return ask.link("/rejected", "", window="", cursor=where) if where else ""

    context = RejectedContext(
        rows=page.rows,
        by_code=page.by_code,
        total=sum(number for _, number in page.by_code),
        csv=ask.link("/rejected.csv", "", window=""),
        pages={"newer": to(page.previous_cursor), "older": to(page.next_cursor)},
    )
    return ask.render("rejected.html", context, title="Rejected")
