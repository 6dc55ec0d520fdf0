"""Text as the source may hold it: one string, or blocks of several kinds."""

from __future__ import annotations

from typing import Final

__all__ = ["cut", "text_of"]

_BLOCK_LIMIT: Final = 1_000
_DEPTH: Final = 3


def cut(text: str, limit: int) -> str:
    """Shorten to at most *limit* characters, keeping the beginning and saying that it was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def text_of(content: object) -> str:
    """Give the text of a message's content: a string, a list of text blocks, a number, or nothing.

    Blocks that carry no text (images, documents) are passed over.
    """
    if isinstance(content, list):
        parts = (_block_text(block) for block in content[:_BLOCK_LIMIT])
        return "\n".join(part for part in parts if part)
    return _block_text(content)


def _block_text(block: object) -> str:
    """Give the text of one block, which may hold its text one or two levels down."""
    for _ in range(_DEPTH):
        if not isinstance(block, dict):
            break
        block = block.get("text", block.get("content"))
    if isinstance(block, str):
        return block
    if isinstance(block, int | float) and not isinstance(block, bool):
        return str(block)
    return ""
