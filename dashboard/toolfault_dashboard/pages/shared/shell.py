"""The frame around every page: navigation, project switcher, theme, account."""

from __future__ import annotations

import re
from datetime import UTC, tzinfo
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from toolfault_dashboard.access.policy import allows, rule_for
from toolfault_dashboard.formats import when
from toolfault_dashboard.pages.shared.frame import Link, NavItem, Shell
from toolfault_dashboard.queries.reading import read_until
from toolfault_dashboard.render import query_string

if TYPE_CHECKING:
    from starlette.requests import Request

    from toolfault_dashboard.pages.shared.ask import Ask

__all__ = ["PATHS", "bare_shell", "clock_of", "shell_of", "theme_of", "zone_of"]

_ZONE_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,31}(/[A-Za-z0-9_+-]{1,31}){0,2}")
_UTC_NAMES: Final = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Zulu", "Etc/Zulu"})

# Events on ClickHouse arrive a second or two after they were accepted; only more is worth a word.
_BEHIND_US: Final = 5_000_000

# Group, and in it: (label, path, icon, key, further paths that belong to it)
_Entry = tuple[str, str, str, str, tuple[str, ...]]
NAVIGATION: Final[tuple[tuple[str, tuple[_Entry, ...]], ...]] = (
    (
        "What fails",
        (
            ("Overview", "/", "overview", "o", ("/start",)),
            ("Failures", "/failures", "failures", "f", ("/failures/", "/conversation")),
            ("Round trips", "/round-trips", "round-trips", "r", ("/chains/",)),
            ("Codes and fields", "/codes", "codes", "c", ()),
            ("Tools", "/tools", "tools", "t", ("/tool",)),
            ("Break down", "/breakdown", "breakdown", "b", ()),
            ("Live", "/live", "live", "l", ()),
        ),
    ),
    (
        "What to do",
        (
            ("Fix next", "/fix-next", "fix-next", "x", ()),
            ("Messages", "/messages", "messages", "m", ()),
            ("Changes", "/changes", "changes", "n", ("/changes/", "/compare")),
            ("Experiments", "/experiments", "experiments", "e", ("/experiment",)),
            ("Alerts", "/alerts", "alerts", "a", ("/alert",)),
            ("Views", "/views", "views", "v", ()),
        ),
    ),
    (
        "This server",
        (
            ("OpenTelemetry", "/received", "received", "i", ()),
            ("Rejected", "/rejected", "rejected", "j", ()),
            ("Settings", "/settings", "settings", "s", ("/settings/",)),
            ("Help", "/help", "help", "h", ("/docs",)),
        ),
    ),
)


PATHS: Final = frozenset(path for _, entries in NAVIGATION for _, path, *_ in entries)
"""Addresses of the pages in the navigation."""


def zone_of(request: Request) -> str:
    """Return the name of the reader's time zone; empty where the browser did not say one."""
    name = request.cookies.get("zone", "")
    return name if _zone(name) is not UTC else ""


def clock_of(request: Request) -> tzinfo:
    """Return the zone to write times in: the reader's, unless unknown or UTC is preferred."""
    if request.cookies.get("clock") == "utc":
        return UTC
    return _zone(request.cookies.get("zone", ""))


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo:
    """Return the zone of this name; UTC where there is none, since anybody can send a cookie."""
    if not _ZONE_NAME.fullmatch(name) or name in _UTC_NAMES:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def theme_of(request: Request) -> str:
    """Return the reader's theme: ``light``, ``dark``, or empty for the system's choice."""
    chosen = request.cookies.get("theme", "")
    return chosen if chosen in ("light", "dark") else ""


def _version() -> str:
    try:
        return version("toolfault-server")
    except PackageNotFoundError:
        return ""


def _may_see(ask: Ask, path: str) -> bool:
    rule = rule_for("GET", path)
    return rule is not None and allows(ask.viewer.role, rule.access)


def shell_of(ask: Ask, title: str) -> Shell:
    """Return the frame of a page for a signed-in reader."""
    path = ask.request.url.path
    nav = tuple(
        NavItem(
            label=label,
            # A query means the same on every page, so it follows the reader.
            href=ask.link(target),
            icon=icon,
            key=key,
            current=path == target or any(path.startswith(prefix) for prefix in below),
            group=group,
        )
        for group, entries in NAVIGATION
        for label, target, icon, key, below in entries
        if _may_see(ask, target)
    )
    name = ask.project.name if ask.project else ""
    return Shell(
        title=title,
        project=name,
        projects=tuple(
            Link(
                each.name,
                "/" + query_string({} if each == ask.home else {"project": each.name}),
                each.name == name,
            )
            for each in ask.projects
        ),
        nav=nav,
        person=ask.viewer.name,
        role=ask.viewer.role,
        theme=theme_of(ask.request),
        zone=zone_of(ask.request),
        utc=clock_of(ask.request) is UTC,
        here=ask.here(),
        version=_version(),
        refresh=ask.refresh,
        as_of=_as_of(ask),
    )


def _as_of(ask: Ask) -> str:
    """Return when the figures were true, if that is a while ago."""
    behind_since = read_until(ask.conn)
    if behind_since is None or ask.now - behind_since <= _BEHIND_US:
        return ""
    return when(behind_since) if behind_since else "an earlier time: older events are being copied"


def bare_shell(request: Request, title: str) -> Shell:
    """Return the frame of a page for somebody who is not signed in."""
    return Shell(
        title=title,
        project="",
        projects=(),
        nav=(),
        person="",
        role="",
        theme=theme_of(request),
        zone="",
        utc=True,
        here=request.url.path,
        version=_version(),
        refresh=0,
        as_of="",
    )
