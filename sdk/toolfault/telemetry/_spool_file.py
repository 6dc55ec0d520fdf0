"""The form of a spool segment: checksummed records that can be found again in damaged files.

A segment is a JSON text sequence (RFC 7464: each text between a record separator and a line feed)
with a header per record::

    RS crc32 SP number SP length SP kind payload LF

All of it is ASCII, and JSON escapes control characters, so a record separator inside a payload
can only be damage. The checksum covers what follows it up to the payload's end. A record is kept
if and only if its own bytes are intact, whatever happened before and after it.

Kinds: ``E`` an event as it goes over the wire, ``F`` a step of a folded counter.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

__all__ = ["Entry", "frame", "parse"]

_RS = b"\x1e"


class Entry(NamedTuple):
    """One intact record.

    Attributes:
        number: Its position in the segment as written; copies of a record share it.
        kind: ``E`` or ``F``.
        payload: ASCII JSON.
    """

    number: int
    kind: str
    payload: bytes


def frame(number: int, kind: str, payload: bytes) -> bytes:
    """Return a record as it stands in a segment."""
    body = b"%d %d %s%s" % (number, len(payload), kind.encode(), payload)
    return b"\x1e%08x %s\n" % (zlib.crc32(body), body)


def parse(data: bytes) -> tuple[list[Entry], int]:
    """Return the intact records of a segment, each once, in order, and how many were lost.

    Records are numbered from 0, so the loss is exact but for a damaged end, which counts as one.

    Args:
        data: Bytes of a segment, in whatever state.
    """
    entries: dict[int, Entry] = {}
    pieces = data.split(_RS)[1:]
    damaged = 0
    torn = not pieces and bool(data)
    for piece in pieces:
        entry = _entry(piece)
        torn = entry is None
        if entry is None:
            damaged += 1
        else:
            entries.setdefault(entry.number, entry)
    if not entries:
        return [], damaged or int(torn)
    missing = max(entries) + 1 - len(entries)
    return [entries[number] for number in sorted(entries)], missing + int(torn)


def _entry(piece: bytes) -> Entry | None:
    """Return the record at the start of ``piece``, or None if it is damaged."""
    head = piece[:64].split(b" ", 3)
    if len(head) < 4 or len(head[0]) != 8:
        return None
    checksum, number, length = head[0], head[1], head[2]
    if not (number.isdigit() and length.isdigit() and len(number) < 12 and len(length) < 10):
        return None
    start = 8 + 1 + len(number) + 1 + len(length) + 1
    end = start + 1 + int(length)
    if len(piece) < end:
        return None
    try:
        intact = int(checksum, 16) == zlib.crc32(piece[9:end])
    except ValueError:
        return None
    kind = piece[start : start + 1]
    if not intact or kind not in (b"E", b"F"):
        return None
    return Entry(int(number), kind.decode(), piece[start + 1 : end])
