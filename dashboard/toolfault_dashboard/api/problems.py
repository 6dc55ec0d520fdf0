"""Errors of the API as problem documents (RFC 9457); none repeats what was sent."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response

from toolfault_collector.http.app import problem_response
from toolfault_collector.http.problems import Problem
from toolfault_dashboard.exports import MissingParquet
from toolfault_dashboard.queries import CursorError
from toolfault_dashboard.queries.buckets import TooManyBucketsError
from toolfault_dashboard.queries.counting.deadline import TooSlow
from toolfault_dashboard.queries.reading import EventsUnavailable
from toolfault_dashboard.search import QueryError

__all__ = ["RESPONSES", "ProblemDocument", "add_problem_handlers"]


class ProblemDocument(BaseModel):
    """What went wrong and what to do (RFC 9457)."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    request_id: str | None
    column: int | None = None
    suggestion: str | None = None


_PROBLEM: Final = {
    "application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}
}
RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    # Answered before anything of ours has read it.
    400: {"description": "No HTTP, or an address beyond 64 KiB.", "content": {"text/plain": {}}},
    401: {"description": "No valid read key and no session.", "content": _PROBLEM},
    403: {"description": "The key is of another kind.", "content": _PROBLEM},
    404: {"description": "Nothing of that name in this project.", "content": _PROBLEM},
    422: {"description": "The query, a cursor or a parameter cannot be read.", "content": _PROBLEM},
    429: {"description": "Too many exports at once.", "content": _PROBLEM},
    # Whoever reads the head of a request refuses it before a problem can be written.
    431: {"description": "The address or the headers are too large."},
    503: {"description": "The answer would take too long.", "content": _PROBLEM},
}


def add_problem_handlers(app: FastAPI) -> None:
    """Answer every error of *app* with a problem document."""
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(QueryError, _query_error)
    app.add_exception_handler(CursorError, _cursor_error)
    app.add_exception_handler(TooManyBucketsError, _too_many_buckets)
    app.add_exception_handler(TooSlow, _too_slow)
    app.add_exception_handler(EventsUnavailable, _no_events)
    app.add_exception_handler(MissingParquet, _missing_parquet)
    app.add_exception_handler(RequestValidationError, _wrong_parameter)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _fault)


def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return problem_response(request, error)


def _query_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, QueryError)
    members = {"column": error.column, "suggestion": error.suggestion}
    return problem_response(request, Problem(422, "bad_query", error.message, members=members))


def _cursor_error(request: Request, error: Exception) -> Response:
    return problem_response(request, Problem(422, "bad_cursor", str(error)))


def _too_many_buckets(request: Request, error: Exception) -> Response:
    return problem_response(request, Problem(422, "bad_parameter", str(error)))


def _missing_parquet(request: Request, error: Exception) -> Response:
    return problem_response(request, Problem(501, "no_parquet", str(error)))


def _fault(request: Request, error: Exception) -> Response:
    del error  # the layer around the application logs it
    request_id = request.scope.get("state", {}).get("request_id")
    detail = f"a fault of the server; its log has more under {request_id}"
    members = {"error_id": request_id}
    return problem_response(request, Problem(500, "internal_error", detail, members=members))


def _too_slow(request: Request, error: Exception) -> Response:
    problem = Problem(503, "too_slow", str(error), headers={"Retry-After": "60"})
    return problem_response(request, problem)


def _no_events(request: Request, error: Exception) -> Response:
    problem = Problem(503, "events_unavailable", str(error), headers={"Retry-After": "30"})
    return problem_response(request, problem)


def _wrong_parameter(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    names = ", ".join(sorted({str(each["loc"][-1]) for each in error.errors()}))
    detail = f"Correct the parameter {names}; /api/v1/openapi.json describes it."
    return problem_response(request, Problem(422, "bad_parameter", detail))


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "error")
    detail = {
        404: "There is no such address; /api/v1/openapi.json lists them.",
        405: "The API is read-only: use GET.",
    }.get(error.status_code, "The request cannot be answered.")
    problem = Problem(error.status_code, code, detail, headers=dict(error.headers or {}))
    return problem_response(request, problem)
