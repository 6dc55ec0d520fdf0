"""A pytest fixture that collects the failures of a test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from toolfault.errors import ToolError
    from toolfault.tools import CallRecord


@pytest.fixture
def captured_failures() -> Iterator[list[ToolError]]:
    """Every failure of a tool call during the test, oldest first."""
    from toolfault.tools import observe, unobserve

    failures: list[ToolError] = []

    def collect(record: CallRecord) -> None:
        if record.error is not None:
            failures.append(record.error)

    observe(collect)
    yield failures
    unobserve(collect)
