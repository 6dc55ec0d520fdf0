"""Tables as text one can paste: GitHub-flavoured Markdown."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["markdown_table", "markdown_text"]


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table; the first column is text, the others are right-aligned."""
    lines = [_line(headings), _line([":--", *("--:" for _ in headings[1:])])]
    return "\n".join([*lines, *(_line(row) for row in rows)]) + "\n"


def _line(cells: Sequence[object]) -> str:
    return f"| {' | '.join(markdown_text(cell) for cell in cells)} |"


def markdown_text(cell: object) -> str:
    """Return *cell* as text on one line in which nothing is markup: names come from data."""
    text = "" if cell is None else " ".join(str(cell).split())
    for character in "\\|`*_<>[]":
        text = text.replace(character, f"\\{character}")
    return text
