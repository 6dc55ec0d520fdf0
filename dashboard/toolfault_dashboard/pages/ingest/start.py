"""The first-run page: a project without data, and the ways to send some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc
from typing import ClassVar, Final

from fastapi import APIRouter, HTTPException
from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.responses import RedirectResponse, Response

from toolfault_dashboard import queries
from toolfault_dashboard.access.policy import allows
from toolfault_dashboard.access.security import cookie_name
from toolfault_dashboard.local_sessions import LocalSessions, sessions_here
from toolfault_dashboard.pages.shared.ask import Ask, Asked
from toolfault_dashboard.pages.shared.frame import Context
from toolfault_dashboard.search import parse
from toolfault_dashboard.writes.recording import create_ingest_key

__all__ = ["is_empty", "router", "start_page"]


@dataclass(frozen=True, slots=True)
class StartContext(Context):
    """What `start.html` shows: how a project gets its first data."""

    template: ClassVar[str] = "start.html"

    project: Doc[str, "Name of the project to send to."]
    empty: Doc[bool, "Whether the project has no data yet."]
    dsn: Doc[str, "The DSN with a new key; empty until one is asked for."]
    key: Doc[str, "The new key alone; empty until one is asked for."]
    events_url: Doc[str, "Where events are sent to."]
    placeholder: Doc[str, "The DSN with KEY in place of a key."]
    may_create: Doc[bool, "Whether this person may create a key."]
    failures: Doc[str, "Address of the Failures page, for after the first event."]
    sessions: Doc[
        LocalSessions | None, "Claude Code's on the server's machine, for who may import."
    ]
    importing: Doc[str, "How far the import of these is; empty where none was started."]


router = APIRouter()

_DEFAULT_PROJECT: Final = "default"
_PLACEHOLDER: Final = "KEY"
_PATH: Final = "/start"
_SECONDS: Final = 60  # that a new key waits for its page


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
        sessions=sessions_here() if allows(ask.viewer.role, "admin") else None,
        importing=ask.services.importing.said(_project(ask)),
    )
    return ask.render(context, title="Send data")


def is_empty(ask: Ask) -> bool:
    """Say whether the project has no call at all, in any time."""
    return ask.project is None or not queries.summary(ask.conn, ask.scope_of(parse(""))).calls


@router.get(_PATH, name="start")
def start(ask: Asked) -> Response:
    """Render the page, also for a project that has data; a key that was just made, once."""
    name = _cookie(ask)
    if name not in ask.request.cookies:
        return start_page(ask, empty=is_empty(ask))
    try:
        key = _signer(ask).loads(ask.request.cookies[name], max_age=_SECONDS)
    except BadSignature:
        key = ""
    answer = start_page(ask, key=str(key), empty=is_empty(ask))
    answer.delete_cookie(name, path=_PATH, httponly=True, samesite="strict")
    return answer


@router.post(_PATH, name="create_key")
def create_key(ask: Asked) -> Response:
    """Make an ingest key and lead to the page that shows it, so that a reload makes no other."""
    key = create_ingest_key(ask.services.engine, _project(ask), actor=ask.viewer.name)
    answer = RedirectResponse(ask.link(_PATH, "", window=""), status_code=303)
    answer.set_cookie(
        _cookie(ask),
        _signer(ask).dumps(key),
        max_age=_SECONDS,
        path=_PATH,
        secure=ask.request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return answer


@router.post(f"{_PATH}/sessions", name="import_sessions")
def import_sessions(ask: Asked) -> Response:
    """Import the sessions of Claude Code that lie on the server's machine, after this page."""
    sessions = sessions_here()
    if sessions is None:
        raise HTTPException(404, "There are no sessions of Claude Code on the server's machine.")
    if not ask.services.importing.start(sessions, _project(ask), actor=ask.viewer.name):
        raise HTTPException(
            409,
            "An import into another project is running. Press the button again when it is done.",
        )
    return RedirectResponse(ask.link(_PATH, "", window=""), status_code=303)


def _cookie(ask: Ask) -> str:
    return f"{cookie_name(ask.request.scope)}_key"


def _signer(ask: Ask) -> URLSafeTimedSerializer:
    """Sign with the session, so that a page shows no key but those that its reader made."""
    session = ask.request.cookies[cookie_name(ask.request.scope)]
    return URLSafeTimedSerializer(session, salt=_PATH)
