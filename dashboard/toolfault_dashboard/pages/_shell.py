"""The frame around every page: navigation, project switcher, theme, account."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

from toolfault_dashboard.contexts import Link, NavItem, Shell
from toolfault_dashboard.policy import allows, rule_for
from toolfault_dashboard.render import query_string

if TYPE_CHECKING:
    from starlette.requests import Request

    from toolfault_dashboard.pages._ask import Ask

__all__ = ["NAVIGATION", "bare_shell", "shell_of", "theme_of"]

# (label, path, icon, key, further paths that belong to it)
NAVIGATION: Final = (
    ("Overview", "/", "overview", "o", ("/start",)),
    ("Failures", "/failures", "failures", "f", ("/failures/",)),
    ("Round trips", "/round-trips", "round-trips", "r", ("/chains/",)),
    ("Codes and fields", "/codes", "codes", "c", ()),
    ("Tools", "/tools", "tools", "t", ("/tool",)),
    ("Messages", "/messages", "messages", "m", ()),
    ("Fix next", "/fix-next", "fix-next", "x", ()),
    ("Changes", "/changes", "changes", "n", ("/changes/", "/compare")),
    ("Experiments", "/experiments", "experiments", "e", ("/experiment",)),
    ("Live", "/live", "live", "l", ()),
    ("Views", "/views", "views", "v", ()),
    ("Rejected", "/rejected", "rejected", "j", ()),
    ("Settings", "/settings", "settings", "s", ("/settings/",)),
    ("Help", "/help", "help", "h", ()),
)


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
        )
        for label, target, icon, key, below in NAVIGATION
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
        here=ask.here(),
        version=_version(),
        refresh=ask.refresh,
    )


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
        here=request.url.path,
        version=_version(),
        refresh=0,
    )
