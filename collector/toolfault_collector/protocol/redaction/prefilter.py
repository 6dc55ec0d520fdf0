"""Whether an event may hold a secret: the quick look at its bytes, before any look at its texts.

Most events hold none, and reading each of their texts with `redaction.rules` would cost more than
storing them. Every text with a secret that is recognised there has something that is
found here: a literal, digits in the groups of a card, or forty characters in a row that are no
word. One automaton finds the literals in a pass of some microseconds; a regular expression of as
many branches takes a hundred.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Final

from ahocorasick_rs import BytesAhoCorasick, Implementation

__all__ = ["PREFIXES", "may_hold_secret"]

# What issuers print in front of their tokens, so that scanners find them.
PREFIXES: Final = (
    "sk-", "sk_live_", "rk_live_", "pk_live_", "whsec_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_",
    "github_pat_", "glpat-", "xoxa-", "xoxb-", "xoxp-", "xoxr-", "xoxs-", "ya29.", "GOCSPX-", "SG.",
    "npm_", "pypi-", "dop_v1_", "hf_", "shpat_", "hvs.", "glsa_", "NRAK-", "tf_ingest_", "tf_read_",
)  # fmt: skip
_WORDS: Final = (
    "private key-", "eyj", "hooks.slack", "akia", "asia", "abia", "acca", "aiza", "key-", "dapi",
    "-us", ":aa", "bearer", "basic ", "password", "passwd", "pwd", "secret", "token=", "token:",
    'token"', "token'", "token\\", "token%", "token ", "api_key", "api-key", "apikey", "access_key",
    "access-key", "accesskey", "private_key", "private-key", "privatekey", "authorization",
    "credential", "cookie", "session_key", "session-key", "sessionkey", "dsn", "sk0",
    *(f"sk{letter}" for letter in "abcdef"),
    "%3a%2f%2f", "private%20key-",
)  # fmt: skip
# What a base64 text of a secret holds wherever in it the secret stands. A token of another kind has
# to be the beginning: three characters of it would be three of base64, which any word has.
_ENCODED: Final = (
    "AKIA", "ASIA", "AIza", "ghp_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "sk_live_", "whsec_",
    "-----BEGIN ", "Authorization", "authorization", "Bearer ", "bearer ", "Basic ", "Cookie",
    "password", "Password", "passwd", "secret", "Secret", "token=", "token:", 'token"', "api_key",
    "apikey", "api-key", "postgres", "mysql://", "mongodb", "redis://", "amqp://", "https://",
    "http://", "hooks.slack", "dop_v1_", "npm_", "pypi-", "shpat_", "GOCSPX-", "ya29.", "NRAK-",
    "tf_ingest_", "tf_read_", "glsa_",
)  # fmt: skip
_ENCODED_FIRST: Final = (
    "sk-", "SG.", "hf_", "hvs.", "key-", "dapi", "gho_", "ghu_", "ghs_", "ghr_", "rk_live_",
    "pk_live_", "xoxa-", "xoxr-", "xoxs-", "pwd=", "pwd:", *(f"SK{digit:x}" for digit in range(16)),
)  # fmt: skip

_DIGITS: Final = b"0123456789"
_UPPER: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# Any digit becomes 0, any letter a small one: one pass, as for `bytes.lower`.
_FOLDED: Final = bytes.maketrans(_DIGITS + _UPPER, b"0" * 10 + _UPPER.lower())
# Characters of base64, and what JSON and addresses write for its `/` and `+`.
_RUN_CHARACTERS: Final = _UPPER + _UPPER.lower() + _DIGITS + b"+/\\%"
_IN_RUN: Final = bytes(ord("a") if each in _RUN_CHARACTERS else ord(" ") for each in range(256))
_KEY_RUN: Final = b"a" * 40
_RUN: Final = re.compile(rb"a+")
_CARD: Final = re.compile(rb"(?<!\d)(?:[2-6]\d{3}(?:[ -]?\d{4}){3}|3[47]\d\d[ -]?\d{6}[ -]?\d{5})")
_LONGEST_CARD: Final = 20
# From the :// of an address to the @ behind a name and a password: 301 characters (`rules`), each
# of up to twelve bytes, as JSON may write it.
_LONGEST_LOGIN: Final = 3_700
_LOGIN: Final = re.compile(rb"[^\s/:]*+:[^\s/]++")
_AT: Final = ord("@")


def _base64_of(literal: str, *, shifts: int) -> set[str]:
    """Return what base64 has of *literal* when so many bytes, modulo three, stand before it."""
    forms = set()
    for shift in range(shifts):
        text = base64.b64encode(b"\0" * shift + literal.encode()).decode().rstrip("=")
        # Only characters that are made of the literal alone.
        forms.add(text[-(-shift * 8 // 6) : (shift + len(literal)) * 8 // 6])
    return forms


def _literals() -> list[str]:
    encoded: set[str] = set()
    for literal in _ENCODED:
        encoded |= _base64_of(literal, shifts=3)
    for literal in _ENCODED_FIRST:
        encoded |= _base64_of(literal, shifts=1)
    return [*PREFIXES, *_WORDS, *sorted(each for each in encoded if len(each) >= 4)]


def _folded(literals: list[str]) -> list[bytes]:
    return sorted({literal.encode().translate(_FOLDED) for literal in literals})


# What is no sign by itself: the bytes around say more.
_CARD_GROUPS: Final = (
    "0" * 15, "0000 0000 0000", "0000-0000-0000", "0000 000000 0", "0000-000000-0"
)  # fmt: skip
_DOUBTFUL: Final = [*_folded([*_CARD_GROUPS]), b"@", b"\\u00"]
_SIGNS: Final = [*_DOUBTFUL, *_folded(_literals())]
# As a table of states: half the time of what the library chooses, and it is there once.
_find: Final = BytesAhoCorasick(_SIGNS, implementation=Implementation.DFA).find_matches_as_indexes
_LONGEST_SIGN: Final = max(map(len, _SIGNS))
# The library finds all signs of what it is given; in a text that is full of them the first ends
# the look.
_PIECE: Final = 8_192


def may_hold_secret(raw: bytes) -> bool:
    """Return whether the text *raw* is worth a closer look; most events are not.

    What JSON may write in two ways is looked at in one: a slash may have a backslash before it, and
    any other letter of ASCII may be written as its number, which is a sign by itself.
    """
    raw = raw.replace(b"\\/", b"/")
    folded = raw.translate(_FOLDED)
    behind = 0
    for literal, start, end in _find(folded) if len(folded) <= _PIECE else _in_pieces(folded):
        if literal >= len(_DOUBTFUL):
            return True
        if raw[start] == _AT:
            # Nothing is looked at twice: in neither name nor password is another @.
            found = raw.rfind(b"://", max(behind, start - _LONGEST_LOGIN), start)
            if found >= 0 and _LOGIN.fullmatch(raw, found + 3, start):
                return True
            behind = end
        elif _confirmed(raw, start, end):
            return True
    return _may_hold_key(raw)


def _in_pieces(folded: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield each sign in *folded*, where it begins and where it ends."""
    for at in range(0, len(folded), _PIECE):
        for literal, start, end in _find(folded[at : at + _PIECE + _LONGEST_SIGN]):
            yield literal, at + start, at + end


def _confirmed(raw: bytes, start: int, end: int) -> bool:
    """Return whether what stands between *start* and *end* is a sign of a secret."""
    if raw[start : start + 1] == b"\\":
        return raw[start:end] == b"\\u00"  # a letter may be written as its number
    return _CARD.search(raw, start, end + _LONGEST_CARD) is not None


def _may_hold_key(raw: bytes) -> bool:
    """Return whether forty characters of base64 follow each other that are of every kind."""
    runs = raw.translate(_IN_RUN)
    at = runs.find(_KEY_RUN)
    while at >= 0:
        end = _RUN.match(runs, at).end()  # type: ignore[union-attr]  # it begins there
        run = raw[at:end]
        digits, large = (len(run) - len(run.translate(None, of)) for of in (_DIGITS, _UPPER))
        if digits and large >= 4:
            return True
        at = runs.find(_KEY_RUN, end)
    return False
