"""Keyset cursors: where a page of a list begins, as an opaque text.

A cursor carries a checksum over its list, project and query: one that was changed, or that belongs
to another list, is refused. It grants nothing: every statement binds the project anyway.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass
from typing import Final, Literal

from toolfault_dashboard.queries.scope import Scope

__all__ = ["Cursor", "CursorError", "Direction", "read_cursor", "write_cursor"]

Direction = Literal["older", "newer"]
_CHECKSUM: Final = 6  # bytes: against typing errors and curiosity, not against an attacker
_LONGEST: Final = 200


class CursorError(ValueError):
    """The cursor was not made for this list; start again from its first page."""

    def __init__(self) -> None:
        super().__init__("This page link is not valid for this list; start from its first page.")


@dataclass(frozen=True, slots=True)
class Cursor:
    """The row a page continues from, exclusive: its sort time (microseconds) and row number."""

    direction: Direction
    at: int
    row: int


def write_cursor(scope: Scope, kind: str, cursor: Cursor) -> str:
    """Return *cursor* as text for the list *kind* of *scope*."""
    body = json.dumps([cursor.direction[0], cursor.at, cursor.row], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_checksum(scope, kind, body) + body).rstrip(b"=").decode()


def read_cursor(scope: Scope, kind: str, text: str) -> Cursor:
    """Read a cursor of the list *kind* of *scope*.

    Raises:
        CursorError: The text is no cursor, or one of another list, query or project.
    """
    try:
        raw = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (ValueError, binascii.Error):
        raise CursorError from None
    checksum, body = raw[:_CHECKSUM], raw[_CHECKSUM:]
    if len(text) > _LONGEST or checksum != _checksum(scope, kind, body):
        raise CursorError
    direction, at, row = json.loads(body)
    return Cursor(direction="older" if direction == "o" else "newer", at=int(at), row=int(row))


def _checksum(scope: Scope, kind: str, body: bytes) -> bytes:
    name = f"{scope.project_id}\n{kind}\n{scope.query}\n".encode()
    return hashlib.blake2b(name + body, digest_size=_CHECKSUM).digest()
