"""Fixtures for the tools layer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.sdk.tools.recording import recorded

from toolfault.tools import CallRecord, set_defaults


@pytest.fixture
def records() -> Iterator[list[CallRecord]]:
    """The records of all calls of the test."""
    with recorded() as found:
        yield found


@pytest.fixture(autouse=True)
def plain_defaults() -> Iterator[None]:
    """No test leaves process-wide defaults behind."""
    set_defaults(coerce=False, hints="off")
    yield
    set_defaults(coerce=False, hints="off")
