"""Reading text, lines and arrays in pieces."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from toolfault_collector.clock import now_us
from toolfault_collector.importers import (
    AUTO,
    FORMATS,
    Conversation,
    EventBatch,
    Problem,
    parse_file,
)

MIB = 1024 * 1024
MEMBERS = ("type", "role", "messages", "content", "tool_calls", "message", "event_id", "events")


def _chat(text: str = "x", *, ascii_only: bool = True, indent: int | None = None) -> str:
    """A conversation of one failed call that said *text*."""
    call = {"id": "c", "function": {"name": "t", "arguments": "{}"}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": f"Error {text}"},
    ]
    return json.dumps({"messages": messages}, ensure_ascii=ascii_only, indent=indent)


def _parse(path: Path, content: str | bytes) -> tuple[list[Conversation], list[Problem]]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    items = list(parse_file(path, now=now_us()))
    return (
        [item for item in items if isinstance(item, Conversation)],
        [item for item in items if isinstance(item, Problem)],
    )


def _texts(found: list[Conversation]) -> list[str]:
    return [call.text.removeprefix("Error ") for each in found for call in each.calls]


def test_objects_behind_each_other_are_read_up_to_a_broken_one(tmp_path: Path) -> None:
    """As loggers print them, over many lines each; what follows the broken one is said to miss."""
    objects = [_chat(str(number), indent=4) for number in range(3)]
    found, problems = _parse(tmp_path / "a.json", "\n".join(objects))
    assert (_texts(found), problems) == (["0", "1", "2"], [])
    found, problems = _parse(tmp_path / "a.json", "\n".join(objects)[:-30])
    assert _texts(found) == ["0", "1"]
    assert [problem.position for problem in problems] == ["object 3"]


@pytest.mark.parametrize(
    ("layout", "ascii_only"),
    [
        ("array", False),
        ("lines", False),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in (("array", True), ("indented array", False), ("lines", True))
        ),
        pytest.param("indented array", True, marks=pytest.mark.long),
    ],
)
def test_a_file_of_many_pieces_is_read_as_written(
    tmp_path: Path, layout: str, ascii_only: bool
) -> None:
    """Wherever a file of three megabytes is cut for reading, no conversation is lost or changed.

    Neither brackets, quotes and line separators within strings (U+2028, form feed) nor characters
    of several bytes make a difference.
    """
    draw = random.Random(7)
    signs = 'aä€𝄞"\\]}[{,:\u2028\f\n'
    texts = ["".join(draw.choices(signs, k=draw.randrange(1, 3_000))) + "." for _ in range(800)]
    indent = 1 if layout == "indented array" else None
    chats = [_chat(text, ascii_only=ascii_only, indent=indent) for text in texts]
    document = "\n".join(chats) if layout == "lines" else f"[{', '.join(chats)}]"
    assert len(document.encode()) > 2 * MIB

    name = "a.jsonl" if layout == "lines" else "a.json"
    found, problems = _parse(tmp_path / name, document)

    assert problems == []
    assert _texts(found) == texts


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200))
@example(data=b"\xff\xfe[\0{\0")
@example(data=b"\xef\xbb\xbf[1, \xff")
def test_no_bytes_at_all_raise(tmp_path: Path, data: bytes) -> None:
    """Arbitrary bytes become conversations or problems, whatever format they are read as."""
    for name in ("a.json", "a.jsonl"):
        path = tmp_path / name
        for content in (data, b"[" + data, b'[{"a": ' + data):
            path.write_bytes(content)
            for format_name in (AUTO, *(each.name for each in FORMATS)):
                items = list(parse_file(path, format_name=format_name, now=now_us()))
                assert all(isinstance(each, Conversation | EventBatch | Problem) for each in items)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(MEMBERS) | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=20,
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(json_values, max_size=4))
def test_no_values_at_all_raise(tmp_path: Path, values: list[object]) -> None:
    """Every format recognises and reads any JSON values without an exception."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps(values))
    for each in FORMATS:
        for value in values:
            found = each.detect(value)
            assert found is None or all(isinstance(part, str) for part in found)
        list(parse_file(path, format_name=each.name, now=now_us()))


CHAT = _chat()


@pytest.mark.parametrize(
    ("document", "good", "positions"),
    [
        (f'[{CHAT}, {{"a": }}, {CHAT}]', 2, ["/1"]),
        (f'[{CHAT}, {{"b": [1,, 2]}}, {CHAT}]', 2, ["/1"]),
        (f'[{_chat("]},[")}, {{"x" 1}}, {_chat(chr(34))}]', 2, ["/1"]),
        (f"[{CHAT}, {CHAT}", 2, ["/2"]),
        (f'[{CHAT}, {{"a": "cut', 1, ["/1"]),
        (f"[{CHAT}, {CHAT}] [3]", 2, ["/2"]),
        (f"[{CHAT}, }}, {CHAT}]", 2, ["/1"]),
        (f"[{CHAT}, nul, {CHAT}]", 2, ["/1"]),
        (f"[{CHAT}, " + "[" * 100_000 + "]" * 100_000 + f", {CHAT}]", 2, ["/1"]),
        (f"[{CHAT}, " + "9" * 5_000 + f", {CHAT}]", 2, ["/1"]),
    ],
    ids=[
        "no value", "no element", "no colon", "cut behind", "cut within", "more behind",
        "stray bracket", "no word", "too deep", "too many digits",
    ],
)  # fmt: skip
def test_a_broken_element_is_stepped_over(
    tmp_path: Path, document: str, good: int, positions: list[str]
) -> None:
    """The elements around a broken one are read, and its position is said."""
    found, problems = _parse(tmp_path / "a.json", document)
    assert len(found) == good
    assert [problem.position for problem in problems] == positions


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_tells_the_encoding(tmp_path: Path, encoding: str) -> None:
    """UTF-8, UTF-16 and UTF-32 files with a mark are read."""
    document = f"[{_chat('ä€𝄞', ascii_only=False)}]"
    found, problems = _parse(tmp_path / "a.json", document.encode(encoding))
    assert (_texts(found), problems) == (["ä€𝄞"], [])


def test_bytes_of_another_encoding_are_replaced_and_said(tmp_path: Path) -> None:
    """One wrong byte costs one character, not the line."""
    lines = f"{_chat('café', ascii_only=False)}\n{_chat('fine')}\n"
    found, problems = _parse(tmp_path / "a.jsonl", lines.encode("latin-1"))
    assert _texts(found) == ["caf\ufffd", "fine"]
    assert [(each.severity, "encoding" in each.message) for each in problems] == [("note", True)]


def test_messages_repeat_nothing_of_the_file(tmp_path: Path) -> None:
    """A secret in a broken place is not in what is said about it."""
    for name, content in (
        ("a.jsonl", f'{CHAT}\n{{"password": hunter2}}\n{{"password": "hunter2\n'),
        ("a.json", f'[{CHAT}, {{"password": hunter2}}, {{"password": "hunter2'),
    ):
        _, problems = _parse(tmp_path / name, content)
        assert len(problems) == 2
        assert "hunter2" not in repr(problems)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "document", "good"),
    [("a.jsonl", "{0}\n{1}\n{0}\n", 2), ("a.json", "[{0}, {1}, {0}]", 1)],
)
def test_what_does_not_end_is_given_up(tmp_path: Path, name: str, document: str, good: int) -> None:
    """A line of 256 Mi characters is stepped over; an element of so many ends the reading."""
    endless = '"' + "x" * (257 * MIB) + '"'
    found, problems = _parse(tmp_path / name, document.format(CHAT, endless))
    assert len(found) == good
    assert ["longer than 256 Mi" in problem.message for problem in problems] == [True]
