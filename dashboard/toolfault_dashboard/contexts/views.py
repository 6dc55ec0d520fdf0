"""Saved views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc

from toolfault_dashboard.writes.saved_views import SavedView

__all__ = ["ViewLine", "ViewsContext"]


@dataclass(frozen=True, slots=True)
class ViewLine:
    """A saved view with its address."""

    row: Doc[SavedView, "What is stored."]
    href: Doc[str, "The view."]
    page: Doc[str, "Name of the page it is of."]


@dataclass(frozen=True, slots=True)
class ViewsContext:
    """`views.html`."""

    views: Doc[tuple[ViewLine, ...], "Own and shared views, by name."]
    csv: Doc[str, "The views as CSV."]
    pages: Doc[dict[str, str], "Pages a view can be of: address and name."]
    name: Doc[str, "Name in the form."]
    page: Doc[str, "Page chosen in the form."]
    query: Doc[str, "Query in the form."]
    problem: Doc[str, "Why the view was not saved; else empty."]
    saved: Doc[str, "Name of the view just saved; else empty."]
