"""Deciding by its name whether a value is a secret (contract.md 3.6)."""

from __future__ import annotations

import re
from itertools import pairwise

__all__ = ["key_words", "names_secret"]

_ANYWHERE = frozenset(
    {
        "password",
        "passwords",
        "passwd",
        "passphrase",
        "pwd",
        "secret",
        "secrets",
        "credential",
        "credentials",
        "apikey",
        "apikeys",
        "authorization",
        "jwt",
        "jwts",
    }
)
_LAST = frozenset(
    {
        "token",
        "auth",
        "cookie",
        "cookies",
        "bearer",
        "otp",
        "ssn",
        "cvv",
        # The same names written as one word.
        "accesstoken",
        "apitoken",
        "authtoken",
        "bearertoken",
        "idtoken",
        "refreshtoken",
        "sessionid",
        "sessiontoken",
        "jsessionid",
        "phpsessid",
    }
)
_ADJACENT = frozenset(
    {
        ("api", "key"),
        ("api", "keys"),
        ("access", "key"),
        ("access", "keys"),
        ("private", "key"),
        ("private", "keys"),
        ("secret", "key"),
        ("session", "id"),
        ("session", "key"),
    }
)
_ENDINGS = ("password", "passwd", "passphrase", "apikey", "secretkey", "accesskey", "privatekey")

# Acronym before a capitalised word, capitalised or lower word, acronym; digits only separate.
_WORD = re.compile("[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_LONGEST_KEY = 256


def key_words(key: str) -> tuple[str, ...]:
    """The lower-case words of *key*: `X-Api-Key` and `xApiKey` are `("x", "api", "key")`."""
    key = key[:_LONGEST_KEY]
    if not key.isascii():
        import unicodedata

        key = unicodedata.normalize("NFKC", key)
    return tuple(word.lower() for word in _WORD.findall(key))


def names_secret(words: tuple[str, ...]) -> bool:
    """Whether a key of these *words* names a secret.

    `max_tokens`, `token_limit`, `cookie_profile`, `author` and `bypass` do not;
    `apiKey`, `X-Api-Key`, `client_secret`, `access_token`, `cookies` and `auth` do.
    """
    if not words:
        return False
    if words[-1] in _LAST or not _ANYWHERE.isdisjoint(words):
        return True
    if any(word.endswith(_ENDINGS) for word in words):
        return True
    return any(pair in _ADJACENT for pair in pairwise(words))
