"""Live: failures as they arrive, over server-sent events."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated as Doc
from typing import ClassVar, Final

import anyio
from fastapi import APIRouter, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from toolfault_dashboard import queries
from toolfault_dashboard.formats import plural, shown_in, time_tag, timestamp, visible
from toolfault_dashboard.glossary import meaning
from toolfault_dashboard.pages.shared.ask import Ask, Asked, open_ask
from toolfault_dashboard.pages.shared.frame import Context, Link, View
from toolfault_dashboard.pages.shared.lines import FAILURES, failure_line
from toolfault_dashboard.pages.shared.shell import clock_of
from toolfault_dashboard.pages.shared.table import Drawn
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.rows import FailureRow
from toolfault_dashboard.search import QueryError

__all__ = ["router"]


@dataclass(frozen=True, slots=True)
class LiveContext(Context):
    """What `live.html` shows."""

    template: ClassVar[str] = "live.html"

    view: Doc[View, "The query bar."]
    rows: Doc[Drawn, "The newest failures, newest first."]
    events: Doc[str, "Where the stream of further ones is."]
    again: Doc[str, "This page, to load it again without script."]
    most: Doc[int, "Rows that the page keeps."]


router = APIRouter()

ROWS: Final = 30
_PAUSE_SECONDS: Final = 1.0
# How soon a stream ends when the server is to stop.
_GLANCE_SECONDS: Final = 0.1
# Then the browser asks again, and the gate looks at its session again.
_STREAM_POLLS: Final = 60
_RETRY_MILLISECONDS: Final = 1_000


@router.get("/live", name="live")
def live(ask: Asked) -> Response:
    """Render the newest failures; a little script adds those that follow."""
    page = queries.failure_list(ask.conn, _scope(ask), limit=ROWS, total=0)
    context = LiveContext(
        view=_view(ask),
        rows=FAILURES.drawn((failure_line(ask, row) for row in page.rows), without=("chain",)),
        events=ask.link("/live/events"),
        again=ask.link("/live"),
        most=ROWS,
    )
    return ask.render(context, title="Live")


def _scope(ask: Ask) -> Scope:
    """Return the failures of any window: the newest ones are the same in all of them."""
    return ask.scope_of(ask.query)


def _view(ask: Ask) -> View:
    """Return the query bar without what chooses a window or loads the page again."""
    view = replace(ask.view("/live"), windows=(), window="", copies=())
    if not ask.query.clauses:
        return view
    return replace(view, advice=Link("Remove the filter", ask.link("/live", ""), current=False))


@router.get("/live/events", name="live_events", response_class=EventSourceResponse)
async def live_events(request: Request) -> AsyncIterator[ServerSentEvent]:
    """Send each new failure of the view as it is stored.

    Nothing is held open between two looks: a reader who watches for hours keeps neither a
    connection nor a snapshot of the database.
    """
    seen: set[str] | None = None
    for _ in range(_STREAM_POLLS):
        found = await run_in_threadpool(_newest, request)
        for number, data in reversed(found):
            if seen is not None and number not in seen:
                yield ServerSentEvent(data=data, event="failure", retry=_RETRY_MILLISECONDS)
        if seen is None:
            yield ServerSentEvent(data={}, event="ready", retry=_RETRY_MILLISECONDS)
        seen = (seen or set()) | {number for number, _ in found}
        if await _stops_within(_PAUSE_SECONDS, request.app.state.collector.stopping):
            return


async def _stops_within(seconds: float, stopping: threading.Event) -> bool:
    """Pause for so long, or until the server is to stop; return whether it is."""
    for _ in range(round(seconds / _GLANCE_SECONDS)):
        if stopping.is_set():
            return True
        await anyio.sleep(_GLANCE_SECONDS)
    return stopping.is_set()


def _newest(request: Request) -> list[tuple[str, dict[str, str]]]:
    """Return the newest failures of the view, newest first; none where the query is none."""
    with contextmanager(open_ask)(request) as ask:
        try:
            page = queries.failure_list(ask.conn, _scope(ask), limit=ROWS, total=0)
        except QueryError:
            return []
        return [(row.event_id, _data(ask, row)) for row in page.rows]


def _data(ask: Ask, row: FailureRow) -> dict[str, str]:
    line = failure_line(ask, row)
    with shown_in(clock_of(ask.request), ask.now):
        moment = time_tag(row.occurred_at, "seconds").striptags()
    shown = {
        "code": row.code,
        "tool": row.tool,
        "field": row.field or "",
        "issues": plural(row.issues_total, "issue") if row.issues_total > 1 else "",
        "text": row.text or "",
        "audience": row.audience or "",
        "audience_meaning": meaning(row.audience or ""),
        "when": moment,
        "at": timestamp(row.occurred_at),
    }
    return {name: visible(text) for name, text in shown.items()} | {"href": line.href}
