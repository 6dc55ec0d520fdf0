"""A conversation as events: deterministic ids, no values, renderings per audience."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from tests.collector.importers.counting import parsed
from tests.collector.importers.sessions import answer, call, write

from toolfault_collector.clock import format_time, now_us, parse_time
from toolfault_collector.importers._events import conversation_events, event_id, session_id

NOW = parse_time("2025-06-01T00:00:00Z")


def _events(path: Path, *, now: int = NOW) -> list[dict[str, Any]]:
    return [dict(event) for found in parsed(path) for event in conversation_events(found, now=now)]


def test_ids_are_uuids_of_version_8_and_depend_on_nothing_but_identity() -> None:
    """RFC 9562: version and variant bits are set, the rest is a hash."""
    made = uuid.UUID(event_id(b"key", "call", "1"))
    assert (made.version, made.variant) == (8, uuid.RFC_4122)
    assert str(made) == event_id(b"key", "call", "1")
    others = {event_id(b"key", "call", "2"), event_id(b"kex", "call", "1"), event_id(b"key", "1")}
    assert len(others | {str(made)}) == 4


def test_events_are_the_same_on_every_import(tmp_path: Path) -> None:
    """Only the stand-in for missing times depends on when the import runs."""
    timed = [call(1), answer(1, failed=True), call(2), answer(2)]
    first = write(tmp_path / "a.jsonl", timed)
    second = write(tmp_path / "elsewhere" / "b.jsonl", timed)
    assert _events(first) == _events(second, now=now_us())
    untimed = [{key: line[key] for key in line if key != "timestamp"} for line in timed]
    path = write(tmp_path / "c.jsonl", untimed)
    assert [each["event_id"] for each in _events(path)] == [
        each["event_id"] for each in _events(path, now=now_us())
    ]


def test_a_timed_call_has_its_end_and_duration(tmp_path: Path) -> None:
    """occurred_at is the end; start = end - duration_ms."""
    (event,) = _events(write(tmp_path / "a.jsonl", [call(1), answer(1)]))
    assert event["occurred_at"] == "2025-03-01T09:00:01.500000Z"
    assert (event["duration_ms"], event["time_source"]) == (500.0, "import")


def test_an_untimed_call_says_so(tmp_path: Path) -> None:
    """The stand-in is the time of the import, and the event marks it as none."""
    path = tmp_path / "a.json"
    chat = [
        {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "t"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "fine"},
    ]
    path.write_text(json.dumps(chat))
    (event,) = _events(path)
    assert (event["time_source"], event["occurred_at"]) == ("none", format_time(NOW))
    assert "duration_ms" not in event


def test_an_unanswered_call_is_a_counter(tmp_path: Path) -> None:
    """It adds to the calls of its tool and is no success."""
    (event,) = _events(write(tmp_path / "a.jsonl", [call(1, "Bash")]))
    assert (event["type"], event["tool"], event["calls"]) == ("tool_call_counts", "Bash", 1)


def test_a_failure_has_a_text_for_each_audience(tmp_path: Path) -> None:
    """The user sees a sentence made from the code, the model's text is what it saw."""
    text = "<tool_use_error>InputValidationError: Edit failed due to the following issue:\n"
    text += "The required parameter `path` is missing</tool_use_error>"
    lines = [call(1, "Edit"), answer(1, text, failed=True)]
    (event,) = _events(write(tmp_path / "a.jsonl", lines))
    error = event["error"]
    assert (error["code"], error["category"], error["audience"], error["field"]) == (
        "missing_field",
        "parameter",
        "llm",
        "path",
    )
    renderings = error["renderings"]
    assert renderings["user"] == "Edit: Missing field (path)"
    assert renderings["llm"].startswith("InputValidationError: Edit failed")
    assert "\n" not in renderings["system"]
    assert "code=missing_field" in renderings["system"]


def test_the_user_never_sees_the_original_text(tmp_path: Path) -> None:
    """Whatever the code, values of the original sentence are not in the user's rendering."""
    texts = [
        "account 4711 not found",
        "4711 must be an integer",
        "Traceback (most recent call last):\n4711",
        "4711",
        "The user doesn't want to proceed with this tool use. 4711",
        "Claude requested permissions to use 4711, but you haven't granted it yet.",
        "Unknown tool: 4711",
    ]
    lines = []
    for number, text in enumerate(texts, 1):
        lines += [call(number), answer(number, text, failed=True)]
    for event in _events(write(tmp_path / "a.jsonl", lines)):
        assert "4711" not in event["error"]["renderings"]["user"]
        assert "4711" in event["error"]["renderings"]["llm"]


def test_secrets_and_values_are_not_kept(tmp_path: Path) -> None:
    """Arguments are hashed; what looks like a secret in a text is redacted."""
    key = "sk-0123456789abcdefghij"
    lines = [
        call(1, "Bash", input={"command": f"curl -H {key}", "password": "hunter2"}),
        answer(1, f"401 Bearer {key} password=hunter2", failed=True),
        call(2, "Bash", input={"command": "ls", "password": "hunter3"}),
        answer(2, f"1 validation error for X\nkey\n  bad {key} [type=value_error]", failed=True),
    ]
    events = _events(write(tmp_path / "a.jsonl", lines))
    stored = json.dumps(events)
    assert key not in stored
    assert "hunter" not in stored
    assert [each["path"] for each in events[1]["args_diff"]] == ["command", "password"]


def test_differences_are_to_the_previous_attempt_of_the_chain(tmp_path: Path) -> None:
    """Not across a success, not across turns that could not see the error, not across tools."""
    lines = [
        call(1, input={"n": 1}, message_id="m"),
        call(2, input={"n": 2}, message_id="m"),
        answer(1, failed=True),
        answer(2),
        call(3, "Other", input={"n": 3}),
        answer(3),
        call(4, input={"n": "4"}),
        answer(4),
        call(5, input={"n": 5}),
        answer(5),
    ]
    events = _events(write(tmp_path / "a.jsonl", lines))
    assert [event.get("args_diff") for event in events] == [
        None,
        None,
        None,
        [{"path": "n", "change": "changed", "from_type": "integer", "to_type": "string"}],
        None,
    ]


def test_the_session_id_names_the_session_and_is_unique(tmp_path: Path) -> None:
    """What a person recognises, and enough of the key."""
    (found,) = parsed(write(tmp_path / "a.jsonl", [call(1), answer(1)]))
    label, _, suffix = session_id(found).rpartition(":")
    assert label == "11111111-2222-3333-4444-555555555555"
    assert suffix == found.key.hex()[:16]
