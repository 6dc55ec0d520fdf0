"""Failures and chains: lists by cursor, and single ones."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from toolfault_collector.http.problems import Problem
from toolfault_dashboard import queries
from toolfault_dashboard.api.answers import Json
from toolfault_dashboard.api.reader import Asked
from toolfault_dashboard.api.shapes import model_of
from toolfault_dashboard.queries.failures.kinds import KindOrder, Kinds
from toolfault_dashboard.queries.lists.pages import MAX_LIMIT
from toolfault_dashboard.queries.rows import ChainDetail, ChainPage, FailureDetail, FailurePage

__all__ = ["router"]

router = APIRouter(tags=["lists"])

Cursor = Annotated[
    str, Query(description="`next_cursor` or `previous_cursor` of another page.", max_length=200)
]
Limit = Annotated[
    int, Query(ge=1, description=f"Rows of the page; more than {MAX_LIMIT} are cut to that.")
]

Order = Annotated[KindOrder, Query(description="What is first.")]
Rows = Annotated[int, Query(ge=1, le=10_000, description="Most rows.")]


def _page(request: Request, page: FailurePage | ChainPage) -> Response:
    links = []
    for relation, cursor in (("next", page.next_cursor), ("prev", page.previous_cursor)):
        if cursor is not None:
            kept = {k: v for k, v in request.query_params.items() if k != "cursor"}
            address = f"{request.url.path}?{urlencode({**kept, 'cursor': cursor})}"
            links.append(f'<{address}>; rel="{relation}"')
    return Json(page, headers={"Link": ", ".join(links)} if links else {})


@router.get("/failures", operation_id="list_failures", response_model=model_of(FailurePage))
def failures(request: Request, asked: Asked, cursor: Cursor = "", limit: Limit = 50) -> Any:
    """List failures, newest first, with the total of the whole list."""
    page = queries.failure_list(asked.conn, asked.scope, cursor=cursor or None, limit=limit)
    return _page(request, page)


@router.get(
    "/failures/{event_id}", operation_id="get_failure", response_model=model_of(FailureDetail)
)
def failure(
    asked: Asked, event_id: Annotated[str, Path(description="Event id of the failure.")]
) -> Any:
    """Return everything about one failure that the reader may see."""
    found = queries.failure_detail(asked.conn, asked.scope, event_id)
    if found is None:
        raise Problem(404, "unknown_failure", "There is no failure of that id in this project.")
    return Json(found)


@router.get("/kinds", operation_id="list_kinds", response_model=model_of(Kinds))
def kinds(asked: Asked, order: Order = "failures", limit: Rows = 50) -> Any:
    """List kinds of failure with their state, owner, failures and calls spent."""
    return Json(queries.kinds(asked.conn, asked.scope, order=order, limit=limit))


@router.get("/chains", operation_id="list_chains", response_model=model_of(ChainPage))
def chains(request: Request, asked: Asked, cursor: Cursor = "", limit: Limit = 50) -> Any:
    """List chains that a failure of the query opened, newest first."""
    page = queries.chain_list(asked.conn, asked.scope, cursor=cursor or None, limit=limit)
    return _page(request, page)


@router.get("/chains/{chain_id}", operation_id="get_chain", response_model=model_of(ChainDetail))
def chain(
    asked: Asked, chain_id: Annotated[str, Path(description="Event id of its first failure.")]
) -> Any:
    """Return one chain with its calls."""
    found = queries.chain_detail(asked.conn, asked.scope, chain_id)
    if found is None:
        raise Problem(404, "unknown_chain", "There is no chain of that id in this project.")
    return Json(found)
