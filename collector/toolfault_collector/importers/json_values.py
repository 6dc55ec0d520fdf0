"""JSON values of a text that comes in chunks: lines, elements of an array, or documents.

Nothing here raises for what a text contains. What cannot be read becomes a :class:`Broken` with its
position, and reading goes on behind it. Memory is bounded by one value, and messages never repeat
text of the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = ["Broken", "Piece", "Read", "array_elements", "documents", "is_closed", "json_lines"]

MAX_VALUE: Final = 256 << 20  # characters of one line or one array element
MAX_DOCUMENT: Final = 512 << 20  # of one object, which cannot be read in pieces

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_SEPARATOR: Final = re.compile(r"[ \t\r\n,]*")
# A complete string, an opened one that ends with the window, or one bracket or comma.
_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*("?)|[\[\]{},]', re.DOTALL)
_OF_NUMBER: Final = re.compile(r"[-+.eE0-9]*")
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Broken:
    """A place that could not be read, and why; *fatal* when nothing behind it can be."""

    position: str
    message: str
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """One JSON value with its position.

    That is ``line 3``, ``/3``, ``object 3``, or empty for the whole document.
    """

    position: str
    value: object


Read: TypeAlias = Piece | Broken


def documents(chunks: Iterator[str]) -> list[Read]:
    """Read a text that is one value, or several behind each other, as OpenTelemetry prints spans.

    The position of one value is empty; of several, they are ``object 1``, ``object 2``, ...
    """
    parts, size = list[str](), 0
    for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size > MAX_DOCUMENT:
            message = f"one JSON object of more than {MAX_DOCUMENT >> 20} Mi characters"
            return [Broken("", f"{message}; split it, or save it as an array or as lines", True)]
    text = "".join(parts)
    reads = list(_values_in(text))
    if len(reads) == 1 and isinstance(reads[0], Piece):
        return [Piece("", reads[0].value)]
    return reads if len(reads) > 1 else [_decoded("", text)]


def _values_in(text: str) -> Iterator[Read]:
    """Yield the values of a text; of a broken one the brackets say where the next one begins."""
    number, at = 1, _behind_space(text, 0)
    while at < len(text):
        position = f"object {number}"
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (RecursionError, ValueError) as error:
            reason = _reason(error, "{} characters in", start=at)
            stop = _end_of_element(text, at)
            following = len(text) if stop is None else _behind_space(text, stop)
            if text[following : following + 1] not in ("{", "["):
                yield Broken(position, f"{reason}; the rest of the file was not read", fatal=True)
                return
            yield Broken(position, f"{reason}; this object was skipped")
            number, at = number + 1, following
            continue
        yield Piece(position, value)
        number, at = number + 1, _behind_space(text, end)


def _behind_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def is_closed(text: str) -> bool:
    """Say whether a text ends where its first bracket is closed; what stands within may be bad."""
    stop = _end_of_element(text, 0)
    return stop is not None and not text[stop:].strip()


def json_lines(chunks: Iterator[str]) -> Iterator[Read]:
    """Yield one value per line; empty lines are passed over."""
    for number, line in enumerate(_lines(chunks), 1):
        position = f"line {number}"
        if line is None:
            yield Broken(position, f"longer than {MAX_VALUE >> 20} Mi characters, skipped")
        elif line and not line.isspace():
            read = _decoded(position, line)
            if isinstance(read, Broken):
                read = Broken(position, f"{read.message}; skipped")
            yield read


def _decoded(position: str, text: str) -> Read:
    try:
        return Piece(position, json.loads(text))
    except (RecursionError, ValueError) as error:
        return Broken(position, _reason(error, "character {}", start=0), fatal=True)


def _reason(error: Exception, place: str, *, start: int) -> str:
    """Say why a value could not be decoded, without repeating any of it."""
    if isinstance(error, RecursionError):
        return "nested too deeply to be read"
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON ({error.msg}, {place.format(error.pos - start + 1)})"
    return "holds a number with too many digits"  # Python refuses integers beyond 4,300 digits


def _lines(chunks: Iterator[str]) -> Iterator[str | None]:
    """Yield the lines; None stands for one beyond the limit."""
    parts, size = list[str](), 0
    for chunk in chunks:
        first, *rest = chunk.split("\n")
        size += len(first)
        if size <= MAX_VALUE:
            parts.append(first)
        else:
            parts.clear()
        for following in rest:
            yield "".join(parts) if size <= MAX_VALUE else None
            parts, size = [following], len(following)
    yield "".join(parts) if size <= MAX_VALUE else None


def array_elements(chunks: Iterator[str]) -> Iterator[Read]:
    """Yield the elements of the array that the text is, one at a time.

    A result file of a benchmark is one array, often larger than memory should be. A broken element
    is stepped over by matching brackets, so that the rest of the file is not lost with it.
    """
    window = _Window(chunks)
    if window.skip(_SPACE) != "[":
        yield Broken("", "not a JSON array", fatal=True)
        return
    window.at += 1
    index = 0
    while (following := window.skip(_SEPARATOR)) not in ("]", ""):
        read = _element(window, f"/{index}")
        yield read
        if isinstance(read, Broken) and read.fatal:
            return
        index += 1
    if not following:
        yield Broken(f"/{index}", "the file ends inside the array; it may be cut off")
        return
    window.at += 1
    if window.skip(_SPACE):
        yield Broken(f"/{index}", "there is more text behind the array; it was not read")


class _Window:
    """A stretch of the text that grows at its end and is dropped at its beginning."""

    def __init__(self, chunks: Iterator[str]) -> None:
        self._chunks = chunks
        self.text = ""
        self.at = 0

    def grow(self) -> bool:
        """Drop what was consumed and about double the rest; False at the end of the text."""
        parts = [self.text[self.at :]]
        left = len(parts[0])
        # Doubling keeps the work linear; never much more than the longest element allowed.
        wanted, got = max(1, min(left, MAX_VALUE + 1 - left)), 0
        while got < wanted and (chunk := next(self._chunks, None)) is not None:
            parts.append(chunk)
            got += len(chunk)
        self.text, self.at = "".join(parts), 0
        return got > 0

    def skip(self, pattern: re.Pattern[str]) -> str:
        """Move behind *pattern* and give the next character, or nothing at the end of the text."""
        while True:
            match = pattern.match(self.text, self.at)
            self.at = match.end() if match else self.at
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.grow():
                return ""


def _element(window: _Window, position: str) -> Read:
    """Decode the element at the window's place and move behind it."""
    while True:
        try:
            value, end = _DECODER.raw_decode(window.text, window.at)
        except (RecursionError, ValueError) as error:
            reason = _reason(error, "{} characters in", start=window.at)
            stop = _end_of_element(window.text, window.at)
            if stop is not None:
                window.at = stop
                return Broken(position, f"{reason}; this element was skipped")
            if len(window.text) - window.at > MAX_VALUE:
                return Broken(position, f"longer than {MAX_VALUE >> 20} Mi characters", fatal=True)
            if not window.grow():
                return Broken(position, f"{reason}; the file may be cut off here", fatal=True)
            continue
        # A number at the end of the window may go on in the next chunk, as "1" does in "1e5".
        rest = _OF_NUMBER.match(window.text, end)
        if rest is None or rest.end() < len(window.text) or not window.grow():
            window.at = end
            return Piece(position, value)


def _end_of_element(text: str, start: int) -> int | None:
    """Find where the element at *start* ends by its brackets; None if not within *text*."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        sign = token.group()
        if sign[0] == '"':
            if not token.group(1):
                return None
        elif sign in "[{":
            depth += 1
        elif sign == ",":
            if depth == 0:
                return token.start()
        elif depth <= 1:
            # A closing bracket that nothing opened is stepped over, so that reading goes on.
            return token.end() if depth == 1 else max(token.start(), start + 1)
        else:
            depth -= 1
    return None
