"""Arguments are reduced to fingerprints and differences; values never leave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.collector.importers.counting import parsed

from toolfault_collector.importers import Call

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def _attempts(folder: Path, *arguments: Any) -> tuple[Call, ...]:
    """Calls of one tool in one conversation: each failed and was tried again."""
    messages: list[dict[str, Any]] = []
    for number, each in enumerate(arguments):
        function = {"name": "t", "arguments": each}
        messages += [
            {"role": "assistant", "tool_calls": [{"id": f"c{number}", "function": function}]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": "Error"},
        ]
    path = folder / "a.json"
    path.write_text(json.dumps([{"traj": messages}]))
    (found,) = parsed(path)
    return found.calls


def _changes(folder: Path, before: Any, after: Any) -> list[dict[str, str]]:
    difference = _attempts(folder, before, after)[1].args_diff
    return [dict(each) for each in difference or ()]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.dictionaries(st.text(), values))
@example(value={"": [False], "0": None})
@example(value={"a": {"b": 1}, "a.b": "1"})
def test_equal_arguments_have_one_fingerprint_however_written(
    tmp_path: Path, value: dict[str, Any]
) -> None:
    """The order of members, spaces and the JSON string around them make no difference."""
    turned = dict(reversed(value.items()))
    calls = _attempts(tmp_path, value, turned, json.dumps(turned, indent=1))
    assert len({call.args_fingerprint for call in calls}) == 1
    assert [call.args_diff or () for call in calls] == [(), (), ()]


def test_a_difference_says_where_and_of_what_type(tmp_path: Path) -> None:
    """Paths and JSON types, no values."""
    before = {"a": 1, "b": ["secret-1", "y"], "c": {"d": True}, "e": 1}
    after = {"a": "1", "b": ["secret-2", "y", 3], "c": {}, "e": 1}
    found = _changes(tmp_path, before, after)
    assert found == [
        {"path": "a", "change": "changed", "from_type": "integer", "to_type": "string"},
        {"path": "b.0", "change": "changed", "from_type": "string", "to_type": "string"},
        {"path": "b.2", "change": "added", "to_type": "integer"},
        {"path": "c", "change": "added", "to_type": "object"},
        {"path": "c.d", "change": "removed", "from_type": "boolean"},
    ]


def test_arguments_that_are_no_json_are_compared_as_a_whole(tmp_path: Path) -> None:
    """A string that cannot be parsed is one value."""
    assert _changes(tmp_path, "{broken", {"a": 1}) == [
        {"path": "", "change": "removed", "from_type": "string"},
        {"path": "a", "change": "added", "to_type": "integer"},
    ]


def test_the_fingerprint_is_keyed_by_the_conversation(tmp_path: Path) -> None:
    """The hash of a short value cannot be looked up across conversations."""
    (one,) = _attempts(tmp_path, {"pin": 1234})
    first, _ = _attempts(tmp_path, {"pin": 1234}, {})
    assert one.args_fingerprint != first.args_fingerprint


def test_calls_without_arguments_are_no_equals(tmp_path: Path) -> None:
    """What was not recorded has no fingerprint and is compared with nothing; a written null is."""
    calls = _attempts(tmp_path, None, None, {"a": 1}, "null")
    assert [call.args_fingerprint is None for call in calls] == [True, True, False, False]
    assert [call.args_diff is None for call in calls] == [True, True, True, False]


def test_size_and_depth_are_bounded(tmp_path: Path) -> None:
    """A difference lists a bounded number of places; arguments may be as deep as JSON is read."""
    assert len(_changes(tmp_path, {f"key{n}": n for n in range(10_000)}, {})) == 50
    deep: Any = 1
    for _ in range(400):
        deep = [deep]
    assert all(call.args_fingerprint for call in _attempts(tmp_path, deep, [deep]))
