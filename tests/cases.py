"""Cases of a test that are asked in the long run alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

__all__ = ["long_cases"]


def long_cases(*values: object) -> Iterator[object]:
    """Yield a case of one value each, which `make test-long` alone runs."""
    for value in values:
        yield pytest.param(value, marks=pytest.mark.long)
