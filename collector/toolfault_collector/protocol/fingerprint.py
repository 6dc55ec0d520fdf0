"""What makes two failures "the same": normalised messages, field patterns and signatures.

No value of a call survives normalisation, so messages that differ only in ids, numbers, quotes,
paths or URLs are counted as one wording.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

import msgspec

__all__ = [
    "MAX_MESSAGE",
    "field_places",
    "message_digest",
    "normalize_message",
    "signature_fields",
    "signature_fingerprint",
]

# Characters of a normalised message that are kept; two messages equal so far are one wording.
MAX_MESSAGE: Final = 2_000

# Values are replaced kind by kind, each only where its first sign is in the text at all. All
# patterns start where a word starts and repeat possessively, so the time is linear in the text.
_QUOTED: Final = re.compile(
    r""" "(?:[^"\\\n]|\\.)*+" | `[^`\n]++` | (?<!\w)'(?:[^'\\\n]|\\.)*+'(?!\w) """, re.VERBOSE
)
_URL: Final = re.compile(r"(?<!\w)[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s<>\"'`)\]]++")
_EMAIL: Final = re.compile(r"(?<![\w.%+-])[\w.%+-]{1,64}@[\w-]++(?:\.[\w-]++)++")
_PATH: Final = re.compile(
    r"""
      (?<![\w/\\.~<-]) (?:~|\.\.?|[A-Za-z]:)?+ (?:[/\\][\w.@+%-]++){2,}+ [/\\]?+
    | (?<![\w/\\.~<-]) [\w.-]++ (?:/[\w.-]+)+ \.\w{1,8}\b
    """,
    re.VERBOSE,
)
_DIGITS: Final = re.compile(
    r"(?<!\w)(?:[-+](?=\d))?+[^\W\d]*+\d\w*+(?:[.,:/+-](?=\w*\d)\w++|-\w++)*+"
)
_NUMBER: Final = re.compile(
    r"[-+]?\d[\d.,:/+-]*(?:T\d[\d:.]*(?:Z|[+-]\d\d:\d\d)?)?([A-Za-z]{0,2})", re.ASCII
)


def normalize_message(text: str) -> str:
    """Return *text* with ids, numbers, quoted parts, paths and URLs replaced by placeholders."""
    # More than this cannot reach the kept part: a placeholder stands for at most some hundred
    # characters in any message a person or a model would read.
    text = text[: 8 * MAX_MESSAGE]
    if '"' in text or "'" in text or "`" in text:
        text = _QUOTED.sub("<str>", text)
    if "://" in text:
        text = _URL.sub("<url>", text)
    if "@" in text:
        text = _EMAIL.sub("<email>", text)
    if "/" in text or "\\" in text:
        text = _PATH.sub("<path>", text)
    text = _DIGITS.sub(_number_or_id, text)
    return " ".join(text.split())[:MAX_MESSAGE]


def message_digest(normalized: str) -> str:
    """Return the 32 hex digits under which a normalised message is counted."""
    return hashlib.blake2b(normalized.encode(), digest_size=16).hexdigest()


def field_places(field: str) -> tuple[str, str]:
    """Return *field* with list positions as ``*``, and the argument that it lies in.

    ``items.3.port`` is ``items.*.port``, in ``items``.
    """
    if field.isidentifier():  # as most are
        return field, field
    root, *_ = parts = field.replace("[", ".").replace("]", "").split(".")
    if not any(map(str.isdigit, field)):
        return field, root
    return ".".join(["*" if part.isdecimal() else part for part in parts]), root


def signature_fields(issues: Iterable[tuple[str, str]]) -> str:
    """Return the sorted distinct (field pattern, issue code) pairs as JSON."""
    return msgspec.json.encode(sorted(set(issues))).decode()


def signature_fingerprint(tool: str, code: str, *, fields: str, exception_type: str | None) -> str:
    """Return the 32 hex digits that group failures of one kind.

    Args:
        tool: Resolved name of the tool.
        code: Code of the failure.
        fields: What `signature_fields` returned.
        exception_type: Name of the exception class behind it, if there was one.
    """
    parts = "\x1f".join((tool, code, fields, exception_type or ""))
    return hashlib.blake2b(parts.encode(), digest_size=16).hexdigest()


def _number_or_id(match: re.Match[str]) -> str:
    """Tell ``30s`` (a number with its unit) from ``call_30`` (an id)."""
    text = match[0]
    if text.isascii() and (text.isdecimal() or text.isidentifier()):  # most are one of these
        return "<n>" if text.isdecimal() else "<id>"
    number = _NUMBER.fullmatch(text)
    return "<id>" if number is None else f"<n>{number.group(1)}"
