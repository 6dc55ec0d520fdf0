"""What every page begins with: who asks, for which project, query and time window.

``Ask`` is the request as the pages see it. It holds one open read connection (one snapshot, so all
figures of a page agree), builds links that keep the state of the view, and renders.
"""

from __future__ import annotations

import gzip
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import parse_qsl

from fastapi import Depends, HTTPException, Request
from sqlalchemy import Connection, Engine
from starlette.responses import HTMLResponse

from toolfault_collector.settings import Settings
from toolfault_dashboard import queries
from toolfault_dashboard.access.lockout import Lockout
from toolfault_dashboard.access.policy import sees
from toolfault_dashboard.access.signin import Viewer
from toolfault_dashboard.exports.downloads import Running
from toolfault_dashboard.formats import shown_in, timestamp, when
from toolfault_dashboard.local_sessions import Importing
from toolfault_dashboard.pages.shared.frame import Chip, Context, Link, View
from toolfault_dashboard.pages.shared.shell import clock_of, shell_of
from toolfault_dashboard.pages.shared.waits import Waits
from toolfault_dashboard.queries.counting.deadline import deadline
from toolfault_dashboard.queries.counting.time_budget import StillCounting, time_budget
from toolfault_dashboard.queries.projects import written
from toolfault_dashboard.queries.reading import reading
from toolfault_dashboard.queries.rows import ProjectRow
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.render import environment, query_string
from toolfault_dashboard.search import Clause, Query, not_restricting_calls, parse
from toolfault_dashboard.writes.saved_views import PAGES as SAVEABLE

__all__ = [
    "DAY",
    "WINDOWS",
    "Ask",
    "Asked",
    "Services",
    "ask_about",
    "curl",
    "open_ask",
    "python",
    "sent",
]

DAY: Final = 86_400 * 1_000_000  # microseconds
DEFAULT_DAYS: Final = 14
WINDOWS: Final = {
    "24h": ("24 h", "in the last 24 hours"),
    "7d": ("7 days", "in the last 7 days"),
    "14d": ("14 days", "in the last 14 days"),
    "30d": ("30 days", "in the last 30 days"),
    "90d": ("90 days", "in the last 90 days"),
    "all": ("All time", "over all time"),
}
REFRESHES: Final = {0: "Off", 30: "30 s", 60: "1 min", 300: "5 min"}
"""How often a page may load itself again, in seconds; 0 for never."""


@dataclass(frozen=True, slots=True)
class Services:
    """What the pages share: set once by ``create_app`` on ``app.state.services``."""

    engine: Engine
    clock: Callable[[], int]  # microseconds since the epoch, UTC
    forget_keys: Callable[[], None]  # one was revoked: look every key up again
    lockout: Lockout
    settings: Settings
    waits: Waits
    running: Running  # downloads of the pages
    importing: Importing  # of sessions on this machine


@dataclass(frozen=True)
class Ask:
    """One request for a page."""

    request: Request
    conn: Connection
    services: Services
    viewer: Viewer
    projects: tuple[ProjectRow, ...]
    project: ProjectRow | None
    home: ProjectRow | None  # the oldest one: addresses that name no project stay true
    now: int
    text: str  # the query as written
    fixed: Query | None = None  # the query, where a page decides on it

    @property
    def chosen_window(self) -> str:
        """The time window that the URL asks for; empty for the default."""
        wanted = self.request.query_params.get("window", "")
        return wanted if wanted in WINDOWS else ""

    @property
    def query(self) -> Query:
        """The query as written.

        Raises:
            QueryError: It cannot be read; the error page shows the box with the error under it.
        """
        return parse(self.text) if self.fixed is None else self.fixed

    @property
    def default_window(self) -> str:
        """14 days where something failed in them, else all time: no reader starts with nothing."""
        last = self.project.last_failure_at if self.project else None
        recent = last is not None and last >= self.now - DEFAULT_DAYS * DAY
        return f"{DEFAULT_DAYS}d" if recent else "all"

    @property
    def window(self) -> str:
        """The time window in force; ``query`` when the query itself names moments."""
        if self.query.has("since", "until"):
            return "query"
        return self.chosen_window or self.default_window

    @property
    def effective(self) -> Query:
        """The query with the time window as a condition: what the rows are selected by."""
        return self.query.and_(self.window_query(self.query))

    def window_query(self, query: Query) -> Query:
        """Return the time window as a condition; none where *query* names moments of its own."""
        window = self.chosen_window or self.default_window
        if query.has("since", "until") or window == "all":
            return Query()
        return parse(f"since:{window}")

    @property
    def scope(self) -> Scope:
        """The rows of the page: project, query, moment, and what the role may see."""
        return self.scope_of(self.effective)

    def scope_of(self, query: Query) -> Scope:
        """Return the scope of another query under the same project and role."""
        return Scope(
            project_id=self.project.id if self.project else 0,
            query=query,
            now=self.now,
            audience=sees(self.viewer.role),
        )

    def link(
        self, path: str, q: Query | str | None = None, *, window: str | None = None, **more: str
    ) -> str:
        """Return an address that keeps project, query and window unless told otherwise."""
        keep = "" if self.project == self.home else self._project_name()
        text = self.text if q is None else str(q)
        chosen = self.chosen_window if window is None else window
        return path + query_string({"q": text, "window": chosen, "project": keep, **more})

    def export(self, path: str, q: Query | None = None, **more: str) -> str:
        """Return the address of a CSV of exactly the rows shown, window written out."""
        return self.link(path, self.effective if q is None else q, window="all", **more)

    def _project_name(self) -> str:
        return self.project.name if self.project else ""

    def here(self, **changed: str) -> str:
        """Return this page's own address with some parameters changed (empty removes one)."""
        kept = dict(parse_qsl(self.request.url.query)) | changed
        return self.request.url.path + query_string(kept)

    def view(self, action: str, **kept: str) -> View:
        """Return the query bar of the page at *action*; its links keep the parameters *kept*."""
        query, window = self.query, self.window
        refresh = self.refresh
        if refresh:
            kept["refresh"] = str(refresh)

        def link(q: Query | str, *, window: str | None = None) -> str:
            return self.link(action, q, window=window, **kept)

        return View(
            action=action,
            text=self.text,
            project=self._project_name(),
            window=self.chosen_window,
            hidden=tuple(kept.items()),
            windows=tuple(
                Link(label, link(query.without("since", "until"), window=name), name == window)
                for name, (label, _) in WINDOWS.items()
            ),
            window_text=WINDOWS[window][1] if window in WINDOWS else "in the time of the query",
            everything=not query.clauses and window == "all",
            no_calls=self.has_no_calls,
            chips=tuple(
                Chip(str(clause), link(Query(_others(query, index))))
                for index, clause in enumerate(query.clauses)
            ),
            save=self.link("/views", self.effective, window="", page=action)
            if action in SAVEABLE
            else "",
            reset=link(""),
            advice=self._advice(link),
            limits_failures_only=not_restricting_calls(query),
            sampled=self.sampled,
            refreshes=tuple(
                Link(label, self.here(refresh=str(seconds or "")), seconds == refresh)
                for seconds, label in REFRESHES.items()
            ),
            copies=self.copies(),
        )

    def _advice(self, link: Callable[..., str]) -> Link:
        """Return what to try where nothing was found: all time, no filter, then sending data.

        Where all data is older than the window, as imported transcripts often are, its last week.
        """
        send = Link("Send data", self.link("/start", "", window=""), current=False)
        if self.has_no_calls:
            return send
        newest = self.project.last_failure_at if self.project else None
        if newest is not None and not self.query.clauses and self.window != "all":
            days = 1 if self.window == "24h" else int(self.window.removesuffix("d"))
            if newest < self.now - days * DAY:
                return self._last_week(newest, link)
        if self.window != "all":
            everything = link(self.query.without("since", "until"), window="all")
            return Link("Look at all time", everything, current=False)
        if self.query.clauses:
            return Link("Remove the filter", link(""), current=False)
        return send

    def _last_week(self, newest: int, link: Callable[..., str]) -> Link:
        """Return the link to the seven days that end with the day of the *newest* failure."""
        end = (newest // DAY + 1) * DAY
        begin, until = (timestamp(at)[:10] for at in (end - 7 * DAY, end))
        week = parse(f"since:{begin} until:{until}")
        day = when(newest).partition(",")[0]
        return Link(f"Look at the week until {day}", link(week, window=""), current=False)

    @property
    def has_no_calls(self) -> bool:
        """Whether no call of the project has arrived yet."""
        return self.project is None or not written(self.conn, self.project.id)

    @property
    def sampled(self) -> bool:
        """Whether calls of the project stand for others that were not sent."""
        return self.project is not None and queries.sampling(self.conn, self.project.id).calls

    @property
    def refresh(self) -> int:
        """Seconds after which the page loads again; 0 for never."""
        wanted = self.request.query_params.get("refresh", "")
        return int(wanted) if wanted.isdecimal() and int(wanted) in REFRESHES else 0

    def copies(self) -> tuple[tuple[str, str, str], ...]:
        """Return the same question for other tools: id, label and text."""
        text = str(self.effective)
        url = self.request.url
        address = f"{url.scheme}://{url.netloc}/api/v1/failures{query_string({'q': text})}"
        return (
            ("copy-query", "Query", text or "everything"),
            ("copy-curl", "curl", curl(address)),
            ("copy-python", "Python", python(address)),
            ("copy-command", "Shell", self._command(text)),
        )

    def _command(self, text: str) -> str:
        """Return the command that lists the failures of *text*, in this project if it has to."""
        words = ["toolfault", "errors", "--format", "csv"]
        if self.project is not None and len(self.projects) > 1:
            words += ["--project", self.project.name]
        if text.startswith("-"):
            words.append("--")  # a condition that is negated is no option
        return shlex.join([*words, *filter(None, [text])])

    def render(self, page: Context, *, title: str, status: int = 200) -> HTMLResponse:
        """Render the template of *page* with it."""
        with shown_in(clock_of(self.request), self.now):
            made = environment().get_template(page.template)
            html = made.render(shell=shell_of(self, title), page=page)
        return sent(self.request, html, status)


def sent(request: Request, html: str, status: int = 200) -> HTMLResponse:
    """Return the page, compressed where the browser takes that.

    Settings and Start are sent as they are: they may hold a key, and the length of a compressed
    page tells of secrets in it (BREACH, 2013).
    """
    headers = {"Cache-Control": "no-store", "Vary": "Accept-Encoding"}
    body = html.encode()
    private = request.url.path.startswith(("/settings", "/start"))
    if not private and "gzip" in request.headers.get("accept-encoding", ""):
        body = gzip.compress(body, compresslevel=5)
        headers["Content-Encoding"] = "gzip"
    return HTMLResponse(body, status_code=status, headers=headers)


def curl(address: str) -> str:
    """Return the command that asks the API for *address*; the key stays out of the history."""
    return f'curl -H "Authorization: Bearer $TOOLFAULT_READ_KEY" {shlex.quote(address)}'


def python(address: str) -> str:
    """Return a Python program that asks the API for *address*, standard library alone."""
    return (
        "import json, os, urllib.request\n\n"
        f"request = urllib.request.Request({address!r})\n"
        'request.add_header("Authorization", f"Bearer {os.environ[\'TOOLFAULT_READ_KEY\']}")\n'
        "print(json.load(urllib.request.urlopen(request)))"
    )


def _others(query: Query, index: int) -> tuple[Clause, ...]:
    return query.clauses[:index] + query.clauses[index + 1 :]


def open_ask(request: Request) -> Iterator[Ask]:
    """Yield the ``Ask`` of a request inside one read transaction (a FastAPI dependency)."""
    services: Services = request.app.state.services
    waits = services.waits
    with reading(services.engine) as conn, deadline(conn):
        ask = _ask(request, services, conn)
        with time_budget(conn, waits.time_budget(request)):
            try:
                yield ask
            except StillCounting:
                waits.again(request)
                raise
            waits.over(request)


@contextmanager
def ask_about(request: Request, seconds: float = 2.0) -> Iterator[Ask]:
    """Yield an ``Ask`` to say something about a request that was not answered, if that is quick.

    Raises:
        TooSlow: It is not.
    """
    services: Services = request.app.state.services
    with reading(services.engine) as conn, deadline(conn, seconds):
        yield _ask(request, services, conn)


def _ask(request: Request, services: Services, conn: Connection) -> Ask:
    projects = queries.projects(conn)
    wanted = request.query_params.get("project", "")
    found = next((each for each in projects if each.name == wanted), None)
    if wanted and found is None:
        raise HTTPException(404, "There is no project of that name.")
    oldest = min(projects, key=lambda each: each.id, default=None)
    return Ask(
        request=request,
        conn=conn,
        services=services,
        viewer=request.state.viewer,
        projects=projects,
        project=found or oldest,
        home=oldest,
        now=services.clock(),
        text=request.query_params.get("q", "").strip(),
    )


Asked = Annotated[Ask, Depends(open_ask)]
