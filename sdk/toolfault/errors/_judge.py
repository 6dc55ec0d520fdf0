"""Telling a secret value from prose, code and placeholders that follow a secret key.

`password: must be at least 8 characters`, `Unexpected token: identifier` and
`password=password` in a traceback are ordinary errors and have to survive.
"""

from __future__ import annotations

import re

from toolfault.errors._keys import key_words

__all__ = ["is_sentence", "is_value", "is_weak_key", "is_weak_value", "reads_as_prose"]

# Words that follow a key in prose, and type names that follow it in signatures.
_PROSE_WORDS = """a all already an and any are argument at bad be blank but can cannot changed
    characters check contains could default denied did disabled does empty enabled error exceeded
    expected expired expires failed failure field for forbidden format found from given has have
    if in incorrect input invalid is it its length limit malformed match may mismatch missing must
    need needs no none not null of off ok on only optional or parameter permission please provide
    rejected required requires revoked should some string that the this to too true false type
    unauthorized undefined unexpected unknown unset unsupported use valid value values was were
    when with wrong you your
    str int float bool bytes dict list tuple set object number integer boolean array any secretstr
    optional[str] literal union self cls config settings eof identifier"""
_PROSE = frozenset(_PROSE_WORDS.split())
_SENTENCE = re.compile(
    r"(?i)(?:this (?:field|value)|field |string (?:should|too)|input should|value |ensure |must |"
    r"should |is |not a |not |required|missing|invalid|expected|unexpected parameter|too )"
)
# A schema printed where a value could stand: {"type": "string"}.
_SCHEMA = re.compile(r"type[\"']?\s*:\s*[\"']?(?:string|number|integer|boolean|object|array|null)")
_CODE = re.compile(
    r"[A-Za-z_][\w.]*[(\[]|(?:self|cls|os|config|settings|args|kwargs|env|process)\.[\w.]+$"
)
_PLACEHOLDER = re.compile(
    r"[*•x.\-]{3,}$|<[\w \-]*>|\$?\{[\w.]*\}|\$[A-Z_]+$|%s$|%\(\w+\)s$|\[REDACTED\]|\.\.\.|…|"
    r"\((?:string|str|number|int|integer|bool|boolean|object|array|any)\)|(?i:your)[_\- ]|"
    r"(?i:bearer|basic|token) (?:\$?\{|<|%s|\[REDACTED\])"
)
_DIGIT = re.compile(r"\d")
_WEAK_WORDS = frozenset({"token", "auth", "cookie", "cookies", "bearer", "sessionid"})
_WEAK_PAIRS = frozenset({("session", "id"), ("session", "key")})
# `Unexpected token: x` is about a token of a language.
_LANGUAGE = ("nexpected", "nvalid", "llegal", "nrecognized", "nknown", "ext", "urrent", "revious")


def is_weak_key(key: str) -> bool:
    """Whether *key* is also a word of ordinary errors: `token`, `auth`, `cookie`, `session id`."""
    words = key_words(key)
    return (len(words) == 1 and words[0] in _WEAK_WORDS) or words in _WEAK_PAIRS


def is_sentence(value: object) -> bool:
    """Whether JSON *value* under a secret key is a remark about it, or its schema."""
    if type(value) is str:
        return " " in value and _SENTENCE.match(value) is not None
    if type(value) is list:
        return bool(value) and all(is_sentence(item) for item in value)
    return type(value) is dict and _SCHEMA.match(f"type: {value.get('type')}") is not None


def reads_as_prose(value: str) -> bool:
    """Whether the inside of quotes or brackets is a remark, a schema or a placeholder."""
    inner = value.strip("\"' ")
    if not inner or _PLACEHOLDER.match(inner) or _SENTENCE.match(inner) or _SCHEMA.match(inner):
        return True
    return inner.lower() in _PROSE


def is_value(value: str, *, key: str, before: str, sep: str, quoted: bool) -> bool:
    """Whether *value*, written without quotes, is the secret of *key*.

    Args:
        value: The word after the key.
        key: The secret key.
        before: The text before the key.
        sep: What stands between key and value.
        quoted: Whether the key stands in quotes: then this is data, not prose.
    """
    plain = value.strip(".!?:`*\\").lower()
    if not plain or plain in _PROSE or _PLACEHOLDER.match(value):
        return False
    if quoted:
        # Numbers, booleans and null are never redacted by key.
        return not plain.replace(".", "", 1).lstrip("-").isdigit()
    if "\n" in sep or ("=" in sep and (_CODE.match(value) or _repeats(value, key))):
        return False
    return not is_weak_key(key) or is_weak_value(value, before=before, sep=sep)


def _repeats(value: str, key: str) -> bool:
    """Whether an assignment hands on a variable of the same name: `password=password`."""
    return value.strip("(),;") == key.rpartition(".")[2]


def is_weak_value(value: str, *, before: str, sep: str) -> bool:
    """Whether what follows a weak key looks like a credential rather than like the next word."""
    has_digit = _DIGIT.search(value) is not None
    if before.rstrip().endswith(_LANGUAGE):
        return len(value) >= 20 and has_digit
    if value.isdigit() and len(value) < 6:
        return False
    if not sep.endswith(" "):
        return True
    mixed = not (value.islower() or value.istitle() or value.isupper())
    return has_digit or len(value) >= 20 or mixed
