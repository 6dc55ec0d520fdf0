"""Every exporter in `arrived.SENDERS`: each failure arrives once, with what its spans hold."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.integrations.exporters.arrived import (
    CODES,
    CONVERSATION,
    SENDERS,
    Sender,
    arrived,
    by_case,
    collector,
    is_made,
)
from tests.running import RunningCollector

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def running() -> Iterator[RunningCollector]:
    """One collector for all senders; each has its project."""
    with collector() as found:
        yield found


@pytest.mark.parametrize("sender", SENDERS, ids=lambda each: each.name)
def test_each_failure_arrives_once(sender: Sender, running: RunningCollector) -> None:
    """Tool, code, call id, conversation and text arrive, but for what the spans do not hold."""
    if not is_made(sender):
        pytest.skip("not made: python -m tests.integrations.exporters.environments")
    found = by_case(arrived(sender, running))

    codes = {**CODES, **sender.codes}
    for name, rows in found.items():
        if name in sender.lacks:
            assert rows == []
            continue
        (row,) = rows
        assert row["code"] == (codes[name] or None), name
        assert row["success"] == (not codes[name])
        assert row["success"] or row["text_llm"]
        assert row["call_id"] == (None if "call_id" in sender.lacks else f"call-{name}")
        named = row["session_id"] == CONVERSATION
        assert named == ("conversation" not in sender.lacks)
