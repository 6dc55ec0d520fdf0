"""Addresses of the pages, from the table of who may see what: a new page is tested at once."""

from __future__ import annotations

from typing import Final

from toolfault_dashboard.access.policy import POLICY

__all__ = ["COMPARED", "LISTS"]

_OF_SOMETHING: Final = {"/tool", "/experiment", "/conversation"}  # answer 404 without a name
_NO_PAGES: Final = {"/live/events", "/complete", "/range"}
_LABORIOUS: Final = {"/alert"}  # replays a month; it has tests of its own
_OPEN: Final = {"/docs"}  # for everybody, in the frame of the other pages

LISTS: Final = tuple(
    rule.path
    for rule in POLICY
    if "GET" in rule.methods
    and (rule.access not in ("public", "ingest", "api", "key") or rule.path in _OPEN)
    and not set("{.") & set(rule.path)
    and rule.path not in _OF_SOMETHING | _NO_PAGES | _LABORIOUS
)
"""Every page that needs no id."""

COMPARED: Final = "/compare?before=tool%3Asearch&after=tool%3Ahttp_request"
"""Two tools of the generated history, one against the other."""
