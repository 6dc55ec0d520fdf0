"""Arguments are reduced to fingerprints and differences; values never leave."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from toolfault_collector.importers._arguments import changes, read_arguments

KEY = b"conversation"
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def _changes(before: Any, after: Any) -> list[dict[str, str]]:
    return [
        dict(each)
        for each in changes(read_arguments(before, key=KEY), read_arguments(after, key=KEY))
    ]


@given(value=st.dictionaries(st.text(), values))
@example(value={"": [False], "0": None})
@example(value={"a": {"b": 1}, "a.b": "1"})
def test_equal_arguments_have_one_fingerprint_however_written(value: dict[str, Any]) -> None:
    """The order of members, spaces and the JSON string around them make no difference."""
    turned = dict(reversed(value.items()))
    written = json.dumps(turned, indent=1)
    first = read_arguments(value, key=KEY)
    assert first == read_arguments(turned, key=KEY) == read_arguments(written, key=KEY)
    assert changes(first, first) == ()


@given(value=st.dictionaries(st.text(), values), other=st.dictionaries(st.text(), values))
def test_a_change_is_never_shown_between_equal_arguments(value: Any, other: Any) -> None:
    """A difference means different fingerprints (names with dots may hide one the other way)."""
    first, second = read_arguments(value, key=KEY), read_arguments(other, key=KEY)
    assert first.fingerprint != second.fingerprint or not changes(first, second)


def test_a_difference_says_where_and_of_what_type() -> None:
    """Paths and JSON types, no values."""
    before = {"a": 1, "b": ["secret-1", "y"], "c": {"d": True}, "e": 1}
    after = {"a": "1", "b": ["secret-2", "y", 3], "c": {}, "e": 1}
    found = _changes(before, after)
    assert found == [
        {"path": "a", "change": "changed", "from_type": "integer", "to_type": "string"},
        {"path": "b.0", "change": "changed", "from_type": "string", "to_type": "string"},
        {"path": "b.2", "change": "added", "to_type": "integer"},
        {"path": "c", "change": "added", "to_type": "object"},
        {"path": "c.d", "change": "removed", "from_type": "boolean"},
    ]
    assert "secret" not in repr(found)


def test_arguments_that_are_no_json_are_compared_as_a_whole() -> None:
    """A string that cannot be parsed is one value."""
    assert _changes("{broken", {"a": 1}) == [
        {"path": "", "change": "removed", "from_type": "string"},
        {"path": "a", "change": "added", "to_type": "integer"},
    ]


def test_the_fingerprint_is_keyed_by_the_conversation() -> None:
    """The hash of a short value cannot be looked up across conversations."""
    first = read_arguments({"pin": 1234}, key=b"one")
    second = read_arguments({"pin": 1234}, key=b"two")
    assert first.fingerprint != second.fingerprint


def test_size_and_depth_are_bounded() -> None:
    """Huge arguments cost a bounded table; a difference lists a bounded number of places."""
    huge = {f"key{n}": n for n in range(10_000)}
    assert len(read_arguments(huge, key=KEY).leaves) == 200
    assert len(_changes(huge, {})) == 50
    deep: Any = 1
    for _ in range(3_000):
        deep = [deep]
    assert read_arguments(deep, key=KEY).fingerprint
