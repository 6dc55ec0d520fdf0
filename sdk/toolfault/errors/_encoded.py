"""Secrets in another encoding: base64, hexadecimal, percent codes, escapes, NUL-padded text.

Each run of text that could be an encoding is decoded and judged by the same patterns as plain
text; a run that hides a secret is replaced as a whole.
"""

from __future__ import annotations

import binascii
import re

from toolfault.errors._words import REDACTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["redact_encoded"]

_RUN = re.compile(r"[A-Za-z0-9+/_\-]{16,}={0,2}")
_HEX = re.compile(r"[0-9a-fA-F]{16,}")
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
_PIECE = re.compile(r"[^\s&=?/;,\"'<>(){}\[\]]+")
_ESCAPE = re.compile(r"(?<!\\)\\{1,8}(?:u00|x)([0-9a-fA-F]{2})")
_ENTITY = re.compile(r"&#(?:x([0-9a-fA-F]{1,4})|(\d{1,5}));")
_PRINTABLE = re.compile(rb"(?:[\x20-\x7e\r\n\t]\x00?){8,}")
_PADDING = re.compile("[\x00\ufffd]")
_STANDARD = str.maketrans("-_", "+/")


def redact_encoded(text: str, holds_secret: Callable[[str], bool]) -> str:
    """*text* without the runs that decode to something *holds_secret* recognises."""
    if ("\x00" in text or "\ufffd" in text) and holds_secret(_PADDING.sub("", text)):
        # UTF-16 or NUL-padded text read as if it were bytes.
        return REDACTED
    if "\\" in text and _ESCAPE.search(text):
        text = _unescaped(text, _ESCAPE, holds_secret)
    if "&#" in text:
        text = _unescaped(text, _ENTITY, holds_secret)
    if "%" in text and _PERCENT.search(text):
        text = _PIECE.sub(lambda m: _percent(m.group(), holds_secret), text)
    return _RUN.sub(lambda m: _run(m.group(), holds_secret), text)


def _unescaped(text: str, pattern: re.Pattern[str], holds_secret: Callable[[str], bool]) -> str:
    decoded = pattern.sub(_character, text)
    return REDACTED if holds_secret(decoded) and not holds_secret(text) else text


def _character(match: re.Match[str]) -> str:
    first = match.group(1)
    if first is not None:
        return chr(int(first, 16))
    number = int(match.group(2))
    return chr(number) if number < 0xD800 else ""


def _percent(piece: str, holds_secret: Callable[[str], bool]) -> str:
    if "%" not in piece:
        return piece
    decoded = piece
    for _ in range(2):
        decoded = _PERCENT.sub(lambda m: chr(int(m.group()[1:], 16)), decoded)
        if holds_secret(decoded):
            return REDACTED
    return (
        REDACTED if _RUN.sub(lambda m: _run(m.group(), holds_secret), decoded) != decoded else piece
    )


def _run(run: str, holds_secret: Callable[[str], bool]) -> str:
    """*run* itself, or the mark when it is base64 or hexadecimal of a secret."""
    return REDACTED if _decodes_to_secret(run, holds_secret, levels=2) else run


def _decodes_to_secret(run: str, holds_secret: Callable[[str], bool], *, levels: int) -> bool:
    for raw in _decoded(run):
        # Random bytes rarely hold eight printable ones in a row; decoded text always does.
        for segment in _PRINTABLE.findall(raw):
            text = segment.decode("latin-1").replace("\x00", "")
            if holds_secret(text):
                return True
            if levels > 1 and any(
                _decodes_to_secret(inner, holds_secret, levels=levels - 1)
                for inner in _RUN.findall(text)
            ):
                return True
    return False


def _decoded(run: str) -> Iterator[bytes]:
    """What *run* may encode: base64 from each alignment, and hexadecimal."""
    body = run.rstrip("=").translate(_STANDARD)
    # The encoding may begin anywhere in the run (after a path, say).
    for shift in range(4):
        part = body[shift:]
        part = part[: len(part) - 1] if len(part) % 4 == 1 else part
        try:
            yield binascii.a2b_base64(part + "=" * (-len(part) % 4))
        except ValueError:
            continue
    for digits in _HEX.findall(run):
        yield bytes.fromhex(digits[: len(digits) // 2 * 2])
