"""Files that are broken, odd or something else: said with their position, the rest imported."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from toolfault_collector.clock import now_us
from toolfault_collector.importers import AUTO, FORMATS, Conversation, Problem, parse_file

CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "function": {"name": "t", "arguments": "{}"}}],
}
FAILED = {"role": "tool", "tool_call_id": "c1", "content": "Error: not found"}
CHAT = [CALL, FAILED]
SESSION = [
    {
        "type": "assistant",
        "sessionId": "s",
        "timestamp": "2025-03-01T09:00:00Z",
        "message": {
            "id": "m1",
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "toolu_1", "name": "t", "input": {}}],
        },
    },
    {
        "type": "user",
        "sessionId": "s",
        "timestamp": "2025-03-01T09:00:01Z",
        "message": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True}],
        },
    },
]


def _parse(path: Path, **options: Any) -> tuple[list[Conversation], list[Problem]]:
    items = list(parse_file(path, now=now_us(), **options))
    return (
        [item for item in items if isinstance(item, Conversation)],
        [item for item in items if isinstance(item, Problem)],
    )


def _write(path: Path, content: object) -> Path:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("a.json", b"", "empty"),
        ("a.json", b" \n\t\n", "empty"),
        ("a.jsonl", b"", "empty"),
        ("a.json", b"\x00\x01\x02", "binary"),
        ("a.json", "[1]".encode("utf-16-le"), "binary"),
        ("a.json", b"not json", "not valid JSON"),
        ("a.json", b'{"messages": [', "not valid JSON"),
        ("a.json", b"null", "not recognised"),
        ("a.json", b"12", "not recognised"),
        ("a.json", b'"text"', "not recognised"),
        ("a.json", b"[]", "not recognised"),
        ("a.json", b"{}", "not recognised"),
        ("a.json", b"[1, 2, 3]", "not recognised"),
        ("a.json", b'{"type": ["string", "null"]}', "not recognised"),
        ("a.json", b'[{"spans": [{"name": "x"}]}]', "not recognised"),
        ("a.jsonl", b'{"level": "info"}\n{"level": "error"}', "not recognised"),
        ("a.json", b"[" * 100_000, "nested too deeply"),
        ("a.json", b'{"a":' * 100_000, "nested too deeply"),
        ("a.json", b'{"a": 1' + b"0" * 5_000 + b"}", "too many digits"),
    ],
)
def test_what_is_no_transcript_is_said(
    tmp_path: Path, name: str, content: bytes, word: str
) -> None:
    """A file that was named is an error, one met in a directory a note; neither raises."""
    path = _write(tmp_path / name, content)
    for named, severity in ((True, "error"), (False, "note")):
        conversations, problems = _parse(path, named=named)
        assert conversations == []
        assert [problem.severity for problem in problems] == [severity]
        assert word in problems[0].message


def test_a_file_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    """A file that is gone by the time it is read is a problem of its own."""
    _, problems = _parse(tmp_path / "gone.json")
    assert [problem.severity for problem in problems] == ["error"]
    assert "cannot be read" in problems[0].message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_said(tmp_path: Path) -> None:
    """A file that may not be read is a problem, not an exception."""
    path = _write(tmp_path / "a.json", CHAT)
    path.chmod(0)
    _, problems = _parse(path)
    assert "Permission denied" in problems[0].message


@pytest.mark.parametrize(
    ("document", "positions"),
    [
        ([{"traj": CHAT}, {"traj": None}, {"traj": CHAT}], ["/1"]),
        ([{"traj": CHAT}, None, {"traj": CHAT}], ["/1"]),
        ([{"traj": CHAT}, 7, {"traj": CHAT}], ["/1"]),
        ([{"traj": CHAT}, {"traj": "text"}, {"traj": CHAT}], ["/1"]),
        ([{"traj": [CALL, None, FAILED]}, {"traj": [CALL, "x", 3, FAILED]}],
         ["/0/traj/1", "/1/traj/1", "/1/traj/2"]),
    ],
)  # fmt: skip
def test_wrong_shapes_inside_a_file_cost_only_themselves(
    tmp_path: Path, document: list[object], positions: list[str]
) -> None:
    """The other conversations are read, and the place of the wrong one is said."""
    conversations, problems = _parse(_write(tmp_path / "a.json", document))
    assert [found.failures for found in conversations] == [1, 1]
    assert [problem.position for problem in problems] == positions


def test_a_broken_line_costs_only_itself(tmp_path: Path) -> None:
    """Lines that are cut, no objects, or not JSON are said with their number."""
    good = [json.dumps(line) for line in SESSION]
    lines = [good[0], good[0][:40], "null", "[1]", "text", "", good[1], good[1][:-1]]
    path = _write(tmp_path / "a.jsonl", "\n".join(lines).encode())
    conversations, problems = _parse(path)
    assert [(len(found.calls), found.failures) for found in conversations] == [(1, 1)]
    wanted = ["line 2", "line 3", "line 4", "line 5", "line 8"]
    assert [problem.position for problem in problems] == wanted


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": None, "tool_calls": None},
        {"role": "assistant", "content": 5, "tool_calls": "x"},
        {"role": "assistant", "tool_calls": [None, 3, "x", []]},
        {"role": "assistant", "tool_calls": {"a": 1}, "function_call": None},
        {"role": "assistant", "function_call": "x"},
        {"role": "tool"},
        {"role": "tool", "content": {"a": [{"b": None}]}, "tool_call_id": 5},
        {"role": "tool", "tool_messages": [None, 3]},
        {"role": "user", "content": [None, 3, {"type": "tool_result"}, {"type": 3}]},
        {"role": "assistant", "content": [{"type": "tool_use"}]},
        {"role": "tool", "tool_call_id": "c1", "content": "x", "timestamp": 10**400},
        {"role": 5},
        {"role": ""},
        {},
    ],
)
def test_odd_messages_do_no_harm(tmp_path: Path, message: dict[str, object]) -> None:
    """A message of another shape neither raises nor hides the failure behind it."""
    conversations, _ = _parse(_write(tmp_path / "a.json", [[*CHAT, message, *CHAT]]))
    assert sum(found.failures for found in conversations) == 2


@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool_use"},
        {"type": "tool_use", "id": 5, "name": None, "input": "text"},
        {"type": "tool_result"},
        {"type": "tool_result", "tool_use_id": None, "is_error": "true", "content": 12.5},
        {"type": "tool_result", "tool_use_id": "toolu_9", "content": [None, 3, {"text": None}]},
        None,
        "text",
        3,
    ],
)
def test_odd_blocks_do_no_harm(tmp_path: Path, block: object) -> None:
    """A block of another shape neither raises nor hides the failure behind it."""
    odd = [
        {**line, "message": {**line["message"], "content": [block]}}  # type: ignore[dict-item]
        for line in SESSION
    ]
    lines = [*odd, *SESSION, {"type": "user", "message": None}, {"type": 3, "sessionId": "s"}]
    path = _write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, lines)).encode())
    conversations, _ = _parse(path)
    assert [found.failures for found in conversations] == [1]


def test_deep_and_hostile_values_are_survived(tmp_path: Path) -> None:
    """Nesting near Python's limit, NaN, lone surrogates and NUL reach neither hash nor store."""
    deep: object = "x"
    for _ in range(400):
        deep = {"content": [deep]}
    call = {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "function": {"name": "t\ud800\x00", "arguments": deep}}],
    }
    answer = {"role": "tool", "tool_call_id": "c1", "content": "Error \ud800\x00", "extra": deep}
    more = {"role": "user", "content": [deep, float("nan"), float("inf")]}
    conversations, problems = _parse(_write(tmp_path / "a.json", [[call, answer, more]]))
    assert problems == []
    (found,) = conversations[0].calls
    assert (found.tool, found.text) == ("t\ufffd\ufffd", "Error \ufffd\ufffd")


def test_the_last_of_repeated_keys_wins(tmp_path: Path) -> None:
    """An object that names a member twice is read as JSON readers do."""
    path = _write(
        tmp_path / "a.json", b'[{"traj": [], "traj": ' + json.dumps(CHAT).encode() + b"}]"
    )
    conversations, _ = _parse(path)
    assert [found.failures for found in conversations] == [1]


def test_problems_repeat_nothing_of_the_file(tmp_path: Path) -> None:
    """Neither values nor long names of a file are in what is said about it."""
    secret = "sk-live-0123456789"
    documents: list[object] = [
        [{"traj": CHAT}, {"traj": secret}],
        [{"traj": CHAT}, {secret * 5: {"traj": [secret, CALL]}}],
        [{"traj": [secret, *CHAT]}],
    ]
    for document in documents:
        _, problems = _parse(_write(tmp_path / "a.json", document))
        assert problems
        assert secret * 3 not in repr(problems)
        assert all(secret not in problem.message for problem in problems)


_DEEP = {
    "messages": ('[{"role": "assistant", "messages": ', "}]", 240),
    "contents": ('{"role": "user", "content": ', "}", 900),
    "arguments": ('{"role": "assistant", "tool_calls": [{"name": "t", "arguments": ', "}]}", 240),
    "wrappers": ('{"data": ', "}", 900),
    "spans": ('{"spans": [', "]}", 450),
    "attributes": ('{"trace_id": "a1", "span_id": "b2", "attributes": ', "}", 900),
    "parts": ('{"role": "model", "parts": [{"functionResponse": {"response": ', "}}]}", 220),
    "events": ('{"event_id": "a", "type": "tool_call", "error": ', "}", 900),
}


@pytest.mark.parametrize("name", _DEEP)
def test_no_depth_is_an_exception(tmp_path: Path, name: str) -> None:
    """What JSON can nest may stand wherever a format looks, whatever it is read as."""
    before, behind, depth = _DEEP[name]
    path = tmp_path / "a.json"
    path.write_text(before * depth + "1" + behind * depth)
    for format_name in (AUTO, *(each.name for each in FORMATS)):
        list(parse_file(path, format_name=format_name, now=now_us()))
