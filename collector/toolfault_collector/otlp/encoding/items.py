"""What one OTLP request holds, the limits of it, and why something of it was left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from sys import maxsize
from typing import Any, Final, Generic, Literal, TypeVar

from toolfault_collector.protocol.decode import BadBatch
from toolfault_collector.protocol.repair import clean_text

__all__ = [
    "CUT",
    "MAX_ATTRIBUTES",
    "MAX_DEPTH",
    "MAX_EVENTS",
    "MAX_ITEMS",
    "MAX_LIST",
    "BadBody",
    "BadItem",
    "Encoding",
    "Items",
    "Refusal",
    "Room",
    "microseconds",
]

# One request; exporters send 512, the OpenTelemetry Collector 8,192.
MAX_ITEMS: Final = 10_000
# One item. Flat conventions (OpenInference) write every message as some attributes of its own.
MAX_ATTRIBUTES: Final = 2_000
MAX_EVENTS: Final = 200
MAX_DEPTH: Final = 16
MAX_LIST: Final = 2_000
# Characters of one text (a model's messages are one attribute), and of all texts of one item.
MAX_TEXT: Final = 256 * 1_024
MAX_ITEM: Final = 1_024 * 1_024
CUT: Final = "…"

_LATEST_US: Final = 253_402_300_799_000_000  # the last second of the year 9999

Encoding = Literal["protobuf", "json"]
Item = TypeVar("Item")


class BadBody(BadBatch):
    """The body as a whole cannot be read: 400, or 413 for too many items."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(status, "too_many_items" if status == 413 else "bad_body", detail=detail)


class BadItem(Exception):  # noqa: N818 - carries a reason
    """One item cannot be read; the text says why and holds nothing that was sent."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An item that was left out: where it stood in the request, its name if known, and why."""

    index: int
    name: str
    reason: str


@dataclass(slots=True)
class Items(Generic[Item]):
    """What one request holds: what could be read, and what could not."""

    read: list[Item] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many were sent."""
        return len(self.read) + len(self.refused)

    def refuse(self, name: str, reason: str) -> None:
        """Leave one out."""
        self.refused.append(Refusal(self.count, clean_text(name[:256]), reason))

    def check(self) -> None:
        """Raise `BadBody` if it is more than one request may hold."""
        if self.count > MAX_ITEMS:
            message = f"more than {MAX_ITEMS:,} items in one request; send smaller batches"
            raise BadBody(413, message)


class Room:
    """How much one item may still have: a text beyond it is cut with a mark, the rest left out.

    Args:
        bounded: Whether there is a limit; a file that somebody imports has one as a whole.

    Attributes:
        attributes: How many attributes it may have.
        members: How many members one list or object.
    """

    __slots__ = ("_left", "_longest", "attributes", "members")

    def __init__(self, *, bounded: bool = True) -> None:
        self._longest, self._left = (MAX_TEXT, MAX_ITEM) if bounded else (maxsize, maxsize)
        self.attributes, self.members = (
            (MAX_ATTRIBUTES, MAX_LIST) if bounded else (maxsize, maxsize)
        )

    def text(self, text: str) -> str:
        """Return *text*, cut to what there is room for, without what no column can hold."""
        most = min(self._longest, self._left)
        if len(text) > most:
            text = text[:most] + CUT
        self._left = max(0, self._left - len(text))
        return text if text.isascii() and "\x00" not in text else clean_text(text)


def microseconds(nanoseconds: Any) -> int:
    """Return a time of OTLP in microseconds since the epoch; 0 where there is none, or a wrong one.

    Args:
        nanoseconds: A number, or a text of digits (JSON writes 64-bit integers as texts).
    """
    if isinstance(nanoseconds, str):
        nanoseconds = int(nanoseconds) if nanoseconds.isdecimal() and len(nanoseconds) < 21 else 0
    if isinstance(nanoseconds, bool) or not isinstance(nanoseconds, int | float):
        return 0
    if not 0 < nanoseconds <= _LATEST_US * 1_000:
        return 0
    return int(nanoseconds) // 1_000
