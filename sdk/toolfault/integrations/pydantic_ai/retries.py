"""What Pydantic AI tells the model of a call that it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

__all__ = ["ValidationError", "part_of", "text_of", "text_with"]


class ValidationError(Exception):
    """The issues of a validation error of pydantic whose exception the framework has dropped.

    Args:
        rows: What ``errors()`` of pydantic's exception returned.
    """

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        super().__init__(f"{len(rows)} validation errors")
        self._rows = rows

    def errors(self) -> list[dict[str, Any]]:
        """Return the issues in pydantic's form."""
        return self._rows


def part_of(error: Any) -> Any:
    """Return the part of the next request that the model reads."""
    return getattr(error, "tool_retry", None) or getattr(error, "tool_failed", None)


def text_of(part: Any) -> str:
    """Return what the model reads of a request to try again, or of a failure that is returned."""
    for name in ("model_response", "model_response_str"):
        method = getattr(part, name, None)
        if method is not None:
            return str(method())
    return ""


def text_with(part: Any, whole: str, content: str) -> str:
    """Return what the model reads of ``content``, which the framework wraps."""
    return whole if content == whole else text_of(replace(part, content=content))
