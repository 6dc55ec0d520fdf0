"""What every page begins with: who asks, for which project, query and time window.

``Ask`` is the request as the pages see it. It holds one open read connection (one snapshot, so all
figures of a page agree), builds links that keep the state of the view, and renders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import parse_qsl

from fastapi import Depends, HTTPException, Request
from sqlalchemy import Connection, Engine
from starlette.responses import HTMLResponse

from toolfault_collector.engine import read_connection
from toolfault_dashboard import queries
from toolfault_dashboard.contexts import TEMPLATES, Chip, Link, View
from toolfault_dashboard.lockout import Lockout
from toolfault_dashboard.pages._shell import shell_of
from toolfault_dashboard.policy import sees
from toolfault_dashboard.queries.rows import ProjectRow
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.render import environment, query_string
from toolfault_dashboard.saved_views import PAGES as SAVEABLE
from toolfault_dashboard.search import Clause, Query, not_restricting_calls, parse
from toolfault_dashboard.signin import Viewer

__all__ = ["DAY", "WINDOWS", "Ask", "Asked", "Services", "open_ask"]

DAY: Final = 86_400 * 1_000_000  # microseconds
DEFAULT_DAYS: Final = 14
WINDOWS: Final = {
    "24h": ("24 h", "in the last 24 hours"),
    "7d": ("7 days", "in the last 7 days"),
    "14d": ("14 days", "in the last 14 days"),
    "30d": ("30 days", "in the last 30 days"),
    "90d": ("90 days", "in the last 90 days"),
    "all": ("All time", "in all time"),
}


@dataclass(frozen=True, slots=True)
class Services:
    """What the pages share: set once by ``create_app`` on ``app.state.services``."""

    engine: Engine
    clock: Callable[[], int]  # microseconds since the epoch, UTC
    forget_keys: Callable[[], None]  # one was revoked: look every key up again
    lockout: Lockout


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
        if self.window in ("query", "all"):
            return self.query
        return self.query.and_(parse(f"since:{self.window}"))

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
            chips=tuple(
                Chip(str(clause), link(Query(_others(query, index))))
                for index, clause in enumerate(query.clauses)
            ),
            save=self.link("/views", self.effective, window="", page=action)
            if action in SAVEABLE
            else "",
            reset=link(""),
            everything=link(query.without("since", "until"), window="all"),
            limits_failures_only=not_restricting_calls(query),
        )

    def render(self, template: str, page: object, *, title: str, status: int = 200) -> HTMLResponse:
        """Render *page*, which must be of the class that belongs to *template*."""
        expected = TEMPLATES[template]
        if not isinstance(page, expected):
            raise TypeError(f"{template} needs a {expected.__name__}.")
        html = environment().get_template(template).render(shell=shell_of(self, title), page=page)
        return HTMLResponse(html, status_code=status, headers={"Cache-Control": "no-store"})


def _others(query: Query, index: int) -> tuple[Clause, ...]:
    return query.clauses[:index] + query.clauses[index + 1 :]


def open_ask(request: Request) -> Iterator[Ask]:
    """Yield the ``Ask`` of a request inside one read transaction (a FastAPI dependency)."""
    services: Services = request.app.state.services
    with read_connection(services.engine) as conn:
        projects = queries.projects(conn)
        wanted = request.query_params.get("project", "")
        found = next((each for each in projects if each.name == wanted), None)
        if wanted and found is None:
            raise HTTPException(404, "There is no project of that name.")
        oldest = min(projects, key=lambda each: each.id, default=None)
        yield Ask(
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
