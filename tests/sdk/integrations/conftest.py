"""Fixtures for the integrations."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.sdk.tools.recording import recorded

from toolfault.testing import CapturedEvents, capture_events
from toolfault.tools import CallRecord


@pytest.fixture
def records() -> Iterator[list[CallRecord]]:
    """The records of all calls of the test."""
    with recorded() as found:
        yield found


@pytest.fixture
def events() -> Iterator[CapturedEvents]:
    """What a collector would get during the test."""
    with capture_events() as captured:
        yield captured
