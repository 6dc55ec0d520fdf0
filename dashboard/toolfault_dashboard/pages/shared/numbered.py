"""Lists whose pages have numbers: of what is ranked, where no moment says where a page begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, TypeVar

from fastapi import Query as Parameter

from toolfault_dashboard.pages.shared.ask import Ask

__all__ = ["Number", "numbered", "one_page"]

_Row = TypeVar("_Row")

_MOST: Final = 100_000

Number = Annotated[int, Parameter(ge=1, le=_MOST)]
"""The parameter ``page`` of an address, from 1."""


def one_page(
    ask: Ask,
    page: int,
    rows: Sequence[_Row],
    size: int,
    *,
    name: str = "page",
    at: str = "",
) -> tuple[tuple[_Row, ...], dict[str, str]]:
    """Return the *rows* of one page of a list that is known whole, and the links beside it.

    Args:
        ask: What was asked.
        page: The page that the address names.
        rows: The whole list.
        size: Rows of a page.
        name: The parameter of the address; each list of a page has its own.
        at: The id of the list's heading, where the list is not the first of its page.
    """
    page, pages = numbered(ask, page, len(rows), size, name=name, at=at)
    return tuple(rows[(page - 1) * size : page * size]), pages


def numbered(
    ask: Ask, page: int, total: int, size: int, *, name: str = "page", at: str = ""
) -> tuple[int, dict[str, str]]:
    """Return the page to show, the last one where *page* is beyond it, and the links beside it.

    Args:
        ask: What was asked.
        page: The page that the address names.
        total: Rows of the whole list.
        size: Rows of a page.
        name: The parameter of the address; each list of a page has its own.
        at: The id of the list's heading, where the list is not the first of its page.
    """
    last = max(1, -(-total // size))
    page = min(page, last)

    def beside(number: int) -> str:
        # What was just done was said here, and nothing is done by turning the page.
        address = ask.here(**{name: "" if number == 1 else str(number), "done": ""})
        return f"{address}#{at}" if at else address

    return page, {
        "newer": beside(page - 1) if page > 1 else "",
        "older": beside(page + 1) if page < last else "",
    }
