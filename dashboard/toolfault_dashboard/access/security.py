"""What stands between a browser and the pages: headers, same-origin check, session gate.

Small ASGI layers; ``app`` says in which order a request passes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final
from urllib.parse import quote, urlsplit

import structlog
from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request, cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolfault_collector.http.problems import Problem
from toolfault_dashboard.access.policy import (
    DOWNLOADS,
    Rule,
    allows,
    is_machine_path,
    other_method_access,
    rule_for,
)
from toolfault_dashboard.access.signin import Viewer, viewer_of

__all__ = [
    "CSP",
    "FormBodies",
    "Gate",
    "PageFaults",
    "SameOrigin",
    "SecurityHeaders",
    "cookie_name",
    "same_origin",
]

log = structlog.get_logger(__name__)

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
_HEADERS: Final = (
    ("Content-Security-Policy", CSP),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),  # a sign-in link must not leave in a header
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
)
_FILES: Final = tuple(f".{suffix}" for suffix in DOWNLOADS)
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
# A form is some hundred bytes; who needs longer for them holds a connection for nothing.
FORM_SECONDS: Final = 10.0
# One more than `read_form` takes, so that it sees that a form is too long, and says so.
_FORM_BYTES: Final = 64 * 1024 + 1

ErrorPage = Callable[[Request, int, str], Response]
"""(request, status, sentence) -> a page that says what happened."""


def cookie_name(scope: Scope) -> str:
    """Return the name of the session cookie, one per port.

    Cookies ignore ports, so two servers on one machine would sign each other out.
    """
    server = scope.get("server")
    return f"toolfault_session_{server[1] if server else 0}"


class SecurityHeaders:
    """Put the security headers on every response, also on errors and static files."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS:
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, send_with_headers)


class FormBodies:
    """Read the body of a form before anything is opened for it, within a time and a size.

    The pages hold a database connection while they answer; a sender that never finishes its form
    would hold one for as long as it likes.

    Args:
        app: What is inside.
        seconds: How long the body may take.
    """

    def __init__(self, app: ASGIApp, *, seconds: float = FORM_SECONDS) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] in _SAFE_METHODS:
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._seconds):
                start = await _read_start(receive)
        except TimeoutError as error:
            detail = f"the form took longer than {self._seconds:g} s; send it again"
            raise Problem(408, "slow_body", detail, {"Connection": "close"}) from error
        if start is None:
            return  # whoever sent it has gone
        messages = [start]

        async def receive_again() -> Message:
            return messages.pop() if messages else await receive()

        await self._app(scope, receive_again, send)


async def _read_start(receive: Receive) -> Message | None:
    """Return a whole form, or the start of what is longer: the route refuses that or reads on."""
    body, more = b"", True
    while more and len(body) < _FORM_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return {"type": "http.request", "body": body, "more_body": more}


class PageFaults:
    """Answer an unexpected exception of a page with a page; programs get the collector's answer."""

    def __init__(self, app: ASGIApp, *, error_page: ErrorPage) -> None:
        self._app = app
        self._error_page = error_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or is_machine_path(scope["path"]):
            await self._app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception:
            log.exception("page_failed", path=scope["path"][:200])
            if started:
                raise
            number = scope.get("state", {}).get("request_id", "")
            sentence = f"It is no fault of yours. The server's log says more under {number}."
            await self._error_page(Request(scope), 500, sentence)(scope, receive, send)


def same_origin(method: str, headers: Headers, scheme: str) -> bool:
    """Say whether an unsafe request comes from our own pages, or from no browser at all.

    ``Sec-Fetch-Site`` decides where a browser sends it, else ``Origin`` against ``Host``; a
    request with neither is no browser's. Source: Go's ``http.CrossOriginProtection`` and
    Datasette's CSRF middleware (2026), which replaced tokens by the same rule.
    """
    if method in _SAFE_METHODS:
        return True
    fetch_site = headers.get("sec-fetch-site")
    if fetch_site is not None:
        return fetch_site.strip().lower() in ("same-origin", "none")
    origin = headers.get("origin")
    if origin is None:
        return True
    try:
        parts = urlsplit(origin)
        host = parts.netloc.lower()
    except ValueError:
        return False
    # A page from http must not post to https; the other way round is a proxy that ends TLS.
    return (
        bool(host)
        and host == headers.get("host", "").lower()
        and (parts.scheme in (scheme, "https"))
    )


class SameOrigin:
    """Refuse unsafe requests from other sites (CSRF); a key in a header needs no such check."""

    def __init__(self, app: ASGIApp, *, error_page: ErrorPage) -> None:
        self._app = app
        self._error_page = error_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        # A browser adds cookies by itself, but never a bearer key: only the former can be abused.
        by_key = "authorization" in headers and "cookie" not in headers
        if by_key or same_origin(scope["method"], headers, scope.get("scheme", "http")):
            await self._app(scope, receive, send)
            return
        sentence = "This request came from another site and was not carried out."
        await self._error_page(Request(scope), 403, sentence)(scope, receive, send)


class Gate:
    """Find the rule of a request and let only whom it names pass."""

    def __init__(
        self, app: ASGIApp, *, engine: Engine, clock: Callable[[], int], error_page: ErrorPage
    ) -> None:
        self._app = app
        self._engine = engine
        self._clock = clock
        self._error_page = error_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        rule = rule_for(scope["method"], scope["path"])
        state = scope.setdefault("state", {})
        state["viewer"] = None
        if rule is not None and rule.access in ("ingest", "key"):
            await self._app(scope, receive, send)
            return
        viewer = state["viewer"] = await run_in_threadpool(self._viewer, scope)
        refusal = self._refusal(Request(scope), rule, viewer)
        await (refusal or self._app)(scope, receive, send)

    def _viewer(self, scope: Scope) -> Viewer | None:
        cookie = cookie_parser(Headers(scope=scope).get("cookie", "")).get(cookie_name(scope))
        if not cookie:
            return None
        with self._engine.connect() as conn:
            return viewer_of(conn, cookie, now=self._clock())

    def _refusal(
        self, request: Request, rule: Rule | None, viewer: Viewer | None
    ) -> Response | None:
        """Return the answer to a request that must not pass, None for one that may."""
        path = request.url.path
        access = rule.access if rule is not None else other_method_access(path)
        if access in ("public", "ingest", "api", "key"):
            return None  # the route checks its own key, or answers 405
        if viewer is None and not is_machine_path(path):
            return _ask_to_sign_in(request, self._error_page)
        if access is None:
            return self._error_page(request, 404, "There is no page at this address.")
        if viewer is None or not allows(viewer.role, access):
            held = f"you are signed in as {viewer.role}" if viewer else "you are not signed in"
            return self._error_page(request, 403, f"This needs the role {access}; {held}.")
        return None


def _ask_to_sign_in(request: Request, error_page: ErrorPage) -> Response:
    if request.method in ("GET", "HEAD") and not request.url.path.endswith(_FILES):
        path = request.url.path
        back = f"{path}?{request.url.query}" if request.url.query else path
        return RedirectResponse(f"/sign-in?next={quote(back, safe='')}", status_code=303)
    sentence = "Sign in first. Run `toolfault sign-in-link` on the server for a link."
    return error_page(request, 401, sentence)
