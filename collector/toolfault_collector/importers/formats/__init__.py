"""The formats that can be imported.

A new format is one file here and one line in :data:`FORMATS`. The file defines ``FORMAT``, a
:class:`~toolfault_collector.importers.items.Format`: ``detect`` recognises a file by its first
values, ``read`` yields its conversations. ``claude_code.py`` is an example of all that there is.
"""

from __future__ import annotations

from typing import Final

from toolfault_collector.importers.formats import chat, claude_code, toolfault
from toolfault_collector.importers.items import Format

__all__ = ["AUTO", "FORMATS", "detect_format", "find_format"]

AUTO: Final = "auto"

FORMATS: Final[tuple[Format, ...]] = (
    toolfault.FORMAT,
    claude_code.FORMAT,
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


def detect_format(head: list[object]) -> Format | None:
    """Give the first format that recognises the first values of a file."""
    return next((format_ for format_ in FORMATS if format_.detect(head)), None)
