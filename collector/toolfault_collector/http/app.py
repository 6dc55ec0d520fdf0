"""The collector as a web application: ingest, health, metrics, and its own error answers.

The dashboard composes the same parts: it calls `create_app` and adds its pages.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import structlog
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST, Counter, generate_latest
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolfault_collector.http.headers import check_headers
from toolfault_collector.http.ingest import IngestEndpoint
from toolfault_collector.http.openapi import json_schema
from toolfault_collector.http.otlp import OTLP_PATHS, OtlpEndpoint
from toolfault_collector.http.problems import Problem, send_problem
from toolfault_collector.runtime import Collector
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.schema import is_at_head

__all__ = ["IngestLane", "RequestScope", "create_app", "create_router", "problem_response"]

_log = structlog.get_logger(__name__)

_CODES: Final = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "body_too_large",
    415: "unsupported_media_type",
    422: "wrong_shape",
}


def create_app(settings: Settings, *, collector: Collector | None = None) -> FastAPI:
    """Return the application of a collector without pages; its lifespan starts and stops it.

    Args:
        settings: The settings of the process.
        collector: The collector to serve, if it exists already.
    """
    collector = collector or Collector(settings)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(collector.start)
        try:
            yield
        finally:
            await run_in_threadpool(collector.stop)

    app = FastAPI(
        title="toolfault collector",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.collector = collector
    app.include_router(create_router(collector))
    app.add_middleware(RequestScope)
    app.add_middleware(IngestLane, collector=collector)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    return app


def create_router(collector: Collector) -> APIRouter:
    """Return the routes of *collector* beside those that `IngestLane` serves."""
    router = APIRouter()

    @router.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Say that the process answers."""
        return {"status": "ok"}

    @router.get("/v1/schema")
    async def schema() -> Response:
        """Return the JSON schema of what ``POST /v1/events`` takes."""
        return JSONResponse(json_schema(), media_type="application/schema+json")

    @router.get("/readyz")
    def readyz() -> Response:
        """Say whether events can be stored: schema at head, database and writer answer."""
        return _readiness(collector)

    @router.get("/metrics")
    def metrics() -> Response:
        """Return the counters of this process in the text format of Prometheus."""
        text = generate_latest(collector.metrics.registry)
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    return router


def problem_response(request: Request, problem: Problem) -> Response:
    """Return *problem* as the answer to *request*."""
    request_id = request.scope.get("state", {}).get("request_id")
    return JSONResponse(
        problem.document(request_id),
        problem.status,
        headers={**problem.headers, "Cache-Control": "no-store"},
        media_type="application/problem+json",
    )


def _readiness(collector: Collector) -> Response:
    try:
        reason = None if is_at_head(collector.engine) else "schema"
    except SQLAlchemyError:
        reason = "database"
    if reason is None and not collector.writer.alive:
        reason = "writer"
    if reason is None:
        # Events are accepted and kept without ClickHouse, too; pages are behind meanwhile.
        behind = collector.shipping is not None and collector.shipping.is_failing
        return JSONResponse({"status": "ok", **({"clickhouse": "unavailable"} if behind else {})})
    return JSONResponse({"status": "unavailable", "reason": reason}, 503, {"Retry-After": "2"})


def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "error")
    detail = {
        404: "nothing is here",
        405: "this method is not allowed here",
    }.get(error.status_code, str(error.detail))
    headers = dict(error.headers or {})
    return problem_response(request, Problem(error.status_code, code, detail, headers))


def _on_invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    # Where it is wrong, never what was sent: the framework's own answer repeats the input.
    pointers = ["/" + "/".join(str(part) for part in each["loc"]) for each in error.errors()]
    detail = "a parameter is missing or wrong"
    members = {"pointers": pointers[:20]}
    return problem_response(request, Problem(422, "wrong_shape", detail, members=members))


class IngestLane:
    """Takes events and OTLP past the layers that pages need; everything else goes through them.

    Those layers (session, origin, templates, the framework's routing) have nothing to say about a
    batch with a key, and would cost as much as storing it.
    """

    def __init__(self, app: ASGIApp, collector: Collector) -> None:
        self._app = app
        answers = collector.metrics.requests
        otlp = RequestScope(OtlpEndpoint(collector), answers=answers)
        events = RequestScope(IngestEndpoint(collector), answers=answers)
        self._lanes = {"/v1/events": events, **dict.fromkeys(OTLP_PATHS, otlp)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        lane = self._lanes.get(scope["path"]) if scope["type"] == "http" else None
        await (self._app if lane is None else lane)(scope, receive, send)


class RequestScope:
    """Outermost layer: a request id on everything, and no exception without an answer.

    Args:
        app: What is inside.
        answers: Counts every answer by its status, whichever layer gave it.
    """

    def __init__(self, app: ASGIApp, *, answers: Counter | None = None) -> None:
        self._app = app
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Names a line of the log, guards nothing.
        request_id = f"{random.getrandbits(64):016x}"
        scope.setdefault("state", {})["request_id"] = request_id
        answer = _Answer(scope, send, request_id, self._answers)
        structlog.contextvars.bind_contextvars(request_id=request_id)
        try:
            check_headers(scope)
            await self._app(scope, receive, answer.send)
        except Problem as refusal:
            await send_problem(scope, answer.send, refusal)
        except asyncio.CancelledError:
            if answer.status:
                raise  # an answer that is cut off must look like one
            # The time to finish after SIGTERM is over. What was whole may be stored all the same,
            # and is a duplicate when it comes again.
            detail = "the server is stopping; send the same again later"
            await send_problem(
                scope, answer.send, Problem(503, "unavailable", detail, {"Retry-After": "2"})
            )
        except Exception:
            # The exception may hold data of the request: `log` keeps its place, not its text.
            _log.exception("request_failed", path=_path(scope))
            if answer.ended:
                return  # an application within this one has said it
            if answer.status:
                raise
            detail = f"a fault of the server; its log has more under {request_id}"
            problem = Problem(500, "internal_error", detail, members={"error_id": request_id})
            await send_problem(scope, answer.send, problem)
        finally:
            if answer.status and not answer.ended:
                answer.log()  # as far as it came
            structlog.contextvars.unbind_contextvars("request_id")


class _Answer:
    """The answer to one request, on its way to who asked: named, counted and logged.

    Attributes:
        status: 0 as long as nothing was sent.
        ended: Whether all of it was sent.
    """

    def __init__(self, scope: Scope, send: Send, request_id: str, answers: Counter | None) -> None:
        self._scope = scope
        self._send = send
        self._request_id = request_id
        self._answers = answers
        self._began = time.perf_counter()
        self.status = 0
        self.ended = False

    async def send(self, message: Message) -> None:
        """Send a part of it."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            id_header = (b"x-request-id", self._request_id.encode())
            message["headers"] = [*message.get("headers", ()), id_header]
            if self._answers is not None:
                self._answers.labels(str(self.status)).inc()
        elif message["type"] == "http.response.body" and not message.get("more_body"):
            self.ended = True
            self.log()
        await self._send(message)

    def log(self) -> None:
        """Write the line about the request, from its head to now."""
        say: Callable[..., Any] = _log.debug if self.status < 400 else _log.info
        method, path = self._scope["method"][:16], _path(self._scope)
        milliseconds = round((time.perf_counter() - self._began) * 1_000, 1)
        say("request", method=method, path=path, status=self.status, duration_ms=milliseconds)


def _path(scope: Scope) -> str:
    return str(scope["path"])[:200]
