"""The one error of the query language."""

from __future__ import annotations

__all__ = ["QueryError"]


class QueryError(ValueError):
    """A query that cannot be understood; it says where and, where possible, what was meant.

    Attributes:
        message: One sentence that says what to do. It repeats at most the word at fault.
        column: Position in the query text, from 1.
        suggestion: The nearest valid word, or None.
    """

    def __init__(self, message: str, column: int = 1, suggestion: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.column = column
        self.suggestion = suggestion

    def __str__(self) -> str:
        hint = f" Did you mean {self.suggestion!r}?" if self.suggestion else ""
        return f"{self.message}{hint} (column {self.column} of the query)"
