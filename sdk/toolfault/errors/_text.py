"""Making any text fit to be shown: no control characters, no lone surrogates, bounded."""

from __future__ import annotations

from toolfault.errors._types import is_a

__all__ = ["as_text", "cut", "first_line", "one_line", "plain", "snippet", "whole_characters"]

REPLACEMENT = "\ufffd"
SNIP = "…<snip>…"
_SNIPPET_TAIL = 200

_unshowable: dict[int, str] = {}


def plain(text: str, limit: int | None = None) -> str:
    """*text* with control characters and lone surrogates replaced, cut to *limit* characters.

    Line feeds and tabs stay: a message for the model may have several lines.
    """
    # A subclass may override any method; this makes an exact `str` without calling one.
    text = str.__str__(text)
    if limit is not None and len(text) > limit:
        text = cut(text, limit)
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(_unshowable or _filled())


def _filled() -> dict[int, str]:
    """C0 and C1 controls except tab and line feed, and surrogates, which UTF-8 cannot hold."""
    codes = {*range(0x20), *range(0x7F, 0xA0), *range(0xD800, 0xE000)} - {0x09, 0x0A}
    _unshowable.update(dict.fromkeys(codes, REPLACEMENT))
    return _unshowable


def whole_characters(text: str) -> str:
    """*text* with surrogate pairs joined and lone surrogates replaced."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def as_text(value: object, limit: int = 8_000) -> str:
    """*value* as bounded plain text; anything but text by its representation."""
    if is_a(value, str):
        return plain(value, limit)
    from toolfault.errors._repr import safe_repr

    return safe_repr(value, limit)


def cut(text: str, limit: int) -> str:
    """*text*, at most *limit* characters; a cut is marked by a final ellipsis."""
    if len(text) <= limit:
        return text
    return text[: limit - 1] + "…" if limit > 0 else ""


def snippet(text: str, maximum: int = 512) -> str:
    """*text* verbatim up to *maximum* characters, else its head and its last 200 characters.

    The result has at most *maximum* + 8 characters. Counted in characters, never in bytes, so
    that no character is torn apart (contract.md 2.1.7).
    """
    if len(text) <= maximum:
        return text
    tail = _SNIPPET_TAIL if maximum > _SNIPPET_TAIL else max(maximum, 0) // 2
    head = max(maximum, 0) - tail
    return text[:head] + SNIP + (text[-tail:] if tail else "")


def first_line(text: str, limit: int) -> str:
    """The first non-empty line of *text*, at most *limit* characters."""
    for line in text[: 4 * limit + 64].splitlines():
        if line.strip():
            return cut(line.strip(), limit)
    return ""


def one_line(text: str) -> str:
    """*text* on one line, every unprintable character escaped as Python would.

    Line feeds, terminal escapes, bidirectional overrides and zero-width characters become
    visible, so that a name or a value can neither forge a log line nor hide in one.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return repr(character)[1:-1]
