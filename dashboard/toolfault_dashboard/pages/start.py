"""The first-run page: a project without data, and the ways to send some."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter
from starlette.responses import Response

from toolfault_dashboard import queries
from toolfault_dashboard.contexts import StartContext
from toolfault_dashboard.pages._ask import Ask, Asked
from toolfault_dashboard.policy import allows
from toolfault_dashboard.recording import create_ingest_key
from toolfault_dashboard.search import parse

__all__ = ["is_empty", "router", "start_page"]

router = APIRouter()

_DEFAULT_PROJECT: Final = "default"
_PLACEHOLDER: Final = "KEY"


def _dsn(ask: Ask, key: str) -> str:
    url = ask.request.url
    return f"{url.scheme}://{key}@{url.netloc}"


def _project(ask: Ask) -> str:
    return ask.project.name if ask.project else _DEFAULT_PROJECT


def start_page(ask: Ask, *, key: str = "", empty: bool = True) -> Response:
    """Render the page; a new key is shown this once."""
    context = StartContext(
        project=_project(ask),
        empty=empty,
        key=key,
        events_url=f"{ask.request.url.scheme}://{ask.request.url.netloc}/v1/events",
        dsn=_dsn(ask, key) if key else "",
        placeholder=_dsn(ask, _PLACEHOLDER),
        may_create=allows(ask.viewer.role, "admin"),
        failures=ask.link("/failures", ""),
    )
    return ask.render("start.html", context, title="Send data")


def is_empty(ask: Ask) -> bool:
    """Say whether the project has no call at all, in any time."""
    return ask.project is None or not queries.summary(ask.conn, ask.scope_of(parse(""))).calls


@router.get("/start", name="start")
def start(ask: Asked) -> Response:
    """Render the page, also for a project that has data."""
    return start_page(ask, empty=is_empty(ask))


@router.post("/start", name="create_key")
def create_key(ask: Asked) -> Response:
    """Make an ingest key and show it in the DSN."""
    key = create_ingest_key(ask.services.engine, _project(ask), actor=ask.viewer.name)
    return start_page(ask, key=key, empty=is_empty(ask))
