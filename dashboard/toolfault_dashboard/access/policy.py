"""Who may use which route: one explicit table, deny by default.

The gate (``security.Gate``) looks every request up here before any route runs; a test holds the
table equal to the routes of the application, so a route that nobody decided on cannot exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from re import Pattern
from typing import Final, Literal

from starlette.routing import compile_path

__all__ = [
    "DOWNLOADS",
    "KEY_AUDIENCE",
    "POLICY",
    "ROLES",
    "Access",
    "Audience",
    "Role",
    "Rule",
    "allows",
    "is_machine_path",
    "other_method_access",
    "rule_for",
    "sees",
]

Role = Literal["viewer", "developer", "operator", "admin"]
ROLES: Final[tuple[Role, ...]] = ("viewer", "developer", "operator", "admin")

Audience = Literal["user", "llm", "system"]
_SEES: Final[dict[Role, Audience]] = {
    "viewer": "user",
    "developer": "llm",
    "operator": "system",
    "admin": "system",
}

KEY_AUDIENCE: Final[Audience] = "llm"
"""What a read key sees: it is handed to scripts, notebooks and coding agents, so no tracebacks and
no users."""

Access = Literal["public", "ingest", "api", "key", "viewer", "developer", "operator", "admin"]
"""``public``: everyone. ``ingest``: the route itself checks an ingest key. ``api``: the route
itself checks a read key, or a session stands behind it. ``key``: the route itself checks a read
key, and a session is none. A role: a session of at least that role."""

DOWNLOADS: Final[tuple[Literal["csv", "ndjson", "parquet"], ...]] = ("csv", "ndjson", "parquet")
"""Formats in which every table can be downloaded."""

_READ: Final = frozenset({"GET", "HEAD"})
_WRITE: Final = frozenset({"POST"})


def sees(role: Role) -> Audience:
    """Return the highest audience that *role* may see."""
    return _SEES[role]


def allows(role: Role, access: Access) -> bool:
    """Say whether a session of *role* reaches a route of *access*."""
    if access in ("public", "ingest", "api", "key"):
        return True
    return ROLES.index(role) >= ROLES.index(access)


@dataclass(frozen=True, slots=True)
class Rule:
    """One route and who may use it."""

    path: str
    methods: frozenset[str]
    access: Access
    regex: Pattern[str]


def _rule(path: str, access: Access, methods: frozenset[str] = _READ) -> Rule:
    return Rule(path=path, methods=methods, access=access, regex=compile_path(path)[0])


def _table(name: str, access: Access = "viewer") -> tuple[Rule, ...]:
    """A table as a file, one address per format."""
    return tuple(_rule(f"/{name}.{suffix}", access) for suffix in DOWNLOADS)


def _page(name: str, access: Access = "viewer") -> tuple[Rule, ...]:
    """A list page and its table as a file, which holds exactly what the page shows."""
    return _rule(f"/{name}", access), *_table(name, access)


POLICY: Final[tuple[Rule, ...]] = (
    # Taking data in: keys are checked by the collector itself.
    *(_rule(f"/v1/{each}", "ingest", _WRITE) for each in ("events", "traces", "logs", "metrics")),
    _rule("/v1/schema", "public"),  # of what is taken, nothing stored
    _rule("/healthz", "public"),
    _rule("/readyz", "public"),
    _rule("/metrics", "public"),  # counters of this process, nothing stored
    # Reading for programs: the API checks a read key, or the session that the gate recognised.
    _rule("/api/v1/{path:path}", "api"),
    _rule("/mcp", "key", _WRITE),  # of coding agents; nothing is written
    # Without a session.
    _rule("/static/{path:path}", "public"),
    _rule("/sign-in", "public"),
    _rule("/sign-in", "public", _WRITE),
    _rule("/theme", "public", _WRITE),
    _rule("/clock", "public", _WRITE),
    # The documentation says nothing of this server's data, and helps those who cannot sign in.
    _rule("/docs", "public"),
    _rule("/docs/{path:path}", "public"),
    # Pages.
    _rule("/", "viewer"),
    *_table("overview"),
    *_table("over-time"),
    *_page("failures"),
    *_table("kinds"),
    _rule("/kinds", "developer", _WRITE),
    _rule("/failures/{event_id}", "viewer"),
    *_page("round-trips"),
    *_table("chains"),
    *_table("chain-ends"),
    *_table("conversation-rungs"),
    *_table("chain-lengths"),
    _rule("/chains/{chain_id}", "viewer"),
    _rule("/conversation", "viewer"),
    *_page("codes"),
    *_table("fields"),
    *_table("matrix"),
    *_table("field-matrix"),
    *_table("issues"),
    *_page("breakdown"),
    *_page("tools"),
    _rule("/tool", "viewer"),
    *_page("changes"),
    _rule("/changes", "developer", _WRITE),
    _rule("/changes/{event_id}", "viewer"),
    *_table("effect"),
    *_table("new-since"),
    _rule("/compare", "viewer"),
    *_table("comparison"),
    *_table("comparison-codes"),
    *_page("experiments"),
    *_page("experiment"),
    *_table("experiment-costs"),
    *_table("experiment-days"),
    *_page("fix-next", "developer"),
    _rule("/fix-next", "developer", _WRITE),
    _rule("/fix-next/remove", "developer", _WRITE),
    *_table("picked-fixes", "developer"),
    *_page("messages", "developer"),
    *_table("phantom-arguments", "developer"),  # part of the page of a tool
    *_table("repeated-executions"),  # the same
    # Its list of what to fix next is a developer's.
    _rule("/report.html", "developer"),
    _rule("/report.md", "developer"),
    _rule("/live", "viewer"),
    _rule("/live/events", "viewer"),
    *_page("views"),
    _rule("/views", "viewer", _WRITE),
    _rule("/views/delete", "viewer", _WRITE),
    *_page("alerts", "developer"),
    _rule("/alerts", "developer", _WRITE),
    _rule("/alerts/remove", "developer", _WRITE),
    _rule("/alerts/snooze", "developer", _WRITE),
    _rule("/alert", "developer"),
    *_table("alert-history", "developer"),
    *_page("received", "operator"),
    *_table("counted", "operator"),
    *_page("rejected", "operator"),
    _rule("/settings", "admin"),
    *_table("keys", "admin"),
    *_table("people", "admin"),
    *_table("audit", "admin"),
    _rule("/settings/keys", "admin", _WRITE),
    _rule("/settings/keys/revoke", "admin", _WRITE),
    _rule("/settings/project", "admin", _WRITE),
    *_table("channels", "admin"),
    _rule("/settings/channels", "admin", _WRITE),
    _rule("/settings/channels/remove", "admin", _WRITE),
    _rule("/settings/channels/test", "admin", _WRITE),
    _rule("/settings/soft-rules", "admin", _WRITE),
    _rule("/settings/people", "admin", _WRITE),
    _rule("/settings/people/role", "admin", _WRITE),
    _rule("/complete", "viewer"),
    _rule("/range", "viewer"),
    _rule("/start", "viewer"),
    _rule("/start", "admin", _WRITE),
    _rule("/start/sessions", "admin", _WRITE),
    _rule("/help", "viewer"),
    _rule("/sign-out", "viewer", _WRITE),
)


def rule_for(method: str, path: str) -> Rule | None:
    """Return the rule of a request; None when no route of that method and path exists."""
    for rule in POLICY:
        if method in rule.methods and rule.regex.match(path):
            return rule
    return None


def other_method_access(path: str) -> Access | None:
    """Return the access of a path that exists for another method; None when it does not exist."""
    return next((rule.access for rule in POLICY if rule.regex.match(path)), None)


def is_machine_path(path: str) -> bool:
    """Say whether programs, not browsers, call this path, so that a sign-in page is no answer."""
    return path.startswith(("/v1/", "/api/")) or path in ("/healthz", "/readyz", "/metrics", "/mcp")
