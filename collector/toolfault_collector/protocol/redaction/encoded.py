"""Secrets in another spelling: base64 and percent codes, as addresses and headers have them."""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from typing import Final
from urllib.parse import unquote

from toolfault_collector.protocol.redaction.prefilter import may_hold_secret

__all__ = ["without_encoded"]

# A run that may be base64, also with the alphabet of addresses; shorter ones hide no token.
_RUN: Final = re.compile(r"[A-Za-z0-9+/_-]{16,}+={0,2}")
# A part of an address or of a form, up to what separates it from the next.
_PIECE: Final = re.compile(r"""[^\s&=?/;,"'<>(){}\[\]\\]{8,}+""")
_STANDARD: Final = str.maketrans("-_", "+/")
_REPLACED: Final = "[redacted:encoded]"


def without_encoded(text: str, holds_secret: Callable[[str], bool]) -> str:
    """Return *text* without the parts that, decoded, are texts that *holds_secret* recognises."""
    if "%" in text:
        text = _PIECE.sub(lambda match: _percent(match[0], holds_secret), text)
    return _RUN.sub(lambda match: _base64(match[0], holds_secret), text)


def _percent(piece: str, holds_secret: Callable[[str], bool]) -> str:
    if "%" not in piece:
        return piece
    decoded = unquote(piece)
    if decoded == piece:
        return piece
    inner = _RUN.sub(lambda match: _base64(match[0], holds_secret), decoded)
    return _REPLACED if inner != decoded or holds_secret(decoded) else piece


def _base64(run: str, holds_secret: Callable[[str], bool]) -> str:
    body = run.rstrip("=").translate(_STANDARD)
    try:
        raw = binascii.a2b_base64(body[: len(body) - (len(body) % 4 == 1)] + "==")
    except ValueError:
        return run
    # Text, unlike a hash or a path that happens to be of these letters.
    if not may_hold_secret(raw):
        return run
    try:
        decoded = raw.decode()
    except UnicodeDecodeError:
        return run
    return _REPLACED if holds_secret(decoded) else run
