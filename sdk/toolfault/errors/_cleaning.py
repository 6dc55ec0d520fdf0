"""Any value and any text made fit to be shown: without secrets, printable and bounded.

A value is a secret when its key says so, or when its own shape does. What cannot
be judged is dropped: an error while cleaning gives `[REDACTED]`, never the raw text. No code of a
value is run to show it. Nothing else in the SDK redacts, shortens or makes printable.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from itertools import islice
from math import isfinite
from typing import Any

from toolfault.errors import _types
from toolfault.errors._codes import REDACTED, ConfigError
from toolfault.errors._patterns import (
    AUTH_SCHEME,
    CHECKED,
    GUARDED,
    MIXED,
    TOKEN,
    confirmed,
    is_credential,
    is_random,
    is_sentence,
    is_value,
    is_weak_key,
    is_weak_value,
    key_words,
    names_secret,
    reads_as_prose,
)
from toolfault.errors._types import is_a, is_any

Redactor = Callable[[str], str]

# What counts as a secret in this process.

_MOST_CACHED_KEYS = 4_096
_MOST_KEYS_READ = 100
_MOST_CONTAINERS_READ = 100
_SHORTEST_QUOTED = 4
_LONGEST_QUOTED = 500
_MOST_QUOTED = 20
_NAME_KEYS = ("name", "key", "field", "header")
_CONTAINERS = frozenset({dict, list, tuple})
_TOLD = _CONTAINERS | {str}


class RedactionPolicy:
    """What counts as a secret besides the built-in rules.

    Args:
        redact_keys: More keys whose values are secrets, in any spelling (`iban`, `customerName`).
        keep_keys: Keys whose values stay although the built-in rules would take them.
        redactor: A last step over every text, `(text) -> text`. When it raises or returns
            something else than text, the whole text is dropped.

    Raises:
        ConfigError: A key has no letters, or *redactor* cannot be called.
    """

    __slots__ = ("_keep", "_more", "clean_texts", "known_keys", "redactor")

    def __init__(
        self,
        *,
        redact_keys: Iterable[str] = (),
        keep_keys: Iterable[str] = (),
        redactor: Redactor | None = None,
    ) -> None:
        if redactor is not None and not callable(redactor):
            raise ConfigError("redactor must be a function that takes a text and returns a text")
        self._more = _word_set(redact_keys, "redact_keys")
        self._keep = _word_set(keep_keys, "keep_keys")
        self.known_keys: dict[str, bool] = {}
        """Keys that were looked at, and whether their values are secrets."""
        self.clean_texts: set[str] = set()
        """Texts that were looked at and came out as they were; see `known_text`."""
        self.redactor = redactor

    def is_secret(self, key: str) -> bool:
        """Whether the value of *key* is a secret."""
        known = self.known_keys.get(key)
        if known is None:
            known = self._judge(key_words(key))
            if len(self.known_keys) < _MOST_CACHED_KEYS and len(key) <= 64:
                self.known_keys[key] = known
        return known

    def _judge(self, words: tuple[str, ...]) -> bool:
        for more in self._more:
            width = len(more)
            if any(words[i : i + width] == more for i in range(len(words) - width + 1)):
                return True
        return words not in self._keep and names_secret(words)

    def extended(self, redact_keys: Iterable[str], keep_keys: Iterable[str]) -> RedactionPolicy:
        """The same policy with more keys.

        Raises:
            ConfigError: A key has no letters.
        """
        more = RedactionPolicy(redact_keys=redact_keys, keep_keys=keep_keys)
        more._more |= self._more
        more._keep |= self._keep
        more.redactor = self.redactor
        return more


def _word_set(keys: Iterable[str], name: str) -> frozenset[tuple[str, ...]]:
    if isinstance(keys, str):
        raise ConfigError(f'{name} is a sequence of keys: write ("{keys[:40]}",)')
    found = {key_words(key) for key in keys}
    if () in found:
        raise ConfigError(f"each of {name} needs at least one letter")
    return frozenset(found)


_configured = _policy = RedactionPolicy()
_extension: tuple[Iterable[str], Iterable[str]] = ((), ())


def configure_redaction(
    *,
    redact_keys: Iterable[str] = (),
    keep_keys: Iterable[str] = (),
    redactor: Redactor | None = None,
) -> RedactionPolicy:
    """Set the redaction of this process and return it; without arguments, the default one.

    The keys that `toolfault.init` was given are added to it.

    Raises:
        ConfigError: An argument cannot work (see `RedactionPolicy`).
    """
    global _configured  # noqa: PLW0603 - one policy per process: every layer must agree
    _configured = RedactionPolicy(redact_keys=redact_keys, keep_keys=keep_keys, redactor=redactor)
    return extend_redaction(*_extension)


def extend_redaction(redact_keys: Iterable[str], keep_keys: Iterable[str]) -> RedactionPolicy:
    """Add the keys of `init` to what was configured; those of an earlier `init` are forgotten.

    Raises:
        ConfigError: A key has no letters.
    """
    global _extension, _policy  # noqa: PLW0603 - see above
    _policy = _configured.extended(redact_keys, keep_keys)
    _extension = (redact_keys, keep_keys)
    return _policy


def redaction_policy() -> RedactionPolicy:
    """The redaction of this process."""
    return _policy


def is_secret_key(key: object) -> bool:
    """Whether a value under *key* must not be shown (numbers, booleans and None may)."""
    return type(key) is str and _policy.is_secret(key)


def is_secret_path(loc: Iterable[object]) -> bool:
    """Whether any name in *loc* is that of a secret."""
    known = _policy.known_keys
    for part in loc:
        if type(part) is str:
            secret = known.get(part)
            if secret or (secret is None and _policy.is_secret(part)):
                return True
    return False


def shown_anyway(value: object) -> bool:
    """Whether *value* is shown under a secret key too: numbers, booleans and None are."""
    return value is None or is_any(value, int, float)


def names_a_secret(pairs: dict[Any, Any]) -> bool:
    """Whether *pairs* has the shape `{"name": "password", "value": "x"}`."""
    if dict.get(pairs, "value") is None:
        return False
    return any(is_secret_key(dict.get(pairs, name)) for name in _NAME_KEYS)


def secret_values(value: object) -> list[str]:
    """The texts of at least four characters under secret keys of *value*, at most 20.

    Lists are looked into, and so are pairs such as `{"name": "Authorization", "value": "x"}`.

    The longest first: a secret may be the beginning of another, and what is left of that would
    still be told.

    Args:
        value: An object, or the JSON text of one.
    """
    if type(value) is str:
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []
    found: list[str] = []
    waiting: list[tuple[object, bool]] = [(value, False)]
    for inside, secret in waiting:  # grows while it is read: what lies deeper comes later
        if type(inside) is dict:
            _in_dict(inside, waiting, found)
        elif type(inside) is list or type(inside) is tuple:
            for item in inside[:_MOST_KEYS_READ]:
                if type(item) in (_TOLD if secret else _CONTAINERS):
                    _look_at(item, waiting, found, secret=secret)
    found = found[:_MOST_QUOTED]
    return sorted(found, key=len, reverse=True) if found else found


def _in_dict(pairs: dict[Any, Any], waiting: list[tuple[object, bool]], found: list[str]) -> None:
    known = _policy.known_keys
    for key, item in islice(dict.items(pairs), _MOST_KEYS_READ):
        if type(item) in _TOLD and type(key) is str:
            secret = known.get(key)
            if secret is None:
                secret = _policy.is_secret(key)
            if not secret and key == "value":
                secret = names_a_secret(pairs)
            if secret or type(item) is not str:
                _look_at(item, waiting, found, secret=secret)


def _look_at(
    item: object, waiting: list[tuple[object, bool]], found: list[str], *, secret: bool
) -> None:
    """Note a secret text; put a container on the list of what is still to be read."""
    if type(item) is not str:
        if len(waiting) < _MOST_CONTAINERS_READ:
            waiting.append((item, secret))
    elif len(item) >= _SHORTEST_QUOTED:
        found.append(item)
        if len(item) > _LONGEST_QUOTED:
            found.append(item[:_LONGEST_QUOTED])  # where the text that quotes it was cut


def without(text: Any, values: Sequence[str]) -> Any:
    """*text*, or None where there is none, with `[REDACTED]` in the place of *values*.

    A value may be part of the name that another secret is recognised by: `pass` of `password=x`.
    Such a secret goes first.
    """
    for value in values if text else ():
        if value in text:
            if not _NO_NAME.search(value) or is_marker(value):
                text = redact_text(text)
            text = text.replace(value, REDACTED)
    return text


_NO_NAME = re.compile(r"[^\w\-.]")
_SCHEME = re.compile("bearer|basic", re.IGNORECASE)


def is_marker(value: str) -> bool:
    """Whether what follows *value* in a text would be recognised as a secret by it."""
    return is_secret_key(value) or _SCHEME.search(value) is not None


# Secrets in another encoding: base64, hexadecimal, percent codes, escapes, NUL-padded text.

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


# Secrets that only their key gives away: `password=x`, `"token": "y"`, `Cookie: z`.

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


# Redaction at the source: every string is cleaned before it is composed, shown or sent.

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
MOST_AT_ONCE = WINDOW_HEAD + WINDOW_TAIL
_DIGITS = re.compile(r"\d[\d\- ]{3}|[A-Z]{2}\d\d")
_PEM_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----")


def redact_text(text: str, limit: int | None = None) -> str:
    """*text* without its secrets, cut to *limit* characters.

    Without *limit*, text beyond 32 Ki characters keeps its head and its tail only. Never raises:
    what cannot be cleaned is replaced as a whole.
    """
    if (
        type(text) is str
        and len(text) <= (MOST_AT_ONCE if limit is None else limit)
        and _policy.redactor is None
        # A pattern is far from the processor's caches; one short word cannot match any.
        and ((text.isalpha() and len(text) < 16) or not _SUSPICIOUS.search(text))
    ):
        return text
    try:
        text = str.__str__(text)
        if limit is not None and len(text) > limit:
            return cut(_clean(_whole_words(text[: limit + _MARGIN])), limit)
        if len(text) > WINDOW_HEAD + WINDOW_TAIL:
            head = _clean(_whole_words(text[:WINDOW_HEAD]))
            return f"{head}…<snip>…{_clean(_tail(text))}"
        cleaned = _clean(text)
        return cleaned if limit is None else cut(cleaned, limit)
    except Exception:  # noqa: BLE001 - fail closed whatever went wrong
        return REDACTED


def redact_name(name: str) -> str:
    """A field or tool name without credentials in it.

    Names are data of the schema and stay, `password` included; a model can, however, put a
    credential where a name belongs. No recognisable one is shorter than eight characters.
    """
    return name if len(name) < 8 else redact_text(name)


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


# Redaction of JSON that stands in a text: by key and by text, keeping remarks and schemas.

_DEEPEST = 64


def redact_json(value: object, depth: int = 0) -> tuple[object, bool]:
    """A cleaned copy of a JSON *value* and whether anything was taken out of it."""
    if type(value) is str:
        cleaned = redact_text(value)
        return cleaned, cleaned != value
    if depth >= _DEEPEST:
        return REDACTED, True
    if type(value) is dict:
        return _redact_dict(value, depth)
    if type(value) is list:
        changed = False
        items: list[object] = []
        for item in value:
            cleaned_item, one = redact_json(item, depth + 1)
            items.append(cleaned_item)
            changed = changed or one
        return items, changed
    return value, False


def _redact_dict(value: dict[str, object], depth: int) -> tuple[object, bool]:
    changed = False
    result: dict[str, object] = {}
    named = names_a_secret(value)
    for key, item in value.items():
        if (is_secret_key(key) or (named and key == "value")) and not (
            shown_anyway(item) or is_sentence(item)
        ):
            one = item != REDACTED
            cleaned: object = REDACTED
        else:
            cleaned, one = redact_json(item, depth + 1)
        new_key = redact_text(key)
        changed = changed or one or new_key != key
        result[new_key] = cleaned
    return result, changed


# Making any text fit to be shown: no control characters, no lone surrogates, bounded.

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
    if type(value) is str or is_a(value, str):
        return plain(value, limit)
    return safe_repr(value, limit)


def cut(text: str, limit: int) -> str:
    """*text*, at most *limit* characters; a cut is marked by a final ellipsis."""
    if len(text) <= limit:
        return text
    return text[: limit - 1] + "…" if limit > 0 else ""


def snippet(text: str, maximum: int = 512) -> str:
    """*text* verbatim up to *maximum* characters, else its head and its last 200 characters.

    The result has at most *maximum* + 8 characters. Counted in characters, never in bytes, so
    that no character is torn apart.
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
    # Line by line, since a line feed is nearly always the only such character of a long text.
    return "\\n".join(line if line.isprintable() else _escaped(line) for line in text.split("\n"))


def _escaped(text: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


# A representation of any value: bounded, redacted, and without running the value's own code.

DEPTH = 6
LIMIT = 2_000
_MOST_ITEMS = 200
_WIDEST_INT = 4_096  # bits; Python itself refuses to print more than 4,300 digits
_SIMPLE = (bool, float, complex, range, type(None), type(Ellipsis))
_LITERALS: tuple[tuple[Any, str, str], ...] = ((list, "[", "]"), (tuple, "(", ")"))
_UNITS: dict[Any, str] = {
    str: "characters",
    dict: "keys",
    list: "items",
    tuple: "items",
    set: "items",
    frozenset: "items",
    bytes: "bytes",
    bytearray: "bytes",
}


def type_name(value: object) -> str:
    """The Python type name of *value*: `str`, `int`, `dict`, `NoneType`."""
    return _TYPE_NAMES.get(type(value)) or one_line(_types.class_name(value))


def type_and_size(value: object) -> str:
    """What stands in for *value* where it must not be shown: `str, 18 characters`, `int`.

    The unit is in the plural whatever the size: failures are grouped by their wording.
    """
    base: Any
    for base in _types.mro(type(value)):
        if base in _UNITS:
            return f"{type_name(value)}, {base.__len__(value)} {_UNITS[base]}"
    return type_name(value)


_SHORTEST_SECRET = 9  # characters of a number, an account's, that is one
# Values that are what they say, without a class of their own.
PLAIN_TYPES = {str: "str", int: "int", float: "float", bool: "bool", type(None): "NoneType"}
_KINDS: frozenset[type] = frozenset({dict, list, tuple, set, frozenset})
_TYPE_NAMES: dict[type, str] = {**PLAIN_TYPES, **{kind: kind.__name__ for kind in _KINDS}}


def shown_value(value: object, hidden: bool) -> tuple[str, str, str, object]:
    """What is shown of *value*, its type name, what stands in for it, and what may be kept of it.

    Args:
        value: Anything.
        hidden: Whether the value is a secret, which is not shown.
    """
    kind = type(value)
    if kind is str:
        shown = REDACTED if hidden else repr(redact_text(value, LIMIT + 1))  # type: ignore[arg-type]
        if len(shown) > LIMIT:
            shown = cut(shown, LIMIT)
        size = len(value)  # type: ignore[arg-type]
        sent = value if size <= _LONGEST_SENT else _types.ABSENT
        return shown, "str", f"str, {size} characters", sent
    name = PLAIN_TYPES.get(kind)
    if name is None:
        shown = REDACTED if hidden else redacted_repr(value)
        if len(shown) >= _SHORTEST_SECRET:  # what lies beside each other may be one, too
            shown = one_line(clean_text(shown, LIMIT))
        return shown, type_name(value), type_and_size(value), unchanging(value)
    if hidden:
        return REDACTED, name, name, value
    shown = _integer(value) if kind is int else repr(value)  # type: ignore[arg-type]
    return redact_text(shown) if len(shown) >= _SHORTEST_SECRET else shown, name, name, value


_LONGEST_SENT = 10_000


def unchanging(value: object) -> object:
    """*value* as it may be kept: an empty container stands for one; ABSENT for what may change."""
    kind = type(value)
    if kind is str and len(value) > _LONGEST_SENT:  # type: ignore[arg-type] # a text by its type
        return _types.ABSENT
    if kind in PLAIN_TYPES:
        return value
    return kind() if kind in _KINDS else _types.ABSENT


def safe_repr(value: object, limit: int = LIMIT) -> str:
    """What `repr(value)` would say, without its dangers; not redacted.

    Values of JSON and of common standard library types look as Python shows them. An object with
    a `__repr__` of its own is never asked: it may raise, sleep or print a gigabyte. It is shown
    as `<unrepresentable ClassName>`, bytes as `<bytes len=N>`.

    Args:
        value: Anything.
        limit: The most characters of the result; a cut ends in an ellipsis.
    """
    return _written(value, limit, redact=False)


def redacted_repr(value: object, *, key: object = None, limit: int = LIMIT) -> str:
    """`safe_repr` without secrets: those under secret keys and those with a telling shape.

    Args:
        value: Anything.
        key: The name the value goes by; a secret name hides everything but numbers and booleans.
        limit: The most characters of the result.
    """
    if key is not None and is_secret_key(key) and not shown_anyway(value):
        return REDACTED
    return _written(value, limit, redact=True)


def _written(value: object, limit: int, *, redact: bool) -> str:
    try:
        return cut(_Writer(limit, redact=redact).write(value, 0), limit)
    except Exception:  # noqa: BLE001 - an exotic type; showing nothing of it is always possible
        return f"<unrepresentable {type_name(value)}>"


class _Writer:
    """Writes one value with a budget of characters, items and depth."""

    def __init__(self, limit: int, *, redact: bool) -> None:
        self._left = limit + 1
        self._redact = redact
        self._open: set[int] = set()

    def write(self, value: Any, depth: int) -> str:
        cls = type(value)
        text: str | None = None
        if cls is str:
            text = self._text(value)
        elif cls is int:
            text = _integer(value)
        elif cls in _SIMPLE:
            text = repr(value)
        elif cls not in _KINDS:
            text = self._other_scalar(value, cls)
        if text is None:
            if depth >= DEPTH or id(value) in self._open:
                text = "..."
            else:
                self._open.add(id(value))
                try:
                    text = self._container(value, depth)
                finally:
                    self._open.discard(id(value))
                return text
        self._left -= len(text)
        return text

    def _other_scalar(self, value: Any, cls: type) -> str | None:
        bases = _types.mro(cls)
        if Enum in bases:
            name = object.__getattribute__(value, "_name_")
            inner = self.write(object.__getattribute__(value, "_value_"), DEPTH - 1)
            return f"<{type_name(value)}.{name}: {inner}>"
        if str in bases:
            return self._text(str.__str__(value))
        if int in bases:
            return _integer(int.__int__(value))
        if float in bases:
            return float.__repr__(value)
        if bytes in bases or bytearray in bases or memoryview in bases:
            return f"<{_types.class_name(value)} len={_length(value)}>"
        if not _KINDS.isdisjoint(bases):
            return None
        if _types.trusted(value):
            return self._cleaned(repr(value))
        if BaseException in bases or _types.field_values(value) is not None:
            return None
        return _described(value)

    def _text(self, value: str) -> str:
        limit = max(self._left, 0)
        if self._redact:
            return repr(redact_text(value, limit))
        return repr(value if len(value) <= limit else value[:limit])

    def _cleaned(self, text: str) -> str:
        return redact_text(text) if self._redact else text

    def _container(self, value: Any, depth: int) -> str:
        bases = _types.mro(type(value))
        if dict in bases:
            return "{" + self._joined(self._pairs(value, depth)) + "}"
        for base, opening, closing in _LITERALS:
            if base in bases:
                items = self._items(islice(base.__iter__(value), _MOST_ITEMS + 1), depth)
                text = self._joined(items)
                single = base is tuple and text and _length(value) == 1
                return f"{opening}{text}{',' if single else ''}{closing}"
        if set in bases or frozenset in bases:
            return self._set(value, depth)
        fields = _types.field_values(value)
        if fields is not None:
            inner = self._joined(f"{k}={self._value(k, v, depth)}" for k, v in fields)
            return f"{type_name(value)}({inner})"
        arguments = BaseException.__dict__["args"].__get__(value)
        return f"{type_name(value)}({self._joined(self._items(iter(arguments), depth))})"

    def _set(self, value: Any, depth: int) -> str:
        base = set if set in _types.mro(type(value)) else frozenset
        items = list(self._items(base.__iter__(value), depth))
        if not items:
            return f"{base.__name__}()"
        text = "{" + self._joined(iter(sorted(items))) + "}"
        return text if base is set else f"frozenset({text})"

    def _pairs(self, value: dict[object, object], depth: int) -> Iterator[str]:
        named = self._redact and names_a_secret(value)
        for key, item in islice(dict.items(value), _MOST_ITEMS):
            if self._redact and type(key) is str:
                shown = repr(redact_name(key[:256]))
            else:
                shown = self.write(key, depth + 1)
            self._left -= 4
            hidden = named and type(key) is str and key == "value" and not shown_anyway(item)
            yield f"{shown}: {repr(REDACTED) if hidden else self._value(key, item, depth)}"

    def _value(self, key: object, value: object, depth: int) -> str:
        if self._redact and is_secret_key(key) and not shown_anyway(value):
            return repr(REDACTED)
        return self.write(value, depth + 1)

    def _items(self, values: Iterable[object], depth: int) -> Iterator[str]:
        for item in islice(values, _MOST_ITEMS + 1):
            self._left -= 2
            yield self.write(item, depth + 1)

    def _joined(self, parts: Iterable[str]) -> str:
        shown: list[str] = []
        for part in parts:
            shown.append(part)
            if self._left <= 0 or len(shown) > _MOST_ITEMS:
                shown.append("...")
                break
        return ", ".join(shown)


def _integer(value: int) -> str:
    bits = value.bit_length()
    return repr(value) if bits <= _WIDEST_INT else f"<int of {bits} bits>"


def _length(value: object) -> int:
    """The length as the built-in base class knows it."""
    bases = _types.mro(type(value))
    measure: Any
    for measure in (bytes, bytearray, memoryview, list, tuple):
        if measure in bases:
            return int(measure.__len__(value))
    return 0


def _described(value: object) -> str:
    """An object that may not print itself, by its class."""
    name = type_name(value)
    if _types.is_a(value, type):
        return f"<class {one_line(_types.name_of(value))[:64]}>"
    return f"<unrepresentable {name}>" if _types.has_own(value, "__repr__") else f"<{name} object>"


# Any value as plain JSON values: no exception, no cycle, nothing that `json.dumps` refuses.

CUT = "…"


def to_jsonable(
    value: object,
    *,
    redact: bool = False,
    max_depth: int = 6,
    max_items: int | None = 200,
    max_string: int | None = 2_000,
) -> object:
    """*value* as plain dicts, lists, strings, numbers, booleans and None.

    NaN and infinities become text, bytes `<bytes len=N>`, dates ISO text, enums their value;
    dataclasses, models and structs become objects; what is cyclic or too deep becomes an
    ellipsis. The original is never changed, and no method of an unknown class is called.

    Args:
        value: Anything.
        redact: Whether secrets are taken out, by key and by text.
        max_depth: How deep containers may nest.
        max_items: The most items of one container; None for all.
        max_string: The most characters of one text; None for all.
    """
    try:
        return _Normaliser(redact, max_depth, max_items, max_string).value(value, 0)
    except Exception:  # noqa: BLE001 - an exotic type; its class can always be named
        return safe_repr(value, 200)


class _Normaliser:
    def __init__(
        self, redact: bool, max_depth: int, max_items: int | None, max_string: int | None
    ) -> None:
        self._redact = redact
        self._depth = max_depth
        self._items = max_items
        self._string = max_string
        self._open: set[int] = set()

    def value(self, value: Any, depth: int) -> object:
        cls = type(value)
        if cls is str:
            return self.text(value)
        if value is None or cls is bool:
            return value
        if cls is int:
            return value if value.bit_length() <= _WIDEST_INT else _integer(value)
        if cls is float:
            return value if isfinite(value) else repr(value)
        if cls in (dict, list, tuple):
            return self._guarded(value, depth)
        return self._other(value, cls, depth)

    def text(self, value: str) -> str:
        if self._redact:
            return plain(redact_text(value, self._string))
        # Data keeps its control characters, which JSON can hold; half a character it cannot.
        return whole_characters(value) if self._string is None else plain(value, self._string)

    def _other(self, value: Any, cls: type, depth: int) -> object:
        bases = _types.mro(cls)
        if Enum in bases:
            return self.value(object.__getattribute__(value, "_value_"), depth)
        if str in bases:
            return self.value(str.__str__(value), depth)
        if int in bases:
            return self.value(int.__int__(value), depth)
        if float in bases:
            return self.value(float.__float__(value), depth)
        if any(base in bases for base in (dict, list, tuple, set, frozenset)):
            return self._guarded(value, depth)
        if _types.field_values(value) is not None:
            return self._guarded(value, depth)
        if _types.trusted(value):
            return self.text(_printed(value))
        if self._redact:
            return redacted_repr(value, limit=self._string or 2_000)
        return safe_repr(value, self._string or 2_000)

    def _guarded(self, value: object, depth: int) -> object:
        if depth >= self._depth or id(value) in self._open:
            return CUT
        self._open.add(id(value))
        try:
            return self._container(value, depth)
        finally:
            self._open.discard(id(value))

    def _container(self, value: Any, depth: int) -> object:
        bases = _types.mro(type(value))
        if dict in bases:
            return self._object(dict.items(value), depth)
        for base in (list, tuple, set, frozenset):
            if base in bases:
                return self._array(base.__iter__(value), base, depth)
        return self._object(_types.field_values(value) or (), depth)

    def _object(self, pairs: Iterable[tuple[object, object]], depth: int) -> dict[str, object]:
        result: dict[str, object] = {}
        for key, item in islice(pairs, self._items):
            name = key if type(key) is str else self._name(key)
            if self._redact and is_secret_key(name) and not shown_anyway(item):
                result[self.text(name)] = REDACTED
            else:
                result[self.text(name)] = self.value(item, depth + 1)
        if self._redact and names_a_secret(result) and not shown_anyway(result["value"]):
            result["value"] = REDACTED
        return result

    def _name(self, key: Any) -> str:
        if key is None or type(key) is bool:
            return {None: "null", True: "true", False: "false"}[key]
        if _types.is_a(key, str):
            return str.__str__(key)
        return safe_repr(key, 200)

    def _array(self, items: Iterable[object], base: type, depth: int) -> list[object]:
        result = [self.value(item, depth + 1) for item in islice(items, self._items)]
        # Sets have no order of their own; two runs must give the same JSON.
        return sorted(result, key=repr) if base in (set, frozenset) else result


def _printed(value: object) -> str:
    iso = getattr(value, "isoformat", None)
    return str(iso()) if callable(iso) else str(value)


def strict_json(text: str) -> object:
    """The value of *text*, which holds JSON: no NaN and no infinities (RFC 8259).

    Raises:
        json.JSONDecodeError: It does not, or more than Python reads.
    """
    try:
        return json.loads(text, parse_constant=_refused)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise json.JSONDecodeError("Too deeply nested", text, 0) from None
    except ValueError:  # a number with thousands of digits
        raise json.JSONDecodeError("Number too large", text, 0) from None


def _refused(constant: str) -> None:
    raise json.JSONDecodeError(f"{constant} is not a JSON number", constant, 0)


# Texts that are fit to be shown: clean of secrets, printable, bounded.

_LONGEST_NAME = 256
_NEVER_SECRET_TYPES = frozenset({"int", "float", "bool", "NoneType", "Decimal"})


def clean_name(name: str, limit: int = _LONGEST_NAME) -> str:
    """A tool or field name fit to be shown: one line, bounded, never a credential."""
    return cut(one_line(plain(redact_name(name[: limit + 1_000]), limit)), limit)


def clean_received(
    received: object, *, field: object, received_type: str | None, limit: int
) -> str | None:
    """The representation of a received value, without secrets, at most *limit* characters."""
    if received is None:
        return None
    if type(field) is str and is_secret_value(field.split("."), received_type):
        return REDACTED
    return one_line(clean_text(received, limit))


def is_secret_value(loc: Iterable[object], received_type: str | None) -> bool:
    """Whether a value of *received_type* at *loc* must not be shown, by a name on its path."""
    return received_type not in _NEVER_SECRET_TYPES and is_secret_path(loc)


_LONGEST_KNOWN = 300
_MOST_KNOWN = 1_000


def clean_text(value: object, limit: int) -> str:
    """Any text without secrets and control characters, at most *limit* characters."""
    # Control characters go first: some are white space to a pattern, and would end a secret early.
    return plain(redact_text(as_text(value, 4 * limit + 1_000), limit))


def known_text(text: str, limit: int) -> str:
    """`clean_text` of a name or a sentence that comes again with every failure of its kind.

    A line that came out as it was is remembered by the policy, up to a thousand of them; a text
    that held a secret never is.
    """
    policy = _policy
    if type(text) is str and text in policy.clean_texts and len(text) <= limit:
        return text
    cleaned = clean_text(text, limit)
    if (
        cleaned == text
        and 0 < len(cleaned) <= _LONGEST_KNOWN
        and cleaned.isprintable()
        and policy.redactor is None
    ):
        if len(policy.clean_texts) >= _MOST_KNOWN:
            policy.clean_texts.clear()
        policy.clean_texts.add(cleaned)
    return cleaned
