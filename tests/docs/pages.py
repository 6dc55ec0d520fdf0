"""The fenced blocks of the documentation's pages, as a reader finds them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "Block", "blocks", "pages", "says"]

ROOT = Path(__file__).resolve().parents[2]
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One block: where it stands, in what language, and its text."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """README and every page of the documentation that is written by hand."""
    return [
        "README.md",
        "sdk/README.md",
        "demo/README.md",
        *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
    ]


def blocks(page: str) -> list[Block]:
    """The blocks of *page* in their order."""
    text = (ROOT / page).read_text("utf-8")
    assert len(re.findall(r"^\s*(?:```|~~~)", text, re.MULTILINE)) == 2 * len(
        _FENCED.findall(text)
    ), f"{page} has a fence that is indented, not closed, or with more than a language"
    return [
        Block(page, text.count("\n", 0, match.start()) + 1, match[1], match[2])
        for match in _FENCED.finditer(text)
    ]


def says(printed: str, said: str) -> bool:
    """Whether *said* is what the page has *printed*.

    ``...`` there stands for any text on its line; blanks at the ends of lines are ignored.
    """
    said = re.sub(" +$", "", said, flags=re.MULTILINE)
    return re.fullmatch(re.escape(printed).replace(r"\.\.\.", ".+"), said) is not None
