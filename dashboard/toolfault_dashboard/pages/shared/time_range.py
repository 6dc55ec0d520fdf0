"""A time range from a form: written into the query, so that the address says it all."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from fastapi import APIRouter, HTTPException
from starlette.responses import RedirectResponse, Response

from toolfault_dashboard.pages.shared.ask import Asked
from toolfault_dashboard.pages.shared.shell import PATHS
from toolfault_dashboard.search import parse

__all__ = ["router"]

router = APIRouter()

_PAGES: Final = PATHS | {"/tool", "/experiment"}
_OURS: Final = ("page", "from", "to", "q", "window", "project", "cursor")


@router.get("/range", name="time_range")
def time_range(ask: Asked, page: str = "/") -> Response:
    """Go back to *page* with the range in its query; an end that is left out stays open."""
    if page not in _PAGES:
        raise HTTPException(404, "There is no page of this name.")
    given = ask.request.query_params
    ends = [
        f"{key}:{_moment(given.get(field, ''))}"
        for key, field in (("since", "from"), ("until", "to"))
        if given.get(field)
    ]
    kept = {name: value for name, value in given.items() if name not in _OURS}
    query = ask.query.without("since", "until").and_(parse(" ".join(ends)))
    return RedirectResponse(ask.link(page, query, window="", **kept), status_code=303)


def _moment(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise HTTPException(422, "Write a time as 2026-11-21T14:00, in UTC.") from None
    return f"{moment.replace(tzinfo=UTC):%Y-%m-%dT%H:%M:%S}Z"
