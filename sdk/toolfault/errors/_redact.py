"""Redaction at the source: every string is cleaned before it is composed, shown or sent.

Two rules (contract.md 3.6): a value is a secret when its key says so, or when its own shape does.
What cannot be judged is dropped (fail closed): an error while cleaning gives `[REDACTED]`, never
the raw text.
"""

from __future__ import annotations

import json
import re

from toolfault.errors._checks import confirmed, is_credential, is_random
from toolfault.errors._encoded import redact_encoded
from toolfault.errors._pairs import redact_pairs
from toolfault.errors._policy import redaction_policy
from toolfault.errors._tokens import AUTH_SCHEME, CHECKED, GUARDED, MIXED, TOKEN
from toolfault.errors._words import REDACTED

__all__ = ["redact_name", "redact_text"]

# Longer text keeps its head and tail: nothing unread is ever shown, and cost stays bounded.
WINDOW_HEAD = 24_576
WINDOW_TAIL = 8_192
_MARGIN = 1_024
_EDGE = 512

_USERINFO = re.compile(r"(?<=://)[^\s/?#@\"'<>]{0,512}:[^\s/?#@\"'<>]{0,512}@")
_LONE_USERINFO = re.compile(r"(?<=://)[^\s/?#@:\"'<>]{12,512}@")
# A password with an unescaped slash or `@` is still a password; a port and a path are none.
_RAW_USERINFO = re.compile(
    r"(?<=://)[^\s/?#@:\"'<>]{1,64}:(?!\d{1,5}[/?#])(?:(?!://)[^\s\"'<>]){1,256}@(?=[\w\[])"
)
_SIGNATURE = re.compile(
    r"(?i)(?<![A-Za-z0-9])((?:x-amz-|x-goog-)?signature|sig|accountkey|x-amz-credential)="
    r"[A-Za-z0-9%+/=_\-.~]{12,}"
)
_KEY_PROVIDED = re.compile(
    r"(?i)(?<![A-Za-z0-9])(?:key|token|secret)s?(?: (?:provided|is|was))?:?\s{1,2}[\"'`]?"
    r"([A-Za-z0-9_\-+/=]{20,})"
)
# Text without any of this cannot hold a secret; most sentences of errors are spared the rest.
_SUSPICIOUS = re.compile(
    r"[:=%\\<&\d\x00\ufffd]|--|['\"],|[Bb][Ee][Aa][Rr][Ee][Rr]|[Bb][Aa][Ss][Ii][Cc]|\S{16}"
)
_DIGITS = re.compile(r"\d[\d\- ]{3}|[A-Z]{2}\d\d")
_PEM_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----")


def redact_text(text: str, limit: int | None = None) -> str:
    """*text* without its secrets, cut to *limit* characters.

    Without *limit*, text beyond 32 Ki characters keeps its head and its tail only. Never raises:
    what cannot be cleaned is replaced as a whole.
    """
    try:
        text = str.__str__(text)
        if limit is not None and len(text) > limit:
            return _shortened(_clean(_whole_words(text[: limit + _MARGIN])), limit)
        if len(text) > WINDOW_HEAD + WINDOW_TAIL:
            head = _clean(_whole_words(text[:WINDOW_HEAD]))
            return f"{head}…<snip>…{_clean(_tail(text))}"
        cleaned = _clean(text)
        return cleaned if limit is None else _shortened(cleaned, limit)
    except Exception:  # noqa: BLE001 - fail closed whatever went wrong
        return REDACTED


def redact_name(name: str) -> str:
    """A field or tool name without credentials in it.

    Names are data of the schema and stay, `password` included; a model can, however, put a
    credential where a name belongs. No recognisable one is shorter than eight characters.
    """
    return name if len(name) < 8 else redact_text(name)


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: max(limit - 1, 0)] + "…"


def _whole_words(head: str) -> str:
    """*head* without a last word that the cut may have torn apart."""
    for back in range(1, min(_EDGE, len(head)) + 1):
        if head[-back].isspace():
            return head[:-back]
    return head[:-_EDGE]


def _tail(text: str) -> str:
    tail = text[-WINDOW_TAIL:]
    for ahead in range(_EDGE):
        if tail[ahead].isspace():
            tail = tail[ahead:]
            break
    else:
        tail = tail[_EDGE:]
    end = _PEM_END.search(tail)
    begin = _PEM_BEGIN.search(tail)
    if end is not None and (begin is None or begin.start() > end.start()):
        tail = REDACTED + tail[end.end() :]
    return tail


def _clean(text: str) -> str:
    if _SUSPICIOUS.search(text):
        cleaned = _from_json(text) if text[:1] in {"{", "["} else None
        text = _patterns(text) if cleaned is None else cleaned
        if cleaned is None and len(text) >= 16:
            text = redact_encoded(text, _holds_secret)
    redactor = redaction_policy().redactor
    if redactor is None:
        return text
    text = redactor(text)
    return text if type(text) is str else REDACTED


def _from_json(text: str) -> str | None:
    """JSON text cleaned by its keys, or None when it is not JSON or holds nothing by key."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    from toolfault.errors._redact_value import redact_json

    cleaned, changed = redact_json(value)
    return json.dumps(cleaned, ensure_ascii=False) if changed else None


def _patterns(text: str) -> str:
    """*text* without pairs, URL credentials, private keys and recognisable tokens."""
    if "-----BEGIN" in text:
        text = _without_pem(text)
    if "://" in text:
        for pattern in (_RAW_USERINFO, _USERINFO, _LONE_USERINFO):
            text = pattern.sub(REDACTED + "@", text)
    text = redact_pairs(text, redaction_policy().is_secret)
    if "=" in text:
        text = _SIGNATURE.sub(_signed, text)
    if " " in text:
        text = _KEY_PROVIDED.sub(_provided, text)
    return _shapes(text)


def _shapes(text: str) -> str:
    text = TOKEN.sub(REDACTED, text)
    for guard, pattern in GUARDED:
        if guard in text:
            text = pattern.sub(REDACTED, text)
    lowered = text.lower()
    if "bearer" in lowered or "basic" in lowered:
        text = AUTH_SCHEME.sub(_scheme, text)
    if len(text) >= 9 and _DIGITS.search(text):
        for check, pattern in CHECKED:
            text = _checked(text, check, pattern)
    return _checked(text, "mixed", MIXED) if len(text) >= 40 else text


def _checked(text: str, check: str, pattern: re.Pattern[str]) -> str:
    """*text* without what looks like *check* and passes it."""
    return pattern.sub(lambda m: REDACTED if confirmed(check, m.group()) else m.group(), text)


def _signed(match: re.Match[str]) -> str:
    return f"{match.group(1)}={REDACTED}"


def _without_pem(text: str) -> str:
    parts: list[str] = []
    done = 0
    for begin in _PEM_BEGIN.finditer(text):
        if begin.start() < done:
            continue
        end = _PEM_END.search(text, begin.end())
        parts += [text[done : begin.start()], REDACTED]
        done = end.end() if end else len(text)
    parts.append(text[done:])
    return "".join(parts)


def _scheme(match: re.Match[str]) -> str:
    value = match.group(3)
    return REDACTED if is_credential(match.group(1).lower(), value) else match.group()


def _provided(match: re.Match[str]) -> str:
    value = match.group(1)
    return match.group().replace(value, REDACTED) if is_random(value) else match.group()


def _holds_secret(text: str) -> bool:
    """Whether decoded *text* holds something the plain patterns would take."""
    return _patterns(text) != text
