"""Removal of secrets from text that is kept for people to look at: the second net.

The SDK cleans at the source, before anything leaves the agent, with far more context than there is
here (`toolfault.errors`). This catches what other senders forgot: tokens that are recognised by
their shape, credentials in URLs, and values whose name says that they are secret. Secrets that
are encoded, or that look like any other word, pass; and what has been cleaned stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ahocorasick_rs import BytesAhoCorasick

__all__ = ["may_hold_secret", "redact", "redact_bluntly", "redact_value"]

# What issuers print in front of their tokens, so that scanners find them.
_PREFIXES: Final = (
    "sk-", "sk_live_", "rk_live_", "pk_live_", "whsec_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_",
    "github_pat_", "glpat-", "xoxa-", "xoxb-", "xoxp-", "xoxr-", "xoxs-", "ya29.", "GOCSPX-", "SG.",
    "npm_", "pypi-", "dop_v1_", "hf_", "shpat_", "hvs.", "glsa_", "NRAK-", "tf_ingest_", "tf_read_",
)  # fmt: skip
# Possessive and bounded, so that no text costs more than a few steps a character.
_SHAPED: Final = re.compile(
    r"""
      (?P<pem>-----BEGIN[ ][A-Z ]{0,40}PRIVATE[ ]KEY-----
        (?:[^-]|-(?!----END)){0,20000}+(?:-----END[ ][A-Z ]{0,40}+-----)?+)
    | (?P<jwt>(?<![\w-])eyJ[\w-]{8,2000}+\.[\w-]{8,4000}+\.[\w-]*+)
    | (?P<key>(?<![A-Za-z0-9])(?:
          (?:AKIA|ASIA)[0-9A-Z]{16}\b
        | AIza[\w-]{30,}+
        | (?:SK|key-|dapi)[0-9a-f]{32}\b
        | [0-9a-f]{32}-us\d{1,2}\b
        | \d{8,10}:AA[\w-]{32,}+
        | (?<=hooks\.slack\.com/)services/[\w/]{20,}+
        | (?:"""
    + "|".join(re.escape(prefix) for prefix in _PREFIXES)
    + r""")[\w.-]{12,}+))
    | (?P<bearer>\b(?:[Bb]earer|[Bb]asic)\s{1,3}[\w.~+/=-]{8,}+)
    | (?P<url>(?<=://)[^\s/@:"'\[\]]{0,100}+:[^\s/@"'\[\]]{1,200}+(?=@))
    """,
    re.VERBOSE,
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
# What a value must have to be taken for a credential where only prose stands around it. "password:
# must be given" and "token = get_token(user)" are ordinary errors, and most valuable as they are.
_CREDENTIAL: Final = re.compile(r"(?=.{0,200}\d)(?=.{0,200}[^\W\d_])[^\s()\[\]{}<>]{6,}")
_JSON_TEXT: Final = re.compile(r"""\\?["'][^\s"'\\()\[\]{}<>]{4,}\\?["']""")
_REDACTED: Final = "[redacted"

# Any text with a secret that is recognised here has one of these, in lower case. One automaton
# finds them in a pass of 3 microseconds; a regular expression of as many branches takes a hundred.
_HINTS: Final = BytesAhoCorasick(
    [
        literal.encode()
        for literal in (
            *(prefix.lower() for prefix in _PREFIXES),
            "private key-", "eyj", "hooks.slack", "akia", "asia", "aiza", "key-", "dapi", "-us",
            ":aa", "bearer", "basic ", "password", "passwd", "pwd", "secret", "token=", "token:",
            'token"', "token'", "token\\", "token ", "api_key", "api-key", "apikey", "access_key",
            "access-key", "accesskey", "private_key", "private-key", "privatekey", "authorization",
            "credential", "cookie", "session_key", "session-key", "sessionkey", "dsn",
            *(f"sk{digit:x}" for digit in range(16)),
            "\\u00",  # a letter may be written as its number
        )
    ]
)  # fmt: skip


def may_hold_secret(raw: bytes) -> bool:
    """Return whether the JSON text *raw* is worth a closer look; most events are not."""
    if _HINTS.find_matches_as_indexes(raw.lower()):
        return True
    return b"://" in raw and b"@" in raw


def redact(text: str) -> str:
    """Return *text* with what is recognised as a secret replaced by ``[redacted:kind]``."""
    text = _SHAPED.sub(_without_token, text)
    return _NAMED.sub(_without_credential, text)


def redact_bluntly(text: str) -> str:
    """Return *text* without anything that stands where a secret could.

    For what was refused: nobody knows what it is, and no sentence in it is worth a risk.
    """
    text = _SHAPED.sub(_without_token, text)
    return _NAMED.sub(_without_value, text)


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
    return value


def _tells_something(value: str) -> bool:
    return len(value) >= 4 and _REDACTED not in value.lower() and value.lower() not in _NO_VALUES


_HAS_DIGIT: Final = re.compile(r"[\d=]")
_NO_VALUES: Final = frozenset({"none", "null", "true", "false", "missing", "undefined"})


def _without_token(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind in ("key", "bearer") and not _HAS_DIGIT.search(match[0]):
        return match[0]  # "Bearer authentication", "sk-learning-rate": words
    return f"[redacted:{kind}]"


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
