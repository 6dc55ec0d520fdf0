"""Tables as text one can paste: GitHub-flavoured Markdown."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["markdown_table", "markdown_text"]


def markdown_table(
    headings: Sequence[str], rows: Sequence[Sequence[object]], links: Sequence[str] = ()
) -> str:
    """Return a Markdown table; the first column is text, the others are right-aligned.

    Args:
        headings: One for each column.
        rows: The cells.
        links: Where the first cell of each row leads; empty ones, or none at all, lead nowhere.
    """
    lines = [_line(headings), _line([":--", *("--:" for _ in headings[1:])])]
    places = links or [""] * len(rows)
    lines += [_line(row, place) for row, place in zip(rows, places, strict=True)]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[object], link: str = "") -> str:
    first, *others = (markdown_text(cell) for cell in cells)
    return f"| {' | '.join([f'[{first}](<{link}>)' if link else first, *others])} |"


def markdown_text(cell: object) -> str:
    """Return *cell* as text on one line in which nothing is markup: names come from data."""
    text = "" if cell is None else " ".join(str(cell).split())
    for character in "\\|`*_<>[]":
        text = text.replace(character, f"\\{character}")
    return text
