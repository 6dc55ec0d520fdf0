"""Addresses of the pages, taken from the navigation: a new page is in every test at once."""

from __future__ import annotations

from typing import Final

from toolfault_dashboard.pages._shell import NAVIGATION

__all__ = ["COMPARED", "LISTS"]

LISTS: Final = (*(path for _, path, *_ in NAVIGATION), "/compare", "/start")
"""Every page that needs no id."""

COMPARED: Final = "/compare?before=tool%3Asearch&after=tool%3Ahttp_request"
"""Two tools of the generated history, one against the other."""
