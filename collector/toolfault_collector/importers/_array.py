"""The elements of a top-level JSON array, one at a time.

A result file of a benchmark is one array of conversations, often larger than memory should be. Each
element is decoded on its own by ``json.JSONDecoder.raw_decode`` over a window of text; a broken one
is stepped over by matching brackets, so the rest of the file is not lost with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from toolfault_collector.importers._reading import MAX_VALUE, Broken, Piece, Read, Text

__all__ = ["array_elements"]

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_SEPARATOR: Final = re.compile(r"[ \t\r\n,]*")
# A complete string, an opened one that ends with the window, or one bracket or comma.
_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*("?)|[\[\]{},]', re.DOTALL)
_OF_NUMBER: Final = re.compile(r"[-+.eE0-9]*")
_DECODER: Final = json.JSONDecoder()


class _Window:
    """A stretch of the file that grows at its end and is dropped at its beginning."""

    def __init__(self, text: Text) -> None:
        self._chunks = text.chunks()
        self.text = ""
        self.at = 0
        self.ended = False

    def grow(self) -> bool:
        """Drop what was consumed and append at least as much text as is left; False at the end."""
        wanted = max(len(self.text) - self.at, 1)
        parts, got = [self.text[self.at :]], 0
        self.at = 0
        while got < wanted:
            chunk = next(self._chunks, None)
            if chunk is None:
                self.ended = True
                break
            parts.append(chunk)
            got += len(chunk)
        self.text = "".join(parts)
        return got > 0

    def skip(self, pattern: re.Pattern[str]) -> str:
        """Move behind *pattern* and give the next character, or nothing at the end of the file."""
        while True:
            match = pattern.match(self.text, self.at)
            self.at = match.end() if match else self.at
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.grow():
                return ""


def array_elements(text: Text) -> Iterator[Read]:
    """Yield the elements of the array that *text* begins with, positions as JSON pointers."""
    window = _Window(text)
    if window.skip(_SPACE) != "[":
        yield Broken("", "not a JSON array", fatal=True)
        return
    window.at += 1
    index = 0
    while (following := window.skip(_SEPARATOR)) not in ("]", ""):
        read = _element(window, index)
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


def _element(window: _Window, index: int) -> Read:
    """Decode the element at the window's place and move behind it."""
    position = f"/{index}"
    while True:
        try:
            value, end = _DECODER.raw_decode(window.text, window.at)
        except (RecursionError, ValueError) as error:
            reason = _reason(error, window.at)
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
            return Piece(position, index, value)


def _reason(error: Exception, start: int) -> str:
    """Say why an element could not be decoded, without repeating any of it."""
    if isinstance(error, RecursionError):
        return "nested too deeply to be read"
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON ({error.msg}, {error.pos - start + 1} characters in)"
    return "holds a number with too many digits"


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
