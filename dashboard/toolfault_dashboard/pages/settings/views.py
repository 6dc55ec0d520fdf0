"""Saved views: keep a query under a name, alone or for everybody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc
from typing import ClassVar, Final

from fastapi import APIRouter, HTTPException
from starlette.responses import RedirectResponse, Response

from toolfault_dashboard.pages.shared.ask import Ask, Asked
from toolfault_dashboard.pages.shared.forms import Submitted
from toolfault_dashboard.pages.shared.frame import Context
from toolfault_dashboard.pages.shared.table import Column, Drawn, Table
from toolfault_dashboard.writes.saved_views import (
    PAGES,
    SavedView,
    delete_view,
    save_view,
    views_of,
)

__all__ = ["VIEWS", "router"]


@dataclass(frozen=True, slots=True)
class ViewLine:
    """A saved view with its address."""

    row: Doc[SavedView, "What is stored."]
    href: Doc[str, "The view."]
    page: Doc[str, "Name of the page it is of."]


@dataclass(frozen=True, slots=True)
class ViewsContext(Context):
    """What `views.html` shows."""

    template: ClassVar[str] = "views.html"

    views: Doc[Drawn, "Own and shared views, by name."]
    csv: Doc[str, "The views as CSV."]
    pages: Doc[dict[str, str], "Pages a view can be of: address and name."]
    name: Doc[str, "Name in the form."]
    page: Doc[str, "Page chosen in the form."]
    query: Doc[str, "Query in the form."]
    problem: Doc[str, "Why the view was not saved; else empty."]
    saved: Doc[str, "Name of the view just saved; else empty."]


router = APIRouter()


def _views(ask: Ask) -> tuple[SavedView, ...]:
    return views_of(ask.conn, ask.project.id, ask.viewer.user_id) if ask.project else ()


VIEWS: Final = Table(
    Column("name", "Name", "link", "row.name", file={"name": ""}),
    Column("page", "Page", file={"page": ""}),  # on the page its name, in the file its address
    Column("query", "Query", "whole_code", lambda row: row.query or "everything",
           style="cell-text"),
    Column("stored_query", value="query", file={"query": ""}),
    Column("shared", file={"shared": "boolean"}),
    Column("owner", "Whose", "owner", "row.owner", term="", file={"owner": ""}),
    Column("delete", "Delete", "delete", "row.name", hidden=True, style="num"),
    file="views", rows=_views,
)  # fmt: skip


def _page(ask: Ask, *, name: str, page: str, query: str, problem: str = "") -> Response:
    context = ViewsContext(
        views=VIEWS.drawn(
            # The window belongs to the query: a saved view means the same tomorrow.
            ViewLine(row, ask.link(row.page, row.query, window=""), PAGES.get(row.page, row.page))
            for row in _views(ask)
        ),
        csv=ask.link("/views.csv", "", window=""),
        pages=PAGES,
        name=name,
        page=page,
        query=query,
        problem=problem,
        saved=ask.request.query_params.get("saved", ""),
    )
    return ask.render(context, title="Views", status=422 if problem else 200)


@router.get("/views", name="views")
def views(ask: Asked) -> Response:
    """Render the views and the form, filled with the view the reader came from."""
    page = ask.request.query_params.get("page", "/failures")
    return _page(ask, name="", page=page if page in PAGES else "/failures", query=ask.text)


@router.post("/views", name="save_view")
def save(ask: Asked, form: Submitted) -> Response:
    """Save a view."""
    name, page, query = (form.get(key, "").strip() for key in ("name", "page", "query"))
    if ask.project is None:
        raise HTTPException(404, "There is no project yet.")
    try:
        save_view(
            ask.services.engine,
            ask.project.id,
            ask.viewer.user_id,
            name=name,
            page=page,
            query=query,
            shared=form.get("shared") == "1",
            now=ask.now,
        )
    except ValueError as error:
        return _page(ask, name=name, page=page, query=query, problem=str(error))
    return RedirectResponse(ask.link("/views", "", window="", saved=name), status_code=303)


@router.post("/views/delete", name="delete_view")
def remove(ask: Asked, form: Submitted) -> Response:
    """Delete one of the reader's own views."""
    number = form.get("id", "")
    found = (
        ask.project is not None
        and number.isdecimal()
        and len(number) <= 9
        and delete_view(ask.services.engine, ask.project.id, ask.viewer.user_id, int(number))
    )
    if not found:
        raise HTTPException(404, "There is no such view of yours.")
    return RedirectResponse(ask.link("/views", "", window=""), status_code=303)
