"""The composition root: one process that takes data in and shows it.

From the outside in, a request passes: security headers, request id and last-resort answer (the
collector's ``RequestScope``), same-origin check, session gate, page faults, routes.
"""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from toolfault_collector.clock import now_us
from toolfault_collector.errors import CollectorError
from toolfault_collector.http.app import IngestLane, RequestScope, create_router
from toolfault_collector.runtime import Collector
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import read_connection
from toolfault_collector.storage.database.schema import prepare
from toolfault_dashboard.access import signin
from toolfault_dashboard.access.lockout import Lockout
from toolfault_dashboard.access.security import (
    FormBodies,
    Gate,
    PageFaults,
    SameOrigin,
    SecurityHeaders,
)
from toolfault_dashboard.alerts.service import AlertService
from toolfault_dashboard.api import create_api
from toolfault_dashboard.exports.downloads import Running
from toolfault_dashboard.local_sessions import Importing
from toolfault_dashboard.mcp.http import McpEndpoint
from toolfault_dashboard.pages import ROUTERS
from toolfault_dashboard.pages.shared.ask import Services
from toolfault_dashboard.pages.shared.errors import (
    counting_page,
    error_page,
    query_error_page,
    too_slow_page,
)
from toolfault_dashboard.pages.shared.waits import Waits
from toolfault_dashboard.prewarming import start_prewarming
from toolfault_dashboard.queries import CursorError
from toolfault_dashboard.queries.counting.deadline import TooSlow
from toolfault_dashboard.queries.counting.segments import keep_at_most
from toolfault_dashboard.queries.counting.stored_answers import counting_code
from toolfault_dashboard.queries.counting.time_budget import StillCounting
from toolfault_dashboard.queries.reading import EventsUnavailable, read_events_from
from toolfault_dashboard.render import PACKAGE
from toolfault_dashboard.search import QueryError

# A message under way may take longer; it is then sent again by whoever goes on.
ALERTS_STOP_SECONDS: Final = 2.0

__all__ = ["NoAccount", "create_app", "sign_in_url"]


class NoAccount(CollectorError):  # noqa: N818 - the collector's tree reads as states
    """The address can be reached from other machines and nobody has an account yet."""


def create_app(
    settings: Settings,
    *,
    collector: Collector | None = None,
    clock: Callable[[], int] = now_us,
    ahead: bool = False,
    alerting: bool = False,
) -> FastAPI:
    """Return the whole server; its lifespan starts and stops the collector.

    Args:
        settings: The settings of the process.
        collector: The collector to serve, if it exists already.
        clock: Returns microseconds since the epoch, UTC; pages measure "7 days ago" from it.
        ahead: Whether to ask the questions of large projects' pages before a reader does.
        alerting: Whether to evaluate the rules of alerts and to send their messages.
    """
    collector = collector or Collector(settings)
    counting_code()  # before anything changes its files
    keep_at_most(collector.engine, settings.kept_rows)
    if collector.events is not None:
        read_events_from(collector.engine, collector.events)
    service = AlertService(collector.engine, settings, clock=clock)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(collector.start)
        try:
            await run_in_threadpool(_refuse_open_server, collector.engine, settings.host, clock())
            if ahead:
                start_prewarming(collector.engine, clock, collector.stopping)
            if alerting:
                service.start()
            yield
        finally:
            await run_in_threadpool(service.stop, ALERTS_STOP_SECONDS)
            await run_in_threadpool(collector.stop)

    app = FastAPI(
        title="toolfault", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None
    )
    app.state.collector = collector
    app.state.services = Services(
        engine=collector.engine,
        clock=clock,
        forget_keys=collector.keys.forget,
        lockout=Lockout(clock),
        settings=settings,
        waits=Waits(),
        running=Running(),
        importing=Importing(collector.engine),
    )
    app.include_router(create_router(collector))
    # The routes as they are: including a router builds each of its routes anew for every app.
    app.router.routes.extend(route for router in ROUTERS for route in router.routes)
    app.mount("/api/v1", create_api(collector.engine, collector.keys, clock), name="api")
    mcp = McpEndpoint(
        collector.engine,
        collector.keys,
        clock,
        is_local=_is_loopback(settings.host),
        public_url=settings.public_url,
    )
    app.router.routes.append(Route("/mcp", mcp, methods=["POST"], name="mcp"))
    static = GZipMiddleware(_Static(packages=[(PACKAGE, "static")]))
    app.mount("/static", static, name="static")
    _add_layers(app, collector.engine, clock)
    # Outermost: what a proxy says of its client decides whether a cookie is for https alone.
    app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=settings.trusted_proxies)
    return app


def sign_in_url(settings: Settings, engine: Engine, url: str, *, now: int) -> str | None:
    """Return the one-time link to print at start; None once somebody has signed in.

    The schema is brought up to date first, as the server itself will do.

    Args:
        settings: The settings of the process.
        engine: The server's database.
        url: Where the server listens, without a slash at the end.
        now: Microseconds since the epoch.

    Raises:
        NoAccount: The address is public and nobody has an account or an open link.
    """
    prepare(engine, migrate=settings.migrate)
    _refuse_open_server(engine, settings.host, now)
    with read_connection(engine) as conn:
        if signin.has_account(conn):
            return None
    return f"{url}/sign-in?token={signin.create_link(engine, now=now)}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _refuse_open_server(engine: Engine, host: str, now: int) -> None:
    if _is_loopback(host):
        return
    with read_connection(engine) as conn:
        if signin.has_credential(conn, now=now):
            return
    raise NoAccount(
        f"{host} can be reached from other machines and nobody has an account yet. Run "
        "`toolfault sign-in-link` first, keep the link it prints, and start the server again; or "
        "start it with --allow-public, which prints one."
    )


def _add_layers(app: FastAPI, engine: Engine, clock: Callable[[], int]) -> None:
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(QueryError, _query_error)
    app.add_exception_handler(CursorError, _cursor_error)
    app.add_exception_handler(TooSlow, _too_slow)
    app.add_exception_handler(StillCounting, _still_counting)
    app.add_exception_handler(EventsUnavailable, _no_events)
    # The last one added is the outermost.
    app.add_middleware(PageFaults, error_page=error_page)
    app.add_middleware(Gate, engine=engine, clock=clock, error_page=error_page)
    app.add_middleware(SameOrigin, error_page=error_page)
    app.add_middleware(FormBodies)
    app.add_middleware(RequestScope)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(IngestLane, collector=app.state.collector)


class _Static(StaticFiles):
    """Static files; an address with the content's hash may be kept for ever."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        hashed = b"v=" in scope.get("query_string", b"")
        keep = "public, max-age=31536000, immutable" if hashed else "no-cache"
        response.headers["Cache-Control"] = keep
        return response


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "registered for HTTPException"
    response = error_page(request, error.status_code, str(error.detail))
    for name, value in (error.headers or {}).items():
        response.headers[name] = value
    return response


def _validation_error(request: Request, error: Exception) -> Response:
    # The framework's own answer would repeat the input.
    assert isinstance(error, RequestValidationError)
    names = ", ".join(sorted({str(each["loc"][-1]) for each in error.errors()}))
    return error_page(request, 422, f"Correct {names} in the address or the form, or leave it out.")


def _query_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, QueryError), "registered for QueryError"
    return query_error_page(request, error)


def _cursor_error(request: Request, error: Exception) -> Response:
    return error_page(request, 400, str(error))


def _too_slow(request: Request, error: Exception) -> Response:
    assert isinstance(error, TooSlow), "registered for TooSlow"
    return too_slow_page(request, error)


def _no_events(request: Request, error: Exception) -> Response:
    return error_page(request, 503, str(error))


def _still_counting(request: Request, error: Exception) -> Response:
    assert isinstance(error, StillCounting), "registered for StillCounting"
    return counting_page(request, error)
