"""The frame around every page, and the query bar that most of them share.

Every field of a context is ``Annotated`` with the sentence that documents it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc
from typing import ClassVar

__all__ = ["Chip", "Context", "Link", "NavItem", "Shell", "View"]


class Context:
    """What one template may use as ``page``: a frozen dataclass, every field documented.

    It stands beside the page that makes it. A test compares every ``page.x`` of its template with
    its fields, both ways.

    Attributes:
        template: Name of the template.
    """

    __slots__ = ()
    template: ClassVar[str]


@dataclass(frozen=True, slots=True)
class Link:
    """A link that may be the current one."""

    label: Doc[str, "What it says."]
    href: Doc[str, "Where it leads, with the whole state of the view."]
    current: Doc[bool, "Whether it is where the reader is."]


@dataclass(frozen=True, slots=True)
class NavItem:
    """An entry of the main navigation."""

    label: Doc[str, "Name of the page."]
    href: Doc[str, "Address of the page, with project and time window kept."]
    icon: Doc[str, "Name of its drawing in `_icons.html`."]
    key: Doc[str, "Letter that opens it after `g`."]
    current: Doc[bool, "Whether the reader is on it or below it."]
    group: Doc[str, "What it stands under in the navigation."]


@dataclass(frozen=True, slots=True)
class Shell:
    """What `base.html` shows around a page."""

    title: Doc[str, "Title of the page, first words of the window title."]
    project: Doc[str, "Name of the project shown; empty before there is one."]
    projects: Doc[tuple[Link, ...], "All projects, for the switcher."]
    nav: Doc[tuple[NavItem, ...], "The main navigation."]
    person: Doc[str, "Name of the signed-in account."]
    role: Doc[str, "Role of the signed-in account."]
    theme: Doc[str, "`light`, `dark`, or empty for the system's choice."]
    zone: Doc[str, "The reader's time zone as the browser names it; empty if it is unknown."]
    utc: Doc[bool, "Whether times are written in UTC."]
    here: Doc[str, "Path and query of this page, to come back to after a form."]
    version: Doc[str, "Version of the server."]
    refresh: Doc[int, "Seconds after which the page loads again; 0 for never."]
    as_of: Doc[str, "When the figures were true, where newer events are on their way; else empty."]


@dataclass(frozen=True, slots=True)
class Chip:
    """One condition of the query with the link that takes it away."""

    text: Doc[str, "The condition as the query language writes it."]
    without: Doc[str, "The same view without this condition."]


@dataclass(frozen=True, slots=True)
class View:
    """The query bar: what is filtered, and how to filter otherwise."""

    action: Doc[str, "Path that the form asks."]
    text: Doc[str, "The query as written, without the time window."]
    project: Doc[str, "Project to keep in the form; empty for the default one."]
    window: Doc[str, "Time window to keep in the form; empty for the default one."]
    hidden: Doc[tuple[tuple[str, str], ...], "Further parameters to keep in the form."]
    windows: Doc[tuple[Link, ...], "The time windows to choose from."]
    window_text: Doc[str, "The window in words, to end a sentence: `in the last 14 days`."]
    everything: Doc[bool, "Whether neither the query nor the window leaves anything out."]
    no_calls: Doc[bool, "Whether no call of the project has arrived yet."]
    chips: Doc[tuple[Chip, ...], "The conditions of the query."]
    save: Doc[str, "Where this view can be saved; empty if it cannot."]
    reset: Doc[str, "The view without any condition."]
    advice: Doc[Link, "What to try where the view holds nothing."]
    limits_failures_only: Doc[
        tuple[str, ...], "Keys of the query that restrict failures but not the calls they are of."
    ]
    sampled: Doc[bool, "Whether calls of the project stand for others that were not sent."]
    refreshes: Doc[tuple[Link, ...], "How often the page may load itself again."]
    copies: Doc[
        tuple[tuple[str, str, str], ...], "The same question elsewhere: id, label, text to copy."
    ]
