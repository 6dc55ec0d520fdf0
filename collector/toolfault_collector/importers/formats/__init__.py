"""The formats that can be imported.

A new format is one file here and one line in :data:`FORMATS`. The file defines ``FORMAT``, a
:class:`~toolfault_collector.importers.items.Format`: ``detect`` recognises a value of a file,
``read`` yields the conversations of a file. ``claude_code.py`` is an example of all that there is.
Chats whose messages have a shape of their own are a dialect of ``chat.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from toolfault_collector.importers.files import Source
from toolfault_collector.importers.formats import chat, claude_code, spans, toolfault
from toolfault_collector.importers.items import Format
from toolfault_collector.importers.json_values import Piece

__all__ = ["AUTO", "FORMATS", "detect_format", "find_format", "why_unknown"]

AUTO: Final = "auto"
_MAX_CLOSEST: Final = 3
_MAX_NAMES: Final = 10_000
_MAX_DEPTH: Final = 4

FORMATS: Final[tuple[Format, ...]] = (
    *(toolfault.FORMAT, claude_code.FORMAT, spans.FORMAT),
    *chat.FORMATS,
)
"""In the order in which they are recognised."""


def find_format(name: str) -> Format:
    """Give the format of a name.

    Raises:
        ValueError: There is none; the text lists those that there are.
    """
    for format_ in FORMATS:
        if format_.name == name:
            return format_
    known = ", ".join((AUTO, *(format_.name for format_ in FORMATS)))
    raise ValueError(f"unknown format {name!r}; known are {known}")


def detect_format(head: Sequence[Piece]) -> tuple[Format, str] | None:
    """Give the first format that recognises one of the first values of a file, and why."""
    for format_ in FORMATS:
        for piece in head:
            if (found := format_.detect(piece.value)) is not None:
                sign, pointer = found
                place = f"{piece.position}{pointer}"
                return format_, f"{sign} {_preposition(place)}"
    return None


def _preposition(place: str) -> str:
    if not place:
        return "in the document"
    return f"in {place}" if place.startswith(("line", "object")) else f"at {place}"


def why_unknown(source: Source, head: Sequence[Piece]) -> str:
    """Say of a file that no format recognises what it is instead, or which formats come closest."""
    if toolfault.is_export(head, source.start):
        return (
            "an export of toolfault, which leaves out the calls that succeeded; skipped (move a"
            " history with toolfault db backup and restore, or import the transcripts again)"
        )
    if reason := source.unreadable():
        return f"{reason}; skipped"
    closest = _closest(head)
    closest = f"; closest: {closest}" if closest else ""
    return f"not recognised as a transcript{closest}; skipped (name the format if it is one)"


def _closest(head: Sequence[Piece]) -> str:
    """Name the formats whose members are found most completely, by their names alone."""
    names = set(islice(_names([piece.value for piece in head], 0), _MAX_NAMES))
    found = {
        format_: [name for name in format_.members if name in names]
        for format_ in FORMATS
        if format_.members[0] in names
    }
    ranked = sorted(found, key=lambda each: -len(found[each]) / len(each.members))
    return ", ".join(_has_and_lacks(format_, names) for format_ in ranked[:_MAX_CLOSEST])


def _has_and_lacks(format_: Format, names: set[str]) -> str:
    has = ", ".join(f'"{name}"' for name in format_.members if name in names)
    lacks = ", ".join(f'"{name}"' for name in format_.members if name not in names)
    return f"{format_.name} (has {has}; {f'lacks {lacks}' if lacks else 'the values do not fit'})"


def _names(value: object, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, dict):
        yield from value
    for member in value.values() if isinstance(value, dict) else value:  # type: ignore[attr-defined]
        if isinstance(member, dict | list):
            yield from _names(member, depth + 1)
