"""The formats that can be imported, in the order in which they are recognised.

A new format is one module with a reader (``Source -> Iterator[Item]``), a test that recognises a
sample of its values, and a line in :data:`FORMATS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from toolfault_collector.importers import chat, claude_code, livemcpbench, ndjson
from toolfault_collector.importers._source import Source
from toolfault_collector.importers._transcript import Item

__all__ = ["AUTO", "FORMATS", "Format", "Reader", "find_format", "recognise"]

AUTO: Final = "auto"

Reader: TypeAlias = Callable[[Source], Iterator[Item]]


@dataclass(frozen=True, slots=True)
class Format:
    """One format: its name on the command line, what it is, and how it is read.

    Args:
        recognises: Tells from the first values of a file whether it may be of this format; None
            where another entry's automatic reader covers it.
    """

    name: str
    title: str
    read: Reader
    recognises: Callable[[list[object]], bool] | None = None


def _any(test: Callable[[object], bool], values: list[object]) -> bool:
    return any(test(value) for value in values)


FORMATS: Final[tuple[Format, ...]] = (
    Format(
        ndjson.NAME,
        "the SDK's own events, one per line",
        ndjson.read_events,
        partial(_any, ndjson.is_event_line),
    ),
    Format(
        claude_code.NAME,
        "Claude Code session files",
        claude_code.read_claude_code,
        partial(_any, claude_code.is_claude_code_line),
    ),
    Format(
        chat.OPENAI,
        "OpenAI chat messages, bare or wrapped",
        partial(chat.read_chat, shape=chat.OPENAI),
    ),
    Format(
        chat.ANTHROPIC,
        "Anthropic messages, bare or wrapped",
        partial(chat.read_chat, shape=chat.ANTHROPIC),
    ),
    Format(
        livemcpbench.NAME,
        "LiveMCPBench result files",
        partial(chat.read_chat, shape=livemcpbench.NAME),
    ),
)
# Chat formats share their wrappers and are told apart conversation by conversation.
_AUTOMATIC: Final[tuple[tuple[Callable[[list[object]], bool], Reader], ...]] = (
    *((format_.recognises, format_.read) for format_ in FORMATS if format_.recognises),
    (chat.holds_chat, chat.read_chat),
)


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


def recognise(source: Source) -> Reader | None:
    """Give the reader for a file by its first values, or None."""
    values = source.sample()
    return next((read for recognises, read in _AUTOMATIC if recognises(values)), None)
