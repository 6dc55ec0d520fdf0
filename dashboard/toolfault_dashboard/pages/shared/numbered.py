"""Lists whose pages have numbers: of what is ranked, where no moment says where a page begins."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Query as Parameter

from toolfault_dashboard.pages.shared.ask import Ask

__all__ = ["Number", "numbered"]

_MOST: Final = 100_000

Number = Annotated[int, Parameter(ge=1, le=_MOST)]
"""The parameter ``page`` of an address, from 1."""


def numbered(ask: Ask, page: int, total: int, size: int) -> tuple[int, dict[str, str]]:
    """Return the page to show, the last one where *page* is beyond it, and the links beside it.

    Args:
        ask: What was asked.
        page: The page that the address names.
        total: Rows of the whole list.
        size: Rows of a page.
    """
    last = max(1, -(-total // size))
    page = min(page, last)

    def beside(number: int) -> str:
        # What was just done was said here, and nothing is done by turning the page.
        return ask.here(page="" if number == 1 else str(number), done="")

    return page, {
        "newer": beside(page - 1) if page > 1 else "",
        "older": beside(page + 1) if page < last else "",
    }
