"""Whether a text repeats a value: the person never reads what the model sent."""

from __future__ import annotations

import re

from toolfault.errors._words import REDACTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolfault.errors._issue import Issue

__all__ = ["occurs", "says_value", "values_in_repr"]

# Text and numbers inside a representation; text before a colon is a key of the schema.
_TEXT = re.compile(r"'((?:[^'\\]|\\.)*)'(?!:)|\"((?:[^\"\\]|\\.)*)\"(?!:)")
_NUMBER = re.compile(r"(?<![\w.'\"])-?\d+(?:\.\d+)?(?![\w'\"])")
_MOST_VALUES = 50


def values_in_repr(received: str) -> list[str]:
    """The plain values in the representation *received*, itself included."""
    values = [received]
    values += [first or second for first, second in _TEXT.findall(received)]
    values += _NUMBER.findall(received)
    return [value for value in values[:_MOST_VALUES] if value.strip()]


def says_value(text: str, issue: Issue) -> bool:
    """Whether *text* repeats what was received for *issue*."""
    received = issue.received
    if not received or received == REDACTED:
        return False
    return any(occurs(value, text) for value in values_in_repr(received))


def occurs(value: str, text: str) -> bool:
    """Whether *value* stands in *text* by itself, not inside a longer word or number."""
    start = text.find(value)
    while start >= 0:
        end = start + len(value)
        before = text[start - 1 : start]
        after = text[end : end + 1]
        if not (_wordish(before) and _wordish(value[:1])) and not (
            _wordish(after) and _wordish(value[-1:])
        ):
            return True
        start = text.find(value, start + 1)
    return False


def _wordish(character: str) -> bool:
    return character.isalnum() or character == "_"
