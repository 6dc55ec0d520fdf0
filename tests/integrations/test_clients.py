"""The clients of OpenAI and Anthropic themselves, wrapped, without a network."""

from __future__ import annotations

import pytest
from tests.integrations.answers import answer
from tests.integrations.environments import NAMES, driver_of


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in NAMES if driver_of(name) == "clients"])
def test_a_wrapped_client_reports_and_changes_nothing(name: str) -> None:
    """Each kind of request has the same body and result, and leaves one event with all ids."""
    asked = answer(name, "clients")["requests"]
    assert len(asked) == 18
    for each in asked:
        assert each["same"], each["request"]
        assert "done" in each["answered"] or "Response(" in each["answered"], each
        assert each["is_one"]
        (event,) = each["events"]
        told = (event["call_id"], event["session_id"], event["model"], event["tool"])
        assert told == (each["request"], "chat-1", "m-1", "book")
        assert "no such day" in event["error"]["renderings"]["llm"]
