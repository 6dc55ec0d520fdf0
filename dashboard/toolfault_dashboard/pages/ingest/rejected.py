"""Rejected: what senders got wrong, so that they can be mended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated as Doc
from typing import ClassVar, Final

from fastapi import APIRouter
from starlette.responses import Response

from toolfault_dashboard.pages.shared.ask import Ask, Asked
from toolfault_dashboard.pages.shared.frame import Context
from toolfault_dashboard.pages.shared.table import Column, Drawn, Table
from toolfault_dashboard.queries.rejected import RejectedRow, rejected_list
from toolfault_dashboard.search import parse

__all__ = ["REJECTED", "router"]


@dataclass(frozen=True, slots=True)
class RejectedContext(Context):
    """What `rejected.html` shows."""

    template: ClassVar[str] = "rejected.html"

    rows: Doc[Drawn, "This page of refused events, newest first."]
    by_code: Doc[tuple[tuple[str, int], ...], "How many there are by code, most first."]
    total: Doc[int, "Refused events in all."]
    pages: Doc[dict[str, str], "Addresses of the newer and older page; empty at the ends."]
    csv: Doc[str, "All of them as CSV."]


router = APIRouter()


def _all_rejected(ask: Ask) -> Iterator[RejectedRow]:
    cursor: str | None = None
    while True:
        page = rejected_list(ask.conn, ask.scope_of(parse("")), cursor=cursor, limit=500)
        yield from page.rows
        if (cursor := page.next_cursor) is None:
            return


REJECTED: Final = Table(
    Column("received_at", "Received", "moment"),
    Column("code", "Code", "code", term=""),
    Column("pointer", "Where", "code"),
    Column("event", "Event", "event", "event_id"),
    file="rejected", row=RejectedRow, rows=_all_rejected, header="code",
)  # fmt: skip


@router.get("/rejected", name="rejected")
def rejected(ask: Asked) -> Response:
    """Render the refused events of the project."""
    cursor = ask.request.query_params.get("cursor") or None
    page = rejected_list(ask.conn, ask.scope_of(parse("")), cursor=cursor)

    def to(where: str | None) -> str:
        return ask.link("/rejected", "", window="", cursor=where) if where else ""

    context = RejectedContext(
        rows=REJECTED.drawn(page.rows),
        by_code=page.by_code,
        total=sum(number for _, number in page.by_code),
        csv=ask.link("/rejected.csv", "", window=""),
        pages={"newer": to(page.previous_cursor), "older": to(page.next_cursor)},
    )
    return ask.render(context, title="Rejected")
