"""Answers without an answer: what happened and what to do, or how far it is.

Errors are pages for browsers and problem documents for programs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated as Doc
from typing import ClassVar, Final
from urllib.parse import unquote_plus

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from toolfault_collector.http.app import problem_response
from toolfault_collector.http.problems import Problem
from toolfault_dashboard.access.policy import is_machine_path
from toolfault_dashboard.formats import visible
from toolfault_dashboard.pages.shared.ask import WINDOWS, Ask, ask_about
from toolfault_dashboard.pages.shared.frame import Context, Link, View
from toolfault_dashboard.pages.shared.shell import PATHS, bare_shell
from toolfault_dashboard.queries.counting.deadline import TooSlow
from toolfault_dashboard.queries.counting.time_budget import StillCounting
from toolfault_dashboard.render import environment
from toolfault_dashboard.search import QueryError

__all__ = ["counting_page", "error_page", "query_error_page", "too_slow_page"]


@dataclass(frozen=True, slots=True)
class ErrorContext(Context):
    """What `error.html` shows."""

    template: ClassVar[str] = "error.html"

    status: Doc[int, "HTTP status."]
    headline: Doc[str, "What happened, in a few words."]
    sentence: Doc[str, "What happened and what to do."]
    home: Doc[str, "Where to go on."]


@dataclass(frozen=True, slots=True)
class QueryErrorContext(Context):
    """What `query_error.html` shows."""

    template: ClassVar[str] = "query_error.html"

    view: Doc[View, "The query bar with the text at fault."]
    message: Doc[str, "What is wrong with the query, and what to do."]
    pointer: Doc[str, "Spaces up to the column at fault, then a caret."]
    suggestion: Doc[str, "The nearest valid word; empty if there is none."]
    column: Doc[int, "Column at fault, from 1."]


@dataclass(frozen=True, slots=True)
class TooSlowContext(Context):
    """What `too_slow.html` shows."""

    template: ClassVar[str] = "too_slow.html"

    view: Doc[View | None, "The query bar with what was asked; none where the page has none."]
    seconds: Doc[int, "After how many seconds it was stopped."]
    narrower: Doc[tuple[Link, ...], "The same question over less time."]
    again: Doc[str, "The same page once more."]
    address: Doc[str, "Its address, for reading: what a page without a query bar was asked."]


@dataclass(frozen=True, slots=True)
class CountingContext(Context):
    """What `counting.html` shows."""

    template: ClassVar[str] = "counting.html"

    view: Doc[View | None, "The query bar with what was asked; none where the page has none."]
    question: Doc[int, "Which of the page's questions is being counted, from 1."]
    done: Doc[int, "Parts of the question that are known."]
    of: Doc[int, "Parts that it has; 0 if that is not known yet."]
    again: Doc[str, "The same page, which goes on counting."]


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

_FILES: Final = (".csv", ".json", ".ndjson", ".parquet")
_NARROW: Final = ("24h", "7d")
_KEPT: Final = frozenset(
    {"by", "chain-cols", "cols", "control", "days", "group", "metric", "name", "sort"}
)
"""What addresses of those pages say beside query, window and project."""
_WINDOWED: Final = frozenset(
    {"/", "/failures", "/round-trips", "/codes", "/tools", "/tool", "/messages", "/fix-next",
     "/experiments", "/experiment", "/live"}
)  # fmt: skip
"""Pages with a query box and a time window of their own."""


def _wants_page(request: Request) -> bool:
    path = request.url.path
    return not is_machine_path(path) and not path.endswith(_FILES)


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
        .get_template(context.template)
        .render(shell=bare_shell(request, headline), page=context)
    )
    return HTMLResponse(html, status_code=status)


def query_error_page(request: Request, error: QueryError) -> Response:
    """Return the page with the query box and the error under it."""
    if not _wants_page(request):
        return error_page(request, 400, str(error))
    with ask_about(request) as ask:
        path = request.url.path
        action = path if path in {"/tool", *PATHS} else "/failures"
        context = QueryErrorContext(
            view=_bare_view(ask, action),
            message=error.message,
            pointer=" " * max(0, error.column - 1) + "^",
            suggestion=error.suggestion or "",
            column=error.column,
        )
        return ask.render(context, title="Query", status=400)


def too_slow_page(request: Request, error: TooSlow) -> Response:
    """Return what was asked and could not be answered in time, with ways to ask for less."""
    if not _wants_page(request):
        return error_page(request, 503, str(error))
    try:
        with ask_about(request) as ask:
            context = TooSlowContext(
                view=_view(ask),
                seconds=round(error.seconds),
                narrower=tuple(_narrower(ask)),
                again=ask.here(),
                address=visible(unquote_plus(ask.here())),
            )
            return ask.render(context, title="Too slow", status=503)
    except (TooSlow, QueryError):
        # The database does not even tell which projects there are, or the query was not yet read.
        return error_page(request, 503, str(error))


def counting_page(request: Request, error: StillCounting) -> Response:
    """Return how far the answer is, as a page that asks again by itself."""
    try:
        with ask_about(request) as ask:
            context = CountingContext(
                view=_view(ask),
                question=error.question,
                done=error.done,
                of=error.of,
                again=ask.here(),
            )
            return ask.render(context, title="Counting", status=202)
    except TooSlow as slow:
        return error_page(request, 503, str(slow))


def _view(ask: Ask) -> View | None:
    """Return the query bar of the page that was asked for; None if it has none."""
    path = ask.request.url.path
    if path not in _WINDOWED:
        return None
    given = ask.request.query_params.items()
    return ask.view(path, **{key: value for key, value in given if key in _KEPT})


def _narrower(ask: Ask) -> Iterator[Link]:
    """Yield the same question over less time."""
    path, now = ask.request.url.path, ask.window
    if path.startswith("/changes/"):
        if ask.request.query_params.get("sides") != "7d":
            yield Link("7 days on either side", ask.here(sides="7d"), current=False)
    elif path in _WINDOWED:
        names = list(WINDOWS)
        rest = str(ask.query.without("since", "until"))
        for name in _NARROW:
            if now not in names or names.index(name) < names.index(now):
                href = ask.here(q=rest, window=name, cursor="")
                yield Link(f"The same {WINDOWS[name][1]}", href, current=False)


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
        everything=False,
        no_calls=False,
        chips=(),
        save="",
        reset=ask.link(action, ""),
        advice=Link("Look at all time", ask.link(action, "", window="all"), current=False),
        limits_failures_only=(),
        sampled=False,
        refreshes=(),
        copies=(),
    )
