"""Secrets that only their key gives away: `password=x`, `"token": "y"`, `Cookie: z`.

A key is judged by the same words everywhere (`_keys`), a value by `_judge`; this module finds
keys in running text and how far their values go.
"""

from __future__ import annotations

import re

from toolfault.errors._judge import is_value, is_weak_key, is_weak_value, reads_as_prose
from toolfault.errors._words import REDACTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["redact_pairs"]

_AFTER_MARK = frozenset(["", *" \t\r\n,;.)}]'\"&"])
_PAIR = re.compile(
    r"""(?<![A-Za-z0-9_])
    (?:(?P<lead>[Aa][Pp][Ii]|[Aa]ccess|[Pp]rivate|[Ss]ecret|[Ss]ession|[Cc]lient|[Aa]uth)[ ])?
    (?P<key>[A-Za-z][A-Za-z0-9_.\-]{0,63})
    (?:(?P<close>\\{0,3}["']\]?)?(?P<sep>[ \t]{0,4}(?:=>|:=|[:=]|%3[AaDd])\s{0,4})
      |(?P<close2>\\{0,3}["'])(?P<comma>,\s{0,2})(?=[bfru]{0,2}\\{0,3}["']))""",
    re.VERBOSE,
)
_FLAG = re.compile(r"(?<![\w\-])--(?P<key>[A-Za-z][A-Za-z0-9\-]{1,40})(?P<sep> {1,2})(?=[^\s\-])")
_TAG = re.compile(r"<(?P<key>[A-Za-z][\w.\-]{0,63})>(?=[^<\s])")

_QUOTE = re.compile(r"[bfruBFRU]{0,2}(\\{0,3}[\"'])")
_IN_DOUBLE = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_IN_SINGLE = re.compile(r"[^'\\]*(?:\\.[^'\\]*)*'", re.DOTALL)
# An unquoted value ends at white space, a separator, or a bracket that closes the sentence.
_BARE = re.compile(r"(?:[^\s,;&\"'<>)\]}]|[,)\]}](?![\s,;&\"'<>)\]}]|$))+")
_SCHEME = re.compile(
    r"(?i)(?:(?:bearer|basic|token|apikey|api-key|key|negotiate|ntlm)[ +]{1,3}|"
    r"(?P<rest>digest|oauth|aws4-hmac-sha256|signature|hawk|hmac)\s)"
)
_BRACKETS = re.compile(r"[\[\]{}()]")
_HEADER_KEYS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})


def redact_pairs(text: str, is_secret: Callable[[str], bool]) -> str:
    """*text* without the values that belong to secret keys.

    Args:
        text: Running text, JSON, a Python representation, headers, a query or a command line.
        is_secret: Decides about one key.
    """
    if ":" in text or "=" in text or "'," in text or '",' in text or "%3" in text:
        text = _each(_PAIR, text, is_secret)
    if "--" in text:
        text = _each(_FLAG, text, is_secret)
    if "</" in text:
        text = _each(_TAG, text, is_secret)
    return text


def _each(pattern: re.Pattern[str], text: str, is_secret: Callable[[str], bool]) -> str:
    parts: list[str] = []
    done = 0
    for match in pattern.finditer(text):
        if match.start() < done:
            continue
        groups = match.groupdict()
        key = groups["key"]
        lead = groups.get("lead")
        if not is_secret(f"{lead} {key}" if lead else key):
            continue
        quoted = bool(groups.get("close") or groups.get("close2"))
        end = _value_end(text, match, key=key, quoted=quoted)
        if end is None:
            continue
        keeps_key = quoted or pattern is not _PAIR or key.lower() in _HEADER_KEYS
        # A secret key with a quoted name is data: it stays, and its value stays a JSON string.
        parts.append(text[done : match.end() if keeps_key else match.start()])
        parts.append(_mark(text, match.end(), end) if quoted else REDACTED)
        done = end
    if not parts:
        return text
    parts.append(text[done:])
    return "".join(parts)


def _is_done(text: str, start: int) -> bool:
    """Whether the value at *start* is a mark and nothing more: text may be cleaned twice."""
    end = start + len(REDACTED)
    return text.startswith(REDACTED, start) and text[end : end + 1] in _AFTER_MARK


def _mark(text: str, start: int, end: int) -> str:
    """The replacement of a value in data, in the quotes the value had."""
    opened = _QUOTE.match(text, start)
    if opened is None:
        return f'"{REDACTED}"'
    quote = opened.group(1)
    return f"{quote}{REDACTED}{quote}" if text[:end].endswith(quote) else f"{quote}{REDACTED}"


def _value_end(text: str, match: re.Match[str], *, key: str, quoted: bool) -> int | None:
    """Where the value after *match* ends, or None when it is not a secret."""
    start = match.end()
    if match.re is _TAG:
        end = text.find("<", start)
        return len(text) if end < 0 else end
    if _is_done(text, start):
        return None
    before = text[max(0, match.start() - 16) : match.start()]
    sep = match.groupdict().get("sep") or ""
    opened = _QUOTE.match(text, start)
    if opened is not None:
        if not quoted and is_weak_key(key) and not _is_weak_text(text, opened, before, sep):
            return None
        return _quoted_end(text, opened)
    first = text[start : start + 1]
    if first in {"[", "{", "("} and not text.startswith(REDACTED, start):
        return _bracket_end(text, start) if quoted else None
    if not quoted and key.lower() in _HEADER_KEYS:
        header = _header_end(text, start, key.lower())
        if header is not None:
            return header
    bare = _BARE.match(text, start)
    if bare is None or not is_value(bare.group(), key=key, before=before, sep=sep, quoted=quoted):
        return None
    return bare.end()


def _is_weak_text(text: str, opened: re.Match[str], before: str, sep: str) -> bool:
    """Whether the quoted text after a weak key looks like a credential."""
    word = _BARE.match(text, opened.end())
    return word is not None and is_weak_value(word.group(), before=before, sep=sep)


def _quoted_end(text: str, opened: re.Match[str]) -> int | None:
    quote = opened.group(1)
    start = opened.end()
    if quote == '"':
        closed = _IN_DOUBLE.match(text, start)
        end = closed.end() if closed else -1
    elif quote == "'":
        closed = _IN_SINGLE.match(text, start)
        end = closed.end() if closed else -1
    else:
        found = text.find(quote, start)
        end = found + len(quote) if found >= 0 else -1
    if end < 0:
        # The text was cut inside the value: everything to the end of the line may belong to it.
        line = text.find("\n", start)
        end = line if line >= 0 else len(text)
        quote = ""
    return None if reads_as_prose(text[start : end - len(quote)]) else end


def _bracket_end(text: str, start: int) -> int | None:
    """The end of a list or object, found within its first 16 brackets."""
    depth = 0
    for count, bracket in enumerate(_BRACKETS.finditer(text, start)):
        depth += 1 if bracket.group() in "[{(" else -1
        if depth == 0:
            inside = text[start + 1 : bracket.start()]
            return None if reads_as_prose(inside) else bracket.end()
        if count > 16:
            break
    line = text.find("\n", start)
    return line if line >= 0 else len(text)


def _header_end(text: str, start: int, key: str) -> int | None:
    """The end of an HTTP header value; cookies and multi-part schemes take the whole line."""
    line = text.find("\n", start)
    end = line if line >= 0 else len(text)
    if key.endswith("cookie"):
        value = text[start:end]
        return end if "=" in value and not value.startswith(REDACTED) else None
    scheme = _SCHEME.match(text, start)
    if scheme is None:
        return None
    if scheme.group("rest"):
        return end
    credential = _BARE.match(text, scheme.end())
    if credential is None or reads_as_prose(credential.group().strip(".")):
        return None
    return credential.end()
