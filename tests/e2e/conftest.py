"""What the end-to-end tests share."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def quiet_tools() -> Iterator[None]:
    """Keep thousands of expected stack traces out of the reports; restored for other modules."""
    logger = logging.getLogger("toolfault")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)
