"""Files to import: which there are, the JSON values in them, and what is wrong with them."""

from __future__ import annotations

import codecs
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final, Literal, TypeAlias

from toolfault_collector.importers.archives import (
    LINE_SUFFIXES,
    STDIN,
    File,
    UnreadableError,
    is_wanted,
    suffix_of,
)
from toolfault_collector.importers.json_values import (
    Broken,
    Piece,
    Read,
    array_elements,
    documents,
    is_closed,
    json_lines,
)

__all__ = ["Problem", "Severity", "Source", "find_files"]

Severity: TypeAlias = Literal["error", "note"]

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

    Directories give their JSON files and archives in order of name, without following links to
    other directories. A file met twice is given once. ``-`` is standard input.
    """
    files: dict[str, tuple[Path, bool]] = {}
    problems: list[Problem] = []
    for path in paths:
        named = not path.is_dir()
        for found in [path] if named else _walk(path, problems):
            if found.is_file() or found == STDIN:
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
        yield from (path for path in paths if is_wanted(path.name))


@dataclass(eq=False)
class Source:
    """A file as the formats see it: its values, and where to report what is wrong with them.

    UTF-8 (with or without byte-order mark) and UTF-16/32 with one are understood.

    Args:
        now: Time of the import in microseconds since the epoch.
        forced: Whether the caller named the format; then nothing else is read into the file.
        soft_off: Names of the soft rules of spans that the project has switched off.
        on_read: Called after every chunk, with the number of bytes read of the file on disk.
        replaced: Whether bytes that are not of the encoding were replaced by U+FFFD.
        damage: Why the file cannot be read to its end, once that is known.
    """

    file: File
    now: int
    forced: bool = False
    soft_off: frozenset[str] = frozenset()
    on_read: Callable[[int], None] = lambda done: None
    replaced: bool = False
    damage: str = ""
    _problems: list[Problem] = field(default_factory=list)
    _told: int = 0
    _untold: Counter[Severity] = field(default_factory=Counter)
    _chunk_number: int = 0

    @property
    def path(self) -> Path:
        """What the file is called in reports."""
        return self.file.path

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
        self.report(position, message, "note" if self.forced and not self.file.named else "error")

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
        if suffix_of(self.path.name) in LINE_SUFFIXES and not opens_only:
            return "lines"
        goes_on = rest and rest[0].lstrip()[:1] in {"{", "["}
        if goes_on and is_closed(first):
            return "lines"
        return "array" if start[0] == "[" else "document"

    def values(self) -> Iterator[Piece]:
        """Yield the top-level values that can be read, and report the others."""
        for read in self._reads():
            if isinstance(read, Piece):
                yield read
            else:
                self.report(read.position, read.message)

    def head(self) -> list[Piece]:
        """Give the first readable values, by which a format is recognised."""
        pieces: list[Piece] = []
        for read in self._reads():
            if isinstance(read, Piece):
                pieces.append(read)
            # Elements of an array may be whole conversations; enough is the first stretch of text.
            long = self.layout == "array" and self._chunk_number > 1
            if len(pieces) >= (HEAD_ELEMENTS if long else HEAD_LINES):
                break
        return pieces

    @property
    def start(self) -> str:
        """The beginning of the text."""
        return next(self._chunks(), "")[:1_000]

    def unreadable(self) -> str:
        """Say why nothing in the file can be read, or nothing where something can be."""
        first = next(self._reads(), None)
        return first.message if isinstance(first, Broken) and first.fatal else ""

    def _reads(self) -> Iterator[Read]:
        if self.layout == "lines":
            return json_lines(self._chunks())
        return array_elements(self._chunks()) if self.layout == "array" else iter(self._documents)

    @cached_property
    def _documents(self) -> list[Read]:
        return documents(self._chunks())

    def _chunks(self) -> Iterator[str]:
        raw = self._raw_chunks()
        first = next(raw, b"")
        encoding, skip = _encoding(first)
        decoder = codecs.getincrementaldecoder(encoding)("strict")
        yield self._decoded(decoder, first[skip:])
        for chunk in raw:
            yield self._decoded(decoder, chunk)
        yield self._decoded(decoder, b"", final=True)

    def _raw_chunks(self) -> Iterator[bytes]:
        """Yield the bytes, up to where a compressed file is damaged."""
        stream, more = self.file.open(), True
        self._chunk_number = 0
        # One piece at a time, where there are pieces: what comes before a damage is kept.
        read = getattr(stream, "read1", stream.read)
        while more:
            parts, size = list[bytes](), 0
            try:
                while more and size < CHUNK:
                    piece = read(CHUNK - size)
                    more = bool(piece)
                    size += len(piece)
                    parts.append(piece)
            except UnreadableError as damage:
                self.damage, more = str(damage), False
            self._chunk_number += 1
            yield b"".join(parts)
            self.on_read(self.file.done())

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
