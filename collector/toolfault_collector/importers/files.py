"""Files to import: which there are, the JSON values in them, and what is wrong with them."""

from __future__ import annotations

import codecs
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Final, Literal, TypeAlias

from toolfault_collector.importers.json_values import (
    Broken,
    Piece,
    Read,
    array_elements,
    document,
    json_lines,
)

__all__ = ["Problem", "Severity", "Source", "find_files"]

Severity: TypeAlias = Literal["error", "note"]

SUFFIXES: Final = frozenset({".json", ".jsonl", ".ndjson"})
LINE_SUFFIXES: Final = frozenset({".jsonl", ".ndjson"})
CHUNK: Final = 1 << 20
# Problems of one file that are told one by one; one read as a wrong format has one per line.
MAX_PROBLEMS: Final = 100
# Values by which a format is recognised; an element of an array may be a whole conversation.
HEAD_LINES: Final = 50
HEAD_ELEMENTS: Final = 3
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something of a file that was not imported, or not as it stands.

    Args:
        position: Where in the file: ``line 12``, a JSON pointer such as ``/3/traj/7``, or empty for
            the whole file.
        message: What is wrong and what was done; never carries text of the file.
        severity: ``error`` where data is missing, ``note`` where nothing was lost.
    """

    path: Path
    position: str
    message: str
    severity: Severity = "error"


def find_files(paths: Sequence[Path]) -> tuple[list[tuple[Path, bool]], list[Problem]]:
    """Give the files to import, each with whether it was named, and the paths that are none.

    Directories give their ``.json``, ``.jsonl`` and ``.ndjson`` files in order of name, without
    following links to other directories. A file met twice is given once.
    """
    files: dict[str, tuple[Path, bool]] = {}
    problems: list[Problem] = []
    for path in paths:
        named = not path.is_dir()
        for found in [path] if named else _walk(path, problems):
            if found.is_file():
                files.setdefault(os.path.realpath(found), (found, named))
            elif named:
                missing = "not a regular file" if path.exists() else "no such file or directory"
                problems.append(Problem(path, "", missing))
    return list(files.values()), problems


def _walk(folder: Path, problems: list[Problem]) -> Iterator[Path]:
    def unreadable(error: OSError) -> None:
        path = Path(error.filename or folder)
        problems.append(Problem(path, "", f"cannot be read: {error.strerror}"))

    for root, folders, names in os.walk(folder, onerror=unreadable):
        folders.sort()
        paths = (Path(root, name) for name in sorted(names))
        yield from (path for path in paths if path.suffix.lower() in SUFFIXES)


@dataclass(eq=False)
class Source:
    """A file as the formats see it: its values, and where to report what is wrong with them.

    UTF-8 (with or without byte-order mark) and UTF-16/32 with one are understood.

    Args:
        now: Time of the import in microseconds since the epoch.
        named: Whether the caller named the file; one met in a directory may be something else.
        forced: Whether the caller named the format; then nothing else is read into the file.
        on_read: Called after every chunk, with the number of bytes read.
        replaced: Whether bytes that are not of the encoding were replaced by U+FFFD.
    """

    path: Path
    now: int
    named: bool = True
    forced: bool = False
    on_read: Callable[[int], None] = lambda done: None
    replaced: bool = False
    _problems: list[Problem] = field(default_factory=list)
    _told: int = 0
    _untold: Counter[Severity] = field(default_factory=Counter)

    def report(self, position: str, message: str, severity: Severity = "error") -> None:
        """Report what is wrong at a position of the file."""
        if self._told < MAX_PROBLEMS:
            self._told += 1
            self._problems.append(Problem(self.path, position, message, severity))
        else:
            self._untold[severity] += 1

    def mismatch(self, position: str, message: str) -> None:
        """Report a value that is not of the format.

        That is worth a note only where a format was named for all files of a directory.
        """
        self.report(position, message, "note" if self.forced and not self.named else "error")

    def problems(self, *, all_told: bool) -> Iterator[Problem]:
        """Yield what was reported since the last time, and at the end how much was only counted."""
        problems, self._problems = self._problems, []
        yield from problems
        if all_told and self._untold:
            severity: Severity = "error" if self._untold["error"] else "note"
            message = f"{self._untold.total()} more problems like these"
            yield Problem(self.path, "", message, severity)

    @cached_property
    def layout(self) -> Literal["empty", "lines", "array", "document"]:
        """How the values stand in the file; its name is a hint only.

        Raises:
            OSError: The file cannot be read.
            ValueError: The file is binary; the text says so.
        """
        start = next(self._chunks(), "").lstrip()
        if not start:
            return "document" if any(chunk.strip() for chunk in self._chunks()) else "empty"
        first, *rest = start.split("\n", 2)
        first = first.strip()
        opens_only = first in {"[", "{", "[{", "[["}
        if self.path.suffix.lower() in LINE_SUFFIXES and not opens_only:
            return "lines"
        goes_on = rest and rest[0].lstrip()[:1] in {"{", "["}
        if goes_on and isinstance(document(iter([first])), Piece):
            return "lines"
        return "array" if start[0] == "[" else "document"

    def values(self) -> Iterator[Piece]:
        """Yield the top-level values that can be read, and report the others."""
        for read in self._reads():
            if isinstance(read, Piece):
                yield read
            else:
                self.report(read.position, read.message)

    def head(self) -> list[object]:
        """Give the first readable values, by which a format is recognised."""
        count = HEAD_ELEMENTS if self.layout == "array" else HEAD_LINES
        readable = (read.value for read in self._reads() if isinstance(read, Piece))
        return list(islice(readable, count))

    def unrecognised(self) -> str:
        """Say why no format recognises the file."""
        first = next(self._reads(), None)
        if isinstance(first, Broken) and first.fatal:
            return f"{first.message}; skipped"
        return "not recognised as a transcript; skipped (name the format if it is one)"

    def _reads(self) -> Iterator[Read]:
        if self.layout == "lines":
            return json_lines(self._chunks())
        return array_elements(self._chunks()) if self.layout == "array" else iter([self._document])

    @cached_property
    def _document(self) -> Read:
        return document(self._chunks())

    def _chunks(self) -> Iterator[str]:
        with self.path.open("rb") as file:
            raw = file.read(CHUNK)
            encoding, skip = _encoding(raw)
            decoder = codecs.getincrementaldecoder(encoding)("strict")
            raw = raw[skip:]
            while raw:
                yield self._decoded(decoder, raw)
                self.on_read(file.tell())
                raw = file.read(CHUNK)
            yield self._decoded(decoder, b"", final=True)

    def _decoded(
        self, decoder: codecs.IncrementalDecoder, raw: bytes, *, final: bool = False
    ) -> str:
        state = decoder.getstate()
        try:
            return decoder.decode(raw, final)
        except UnicodeDecodeError:
            # Told once per file; the text around the place stays usable.
            self.replaced = True
            decoder.setstate(state)
            decoder.errors = "replace"
            text = decoder.decode(raw, final)
            decoder.errors = "strict"
            return text


def _encoding(start: bytes) -> tuple[str, int]:
    for bom, encoding in _BOMS:
        if start.startswith(bom):
            return encoding, len(bom)
    if b"\0" in start[:8192]:
        raise ValueError(
            "the file is binary, or UTF-16 without a byte-order mark; save it as UTF-8"
        )
    return "utf-8", 0
