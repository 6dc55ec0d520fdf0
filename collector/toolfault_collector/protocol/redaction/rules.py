"""Removal of secrets from text that is kept for people to look at: the second net.

The SDK cleans at the source, before anything leaves the agent, with far more context than there is
here (`toolfault.errors`). This catches what other senders forgot: tokens that are recognised by
their shape, credentials in URLs and values whose name says that they are secret, also in base64 or
percent codes, and card numbers as they are written. Secrets that look like any other word pass; and
what has been cleaned stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Final

from toolfault_collector.protocol.redaction.encoded import without_encoded
from toolfault_collector.protocol.redaction.prefilter import PREFIXES

__all__ = ["redact", "redact_bluntly", "redact_value"]

# Possessive and bounded, so that no text costs more than a few steps a character.
_SHAPED: Final = re.compile(
    r"""
      (?P<pem>-----BEGIN[ ][A-Z ]{0,40}PRIVATE[ ]KEY-----
        (?:[^-]|-(?!----END)){0,20000}+(?:-----END[ ][A-Z ]{0,40}+-----)?+)
    | (?P<jwt>(?<![\w-])eyJ[\w-]{8,2000}+\.[\w-]{8,4000}+\.[\w-]*+)
    | (?P<key>(?<![A-Za-z0-9])(?:
          (?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b
        | AIza[\w-]{30,}+
        | (?:SK|key-|dapi)[0-9a-f]{32}\b
        | [0-9a-f]{32}-us\d{1,2}\b
        | \d{8,10}:AA[\w-]{32,}+
        | (?<=hooks\.slack\.com/)services/[\w/]{20,}+
        | (?:"""
    + "|".join(re.escape(prefix) for prefix in PREFIXES)
    + r""")[\w.-]{12,}+))
    | (?P<bearer>\b(?:[Bb]earer|[Bb]asic)\s{1,3}[\w.~+/=-]{8,}+)
    | (?P<url>(?<=://)[^\s/@:"'\[\]]{0,100}+:[^\s/@"'\[\]]{1,200}+(?=@))
    """,
    re.VERBOSE,
)
# What has no sign around it: payment cards, whose last digit is a check of the others, and secret
# keys of AWS, which are told from words by how they change between kinds of characters.
_BARE: Final = re.compile(
    r"""
      (?<![\w.-])(?P<card>(?:4\d{3}|5[1-5]\d\d|2[2-7]\d\d|6(?:011|5\d\d))(?:[ -]?\d{4}){3}
        |3[47]\d\d[ -]?\d{6}[ -]?\d{5})(?![\w-])
    | (?<![\w./+-])(?P<key>[A-Za-z0-9/+]{40})(?![\w/+=-])
    """,
    re.VERBOSE | re.ASCII,
)
# A name that says that its value is secret. Names that only contain such a word (token_count,
# author, session_minutes) are left alone.
_NAME_OF_ONE: Final = r"""(?:password|passwd|pwd|secret|(?:access|auth|refresh|id|bot)?token
        |api[_-]?key|access[_-]?key|private[_-]?key|session[_-]?key|client[_-]?secret
        |authorization|credentials?|cookie|dsn)"""
_NAME: Final = re.compile(rf"(?isx)(?:.*[^a-z0-9])?{_NAME_OF_ONE}")
_NAMED: Final = re.compile(
    rf"""(?ix)
    (?<![a-z0-9])(?P<name>{_NAME_OF_ONE}(?:\\?["'])?\s{{0,3}}[:=]\s{{0,3}})
    (?P<value>\\?"(?:[^"\\]|\\.){{1,4000}}"?|\\?'(?:[^'\\]|\\.){{1,4000}}'?
      |[^\s,;&}}\]"']{{1,4000}})
    """
)
# pydantic shows what it was given: the name stands in the line above, or at the end of a path.
_INPUT: Final = re.compile(
    rf"""(?ix)
    (?P<name>(?:^|\n|\\n)[ ]{{0,8}}(?:[^\s.]{{1,64}}\.){{0,8}}(?:[a-z0-9]{{1,64}}[_-]){{0,4}}
      {_NAME_OF_ONE}[ ]{{0,8}}(?:\n|\\n)[^\n]{{0,600}}?input_value=)
    (?P<value>[^\n]{{1,400}}?)(?=,\ input_type=|\]?(?:\n|$))
    """
)
# What a value must have to be taken for a credential where only prose stands around it. "password:
# must be given" and "token = get_token(user)" are ordinary errors, and most valuable as they are.
_CREDENTIAL: Final = re.compile(r"(?=.{0,200}\d)(?=.{0,200}[^\W\d_])[^\s()\[\]{}<>]{6,}")
_JSON_TEXT: Final = re.compile(r"""\\?["'][^\s"'\\()\[\]{}<>]{4,}\\?["']""")
_REDACTED: Final = "[redacted"


def redact(text: str) -> str:
    """Return *text* with what is recognised as a secret replaced by ``[redacted:kind]``."""
    return without_encoded(_clean(text, _without_credential), _holds_secret)


def redact_bluntly(text: str) -> str:
    """Return *text* without anything that stands where a secret could.

    For what was refused: nobody knows what it is, and no sentence in it is worth a risk.
    """
    return without_encoded(_clean(text, _without_value), _holds_secret)


def redact_value(value: Any, *, name: str = "", clean: Callable[[str], str] = redact) -> Any:
    """Return the JSON *value* with its texts redacted, also by the names that they stand under.

    Args:
        value: What JSON can hold.
        name: The name that it stands under.
        clean: What cleans a text; with `redact_bluntly` numbers under a secret's name go as well.
    """
    secret = bool(name) and _NAME.fullmatch(name) is not None
    if isinstance(value, str):
        return "[redacted:named]" if secret and _tells_something(value) else clean(value)
    if isinstance(value, list):
        return [redact_value(item, name=name, clean=clean) for item in value]
    if isinstance(value, Mapping):
        return {
            key: redact_value(item, name=name if secret else str(key), clean=clean)
            for key, item in value.items()
        }
    if secret and clean is redact_bluntly and isinstance(value, int | float):
        return "[redacted:named]"
    if type(value) is int and value > 10**14 and clean(str(value)) != str(value):
        return "[redacted:card]"
    return value


def _clean(text: str, without_pair: Callable[[re.Match[str]], str]) -> str:
    text = _SHAPED.sub(_without_token, text)
    if "input_value=" in text:
        text = _INPUT.sub(_without_input, text)
    text = _NAMED.sub(without_pair, text)
    return _BARE.sub(_without_bare, text)


def _without_input(match: re.Match[str]) -> str:
    known = _REDACTED in match["value"].lower()
    return match[0] if known else f"{match['name']}[redacted:named]"


def _holds_secret(text: str) -> bool:
    return _clean(text, _without_credential) != text


def _tells_something(value: str) -> bool:
    return len(value) >= 4 and _REDACTED not in value.lower() and value.lower() not in _NO_VALUES


_HAS_DIGIT: Final = re.compile(r"[\d=]")
_NO_VALUES: Final = frozenset({"none", "null", "true", "false", "missing", "undefined"})


def _without_token(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind in ("key", "bearer") and not _HAS_DIGIT.search(match[0]):
        return match[0]  # "Bearer authentication", "sk-learning-rate": words
    return f"[redacted:{kind}]"


def _without_bare(match: re.Match[str]) -> str:
    kind, text = match.lastgroup, match[0]
    found = _is_card(text) if kind == "card" else _is_random(text)
    return f"[redacted:{kind}]" if found else text


def _is_card(text: str) -> bool:
    """Return whether the check digit is right (ISO/IEC 7812-1, annex B)."""
    digits = [int(each) for each in reversed(text) if each.isdigit()]
    doubled = [2 * each - 9 * (each > 4) for each in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def _is_random(text: str) -> bool:
    """Return whether forty characters are a key rather than a path, a name or a hash.

    Names change between large and small letters and digits where words begin; what is random
    changes about every other character.
    """
    kinds = ["0" if each.isdigit() else "A" if each.isupper() else "a" for each in text]
    changes = sum(one != other for one, other in pairwise(kinds))
    enough = kinds.count("0") >= 2 and kinds.count("A") >= 4 and kinds.count("a") >= 4
    return enough and changes >= 16 and len(set(text)) >= 20


def _without_credential(match: re.Match[str]) -> str:
    value = match["value"]
    bare = value.strip("\\\"'")
    quoted_pair = match["name"].rstrip(" :=").endswith(('"', "'")) and _JSON_TEXT.fullmatch(value)
    if not quoted_pair and _CREDENTIAL.fullmatch(bare) is None:
        return match["name"] + _NAMED.sub(_of_a_value, value)
    return _without_value(match)


def _of_a_value(match: re.Match[str]) -> str:
    """As `_without_credential`, for a name inside a value: ``{"password": "Cookie: a=..."}``."""
    named = _CREDENTIAL.fullmatch(match["value"].strip("\\\"'"))
    return match[0] if named is None else _without_value(match)


def _without_value(match: re.Match[str]) -> str:
    if _REDACTED in match["value"].lower():
        return match[0]  # the sender has done it
    return f'{match["name"]}"[redacted:named]"'
