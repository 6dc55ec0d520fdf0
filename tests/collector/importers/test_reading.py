"""Reading text, lines and arrays in pieces."""

from __future__ import annotations

import codecs
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolfault_collector.importers import _array, _reading
from toolfault_collector.importers._array import array_elements
from toolfault_collector.importers._reading import Broken, Piece, Text, json_lines

BOMS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
FUZZ = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12
)


def _file(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return path


def _values(reads: Any) -> list[object]:
    return [read.value for read in reads if isinstance(read, Piece)]


@pytest.mark.slow
@FUZZ
@given(
    elements=st.lists(values, max_size=8),
    indent=st.sampled_from((None, 1)),
    ascii_only=st.booleans(),
    chunk=st.integers(1, 40),
)
def test_an_array_is_read_alike_in_any_pieces(
    tmp_path: Path, elements: list[object], indent: int | None, ascii_only: bool, chunk: int
) -> None:
    """However the chunks fall, the elements are those that json.loads gives."""
    document = json.dumps(elements, indent=indent, ensure_ascii=ascii_only)
    path = _file(tmp_path / "a.json", document.encode("utf-8", "replace"))
    reads = list(array_elements(Text(path, chunk=chunk)))
    assert _values(reads) == json.loads(path.read_text(encoding="utf-8"))
    assert [read.position for read in reads] == [f"/{index}" for index in range(len(reads))]


@pytest.mark.slow
@FUZZ
@given(lines=st.lists(st.dictionaries(st.text(), scalars)), chunk=st.integers(1, 40))
def test_lines_are_read_alike_in_any_pieces(
    tmp_path: Path, lines: list[dict[str, object]], chunk: int
) -> None:
    """Line separators within strings (U+2028, form feed) do not end a line."""
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    path = _file(tmp_path / "a.jsonl", text.encode("utf-8", "replace"))
    reads = list(json_lines(Text(path, chunk=chunk)))
    assert not any(isinstance(read, Broken) for read in reads)
    assert len(_values(reads)) == len(lines)


@FUZZ
@given(data=st.binary(max_size=200), chunk=st.integers(1, 60))
def test_no_bytes_at_all_raise_more_than_the_documented_error(
    tmp_path: Path, data: bytes, chunk: int
) -> None:
    """Arbitrary bytes become values, broken places, or the one ValueError for binary files."""
    for content in (data, b"[" + data, b'[{"a": ' + data):
        path = _file(tmp_path / "a", content)
        for read in (array_elements, json_lines):
            text = Text(path, chunk=chunk)
            if b"\0" in content[: max(chunk, 4)] and not content.startswith(BOMS):
                with pytest.raises(ValueError, match="binary"):
                    list(read(text))
            else:
                assert all(isinstance(each, Piece | Broken) for each in read(text))


@pytest.mark.parametrize(
    ("document", "good", "positions"),
    [
        ('[1, {"a": }, 3]', [1, 3], ["/1"]),
        ('[{"a": 1}, {"b": [1,, 2]}, {"c": 3}]', [{"a": 1}, {"c": 3}], ["/1"]),
        ('[{"a": "]},["}, {"x" 1}, {"c": "\\""}]', [{"a": "]},["}, {"c": '"'}], ["/1"]),
        ("[1, 2", [1, 2], ["/2"]),
        ('[1, {"a": "cut', [1], ["/1"]),
        ("[1, 2] [3]", [1, 2], ["/2"]),
        ("[1, }, 2]", [1, 2], ["/1"]),
        ("[1, nul, 2]", [1, 2], ["/1"]),
        ("[1, " + "[" * 100_000 + "]" * 100_000 + ", 2]", [1, 2], ["/1"]),
        ("[1, " + "9" * 5_000 + ", 2]", [1, 2], ["/1"]),
    ],
)
def test_a_broken_element_is_stepped_over(
    tmp_path: Path, document: str, good: list[object], positions: list[str]
) -> None:
    """The elements around a broken one are read, and its position is said."""
    path = _file(tmp_path / "a.json", document)
    for chunk in (7, 1 << 20):
        reads = list(array_elements(Text(path, chunk=chunk)))
        assert _values(reads) == good
        assert [read.position for read in reads if isinstance(read, Broken)] == positions


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_tells_the_encoding(tmp_path: Path, encoding: str) -> None:
    """UTF-8, UTF-16 and UTF-32 files with a mark are read."""
    path = _file(tmp_path / "a.json", '[{"a": "ä€𝄞"}]'.encode(encoding))
    assert _values(array_elements(Text(path, chunk=5))) == [{"a": "ä€𝄞"}]


def test_bytes_of_another_encoding_are_replaced_and_said(tmp_path: Path) -> None:
    """One wrong byte costs one character, not the line."""
    path = _file(tmp_path / "a.jsonl", b'{"a": "caf\xe9"}\n{"a": 2}\n')
    text = Text(path, chunk=3)
    assert _values(json_lines(text)) == [{"a": "caf\ufffd"}, {"a": 2}]
    assert text.replaced


def test_a_line_beyond_the_limit_is_skipped_without_being_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines around an over-long one are read."""
    monkeypatch.setattr(_reading, "MAX_VALUE", 100)
    path = _file(tmp_path / "a.jsonl", '{"a": 1}\n"' + "x" * 500 + '"\n{"a": 2}\n')
    reads = list(json_lines(Text(path, chunk=64)))
    assert _values(reads) == [{"a": 1}, {"a": 2}]
    assert [read.position for read in reads if isinstance(read, Broken)] == ["line 2"]


def test_an_element_beyond_the_limit_ends_the_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An element that does not end is given up before it fills the memory."""
    monkeypatch.setattr(_array, "MAX_VALUE", 100)
    path = _file(tmp_path / "a.json", '[1, "' + "x" * 5_000 + '", 2]')
    reads = list(array_elements(Text(path, chunk=64)))
    assert _values(reads) == [1]
    assert isinstance(reads[-1], Broken)
    assert reads[-1].fatal


def test_messages_repeat_nothing_of_the_file(tmp_path: Path) -> None:
    """A secret in a broken place is not in what is said about it."""
    path = _file(tmp_path / "a.jsonl", '{"password": hunter2}\n{"password": "hunter2\n')
    reads = [*json_lines(Text(path)), *array_elements(Text(path))]
    assert all(isinstance(read, Broken) for read in reads)
    assert "hunter2" not in repr(reads)
