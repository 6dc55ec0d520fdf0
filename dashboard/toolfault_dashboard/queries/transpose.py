"""Rows of a statement, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["transposed"]


def transposed(rows: Sequence[Sequence[Any]], width: int) -> Sequence[Sequence[Any]]:
    """Return *rows* column by column; *width* empty columns where there is none."""
    return list(zip(*rows, strict=True)) or [()] * width
