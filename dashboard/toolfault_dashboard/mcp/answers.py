"""Answers that are small by construction: as many rows as fit, and a cursor for the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolfault_dashboard.mcp.untrusted import NOTE, encoded
from toolfault_dashboard.queries.lists.cursors import Cursor, read_cursor, write_cursor
from toolfault_dashboard.queries.scope import Scope

__all__ = ["Answer", "estimated_tokens", "following", "start_of", "written"]

BYTES_PER_TOKEN: Final = 3
"""UTF-8 bytes for one token. Tokenizers take 4 of English and fewer of JSON with ids and numbers,
so this estimates more tokens than there are."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool says before it is written.

    Attributes:
        head: Members that are always there.
        rows: The list that may be cut.
        name: The member of *rows*.
        cursor: Takes how many rows are shown and returns where the next page begins, or None
            where no row is left.
    """

    head: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]] = ()
    name: str = "rows"
    cursor: Callable[[int], str | None] = lambda _: None


def estimated_tokens(text: str) -> int:
    """Return how many tokens *text* is taken for: its UTF-8 bytes by `BYTES_PER_TOKEN`."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def written(answer: Answer, *, tokens: int) -> str:
    """Write *answer* as one line of JSON of at most *tokens*, with as many rows as fit.

    Raises:
        ValueError: Not even one row fits: the bounds of its texts are too wide.
    """
    low, high = 0, len(answer.rows)
    if high and estimated_tokens(_text(answer, high, None)) > tokens - _CURSOR_TOKENS:
        while low < high:  # the most rows that fit: each row makes it longer
            middle = (low + high + 1) // 2
            fits = estimated_tokens(_text(answer, middle, None)) <= tokens - _CURSOR_TOKENS
            low, high = (middle, high) if fits else (low, middle - 1)
    if answer.rows and not high:
        raise ValueError("No row fits into the answer.")
    return _text(answer, high, answer.cursor(high))


_CURSOR_TOKENS: Final = 40
"""What ``next_cursor`` may take."""


def _text(answer: Answer, kept: int, cursor: str | None) -> str:
    body: dict[str, Any] = {"note": NOTE, **answer.head}
    if answer.rows:
        body[answer.name] = answer.rows[:kept]
    if cursor is not None:
        body["next_cursor"] = cursor
    return encoded(body)


def start_of(scope: Scope, name: str, cursor: str) -> int:
    """Return the position at which the page of *cursor* begins; "" is the first one.

    Raises:
        CursorError: The cursor is of another tool, query or project.
    """
    return read_cursor(scope, f"mcp {name}", cursor).row if cursor else 0


def following(scope: Scope, name: str, start: int, total: int) -> Callable[[int], str | None]:
    """Return the cursor function of a list that is counted anew for each page.

    Args:
        scope: What the list is of.
        name: Of the tool.
        start: Position of the first row that was shown.
        total: Rows of the whole list.
    """

    def cursor(shown: int) -> str | None:
        at = start + shown
        return write_cursor(scope, f"mcp {name}", Cursor("older", 0, at)) if at < total else None

    return cursor
