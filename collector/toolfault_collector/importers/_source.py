"""One file to import: its text, its layout and a sample of its values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final, Literal, TypeAlias

from toolfault_collector.importers._array import array_elements
from toolfault_collector.importers._reading import Broken, Piece, Read, Text, decode, json_lines
from toolfault_collector.importers._transcript import Problem

__all__ = ["Layout", "Source"]

Layout: TypeAlias = Literal["empty", "lines", "array", "document"]

LINE_SUFFIXES: Final = frozenset({".jsonl", ".ndjson"})
# A document that is one object cannot be read in pieces.
MAX_DOCUMENT: Final = 512 << 20
SAMPLE_LINES: Final = 50
SAMPLE_ELEMENTS: Final = 3


@dataclass(slots=True)
class Source:
    """A file as the formats see it.

    Args:
        path: The file.
        now: Time of the import in microseconds since the epoch.
        doubtful: Whether it may be something else than the format that it is read as: it was met
            in a directory, and the format was given for all of it.
    """

    path: Path
    now: int
    doubtful: bool = False
    text: Text = field(init=False)
    layout: Layout = field(init=False)
    _document: Read | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.text = Text(self.path)
        self.layout = self._find_layout()

    def problem(self, broken: Broken) -> Problem:
        """Turn a place that could not be read into a problem of this file."""
        return Problem(self.path, broken.position, broken.message)

    def mismatch(self, position: str, message: str) -> Problem:
        """Report a value that is not of the format; of a doubtful file it is worth a note only."""
        return Problem(self.path, position, message, "note" if self.doubtful else "error")

    def note(self, position: str, message: str) -> Problem:
        """Make a note: something worth saying with nothing lost."""
        return Problem(self.path, position, message, "note")

    def values(self) -> Iterator[Read]:
        """Yield the top-level values: lines, elements of the array, or the document itself."""
        if self.layout == "lines":
            yield from json_lines(self.text)
        elif self.layout == "array":
            yield from array_elements(self.text)
        elif self.layout == "document":
            if self._document is None:
                self._document = self._read_document()
            yield self._document

    def sample(self) -> list[object]:
        """Give the first readable values, by which a format is recognised."""
        count = SAMPLE_ELEMENTS if self.layout == "array" else SAMPLE_LINES
        readable = (read.value for read in self.values() if isinstance(read, Piece))
        return list(islice(readable, count))

    def _read_document(self) -> Read:
        parts, size = list[str](), 0
        for chunk in self.text.chunks():
            parts.append(chunk)
            size += len(chunk)
            if size > MAX_DOCUMENT:
                message = f"one JSON object of more than {MAX_DOCUMENT >> 20} Mi characters"
                return Broken("", f"{message}; split it, or save it as an array or as lines", True)
        try:
            return Piece("", 0, decode("".join(parts)))
        except ValueError as error:
            return Broken("", str(error), fatal=True)

    def _find_layout(self) -> Layout:
        head = next(self.text.chunks(), "").lstrip()
        if not head:
            return "empty" if not any(c.strip() for c in self.text.chunks()) else "document"
        first, *rest = head.split("\n", 2)
        first = first.strip()
        opens_only = first in {"[", "{", "[{", "[["}
        if self.path.suffix.lower() in LINE_SUFFIXES and not opens_only:
            return "lines"
        if rest and rest[0].lstrip()[:1] in {"{", "["} and _is_json(first):
            return "lines"
        return "array" if head[0] == "[" else "document"


def _is_json(line: str) -> bool:
    try:
        decode(line)
    except ValueError:
        return False
    return True
