"""Text of a file in pieces: encodings, lines and JSON values, with memory bounded by one value.

Nothing here raises for what a file contains; what cannot be read becomes a ``Broken`` with its
position, and reading goes on behind it. Messages never repeat text of the file.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

__all__ = ["MAX_VALUE", "Broken", "Piece", "Text", "decode", "json_lines"]

CHUNK: Final = 1 << 20
MAX_VALUE: Final = 256 << 20  # characters of one line or one array element
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class Broken:
    """A place that could not be read, and why; *fatal* when nothing behind it can be."""

    position: str
    message: str
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """One JSON value of a file with its position (``line 3`` or ``/3``) and index."""

    position: str
    index: int
    value: object


Read: TypeAlias = Piece | Broken


class Text:
    """Decoded text of one file, chunk by chunk.

    UTF-8 (with or without byte-order mark) and UTF-16/32 with one are understood. Bytes that are
    not of the encoding are replaced by U+FFFD and counted.

    Args:
        path: The file; opened by :meth:`chunks`, each time from the beginning.
        chunk: Bytes read at a time.
    """

    def __init__(self, path: Path, *, chunk: int = CHUNK) -> None:
        self.path = path
        self._chunk = chunk
        self.size = path.stat().st_size
        self.bytes_read = 0
        self.replaced = False

    def chunks(self) -> Iterator[str]:
        """Yield the text.

        Raises:
            OSError: The file cannot be read.
            ValueError: The file is binary; the text says so.
        """
        self.bytes_read = 0
        with self.path.open("rb") as file:
            head = file.read(max(self._chunk, 4))
            encoding, skip = _encoding(head)
            decoder = codecs.getincrementaldecoder(encoding)("strict")
            raw = head[skip:]
            self.bytes_read = len(head)
            while raw:
                yield self._decoded(decoder, raw)
                raw = file.read(self._chunk)
                self.bytes_read += len(raw)
            tail = self._decoded(decoder, b"", final=True)
            if tail:
                yield tail

    def _decoded(
        self, decoder: codecs.IncrementalDecoder, raw: bytes, *, final: bool = False
    ) -> str:
        state = decoder.getstate()
        try:
            return decoder.decode(raw, final)
        except UnicodeDecodeError:
            # Counted once per file; the lines around the place stay usable.
            self.replaced = True
            decoder.setstate(state)
            decoder.errors = "replace"
            text = decoder.decode(raw, final)
            decoder.errors = "strict"
            return text


def _encoding(head: bytes) -> tuple[str, int]:
    for bom, encoding in _BOMS:
        if head.startswith(bom):
            return encoding, len(bom)
    if b"\0" in head[:8192]:
        raise ValueError(
            "the file is binary, or UTF-16 without a byte-order mark; save it as UTF-8"
        )
    return "utf-8", 0


def decode(text: str) -> object:
    """Parse one JSON value.

    Raises:
        ValueError: It is not JSON; the text names the reason and the column, nothing else.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON ({error.msg}, character {error.pos + 1})") from None
    except RecursionError:
        raise ValueError("nested too deeply to be read") from None
    except ValueError:
        # Python refuses integers beyond 4,300 digits.
        raise ValueError("holds a number with too many digits") from None


def json_lines(text: Text) -> Iterator[Read]:
    """Yield one value per line; empty lines are passed over."""
    for number, line in _lines(text):
        if line is None:
            yield Broken(f"line {number}", f"longer than {MAX_VALUE >> 20} Mi characters, skipped")
        elif line and not line.isspace():
            try:
                yield Piece(f"line {number}", number, decode(line))
            except ValueError as error:
                yield Broken(f"line {number}", f"{error}; skipped")


def _lines(text: Text) -> Iterator[tuple[int, str | None]]:
    """Yield (number from 1, line); None stands for a line beyond the limit."""
    number, parts, size = 1, list[str](), 0
    for chunk in text.chunks():
        first, *rest = chunk.split("\n")
        size += len(first)
        if size <= MAX_VALUE:
            parts.append(first)
        else:
            parts.clear()
        for following in rest:
            yield number, "".join(parts) if size <= MAX_VALUE else None
            number, parts, size = number + 1, [following], len(following)
    if size:
        yield number, "".join(parts) if size <= MAX_VALUE else None
