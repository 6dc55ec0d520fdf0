"""Error pages: what happened and what to do, as a page for browsers and as a problem otherwise."""

from __future__ import annotations

from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from toolfault_collector.app import problem_response
from toolfault_collector.problems import Problem
from toolfault_dashboard.contexts import ErrorContext, Link, QueryErrorContext, View
from toolfault_dashboard.pages._ask import Ask, open_ask
from toolfault_dashboard.pages._shell import NAVIGATION, bare_shell, shell_of
from toolfault_dashboard.policy import is_machine_path
from toolfault_dashboard.render import environment
from toolfault_dashboard.search import QueryError

__all__ = ["error_page", "query_error_page"]

_HEADLINES: Final = {
    400: "That did not make sense",
    401: "Sign in first",
    403: "Not allowed",
    404: "Nothing here",
    405: "That cannot be done here",
    410: "Not valid any more",
    422: "That did not make sense",
    500: "Something went wrong",
    503: "Busy",
}


def _wants_page(request: Request) -> bool:
    path = request.url.path
    return not is_machine_path(path) and not path.endswith((".csv", ".json", ".ndjson"))


def error_page(request: Request, status: int, sentence: str) -> Response:
    """Return the answer to a request that failed.

    Browsers get a page, programs a problem document (RFC 9457); neither repeats what was sent.
    """
    if not _wants_page(request):
        code = HTTPStatus(status).name.lower()
        return problem_response(request, Problem(status, code, sentence))
    headline = _HEADLINES.get(status, HTTPStatus(status).phrase)
    context = ErrorContext(status=status, headline=headline, sentence=sentence, home="/")
    html = (
        environment()
        .get_template("error.html")
        .render(shell=bare_shell(request, headline), page=context)
    )
    return HTMLResponse(html, status_code=status)


def query_error_page(request: Request, error: QueryError) -> Response:
    """Return the page with the query box and the error under it."""
    if not _wants_page(request):
        return error_page(request, 400, str(error))
    with contextmanager(open_ask)(request) as ask:
        path = request.url.path
        action = path if path in {"/tool", *(item[1] for item in NAVIGATION)} else "/failures"
        context = QueryErrorContext(
            view=_bare_view(ask, action),
            message=error.message,
            pointer=" " * max(0, error.column - 1) + "^",
            suggestion=error.suggestion or "",
            column=error.column,
        )
        html = (
            environment()
            .get_template("query_error.html")
            .render(shell=shell_of(ask, "Query"), page=context)
        )
    return HTMLResponse(html, status_code=400)


def _bare_view(ask: Ask, action: str) -> View:
    """Return a query bar whose query cannot be read: nothing may be derived from it."""
    return View(
        action=action,
        text=ask.text,
        project=ask.project.name if ask.project else "",
        window=ask.chosen_window,
        hidden=tuple((k, v) for k, v in ask.request.query_params.items() if k == "name"),
        windows=(),
        window_text="",
        chips=(),
        save="",
        reset=ask.link(action, ""),
        advice=Link("Look at all time", ask.link(action, "", window="all"), current=False),
        limits_failures_only=(),
        sampled=False,
        refreshes=(),
        copies=(),
    )
