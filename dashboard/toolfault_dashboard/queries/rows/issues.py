"""One thing wrong with one argument."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["IssueRow"]


@dataclass(frozen=True, slots=True)
class IssueRow:
    """One thing wrong with one argument inside a failure."""

    event_id: str  # of the failure
    position: int
    tool: str
    field: str
    field_pattern: str
    root_field: str
    code: str
    type: str | None
    message: str | None
    expected: str | None
    received: str | None
    received_type: str | None
    near_miss: tuple[str, ...]
