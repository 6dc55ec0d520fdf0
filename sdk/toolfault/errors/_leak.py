"""Whether a text repeats a value: the person never reads what the model sent."""

from __future__ import annotations

import re

from toolfault.errors._grammar import is_stand_in
from toolfault.errors._words import REDACTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolfault.errors._issue import Issue

__all__ = ["STANDARD_WORDS", "occurs", "says_value", "values_in_repr", "wordish"]

# Text and numbers inside a representation; text before a colon is a key of the schema.
_TEXT = re.compile(r"(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")(:?)")
_NUMBER = re.compile(r"(?<![\w.'\"])-?\d+(?:\.\d+)?(?![\w'\"])")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_WORD = re.compile(r"[A-Za-z]+")
_MOST_VALUES = 50

# The words that validation libraries and our own checks say in any case ("Input should be a valid
# integer"): standing there unquoted they tell nobody that the model sent `a` or `integer`. Taken
# from the message templates of pydantic-core; a test compares.
_STANDARD_TEXT = """
    a after an any are argument arguments array as ascii assertion at attribute be before boolean
    but byte bytearray bytes callable cannot character characters check complex contain counter
    cyclic data date dates datetime datetimes dd decimal default depth deque detected dictionary
    digit digits discriminator docs does duration e equal error exact exceeded expected extra
    extract extracting factory failed field fields finite float following for format found
    fraction fractional from frozen frozendict frozenset functions future g got greater has
    hashable have html https in info input inputs instance instead integer interpret invalid is
    item items iterable iterating json jsonorpython keys keyword least length less library list
    literal mapping match maximum missing mm more most multiple must no none not null number
    object occurred of offset one only or ordereddict org over parameter parse part past pattern
    permitted place point positional provided python raw recursion reference required rules scheme
    sentinel set should size str strict string strings subclass syntax tag tags than the time
    timedelta timezone to tokens total tuple unable unexpected unicode url use uses using uuid
    valid validated validating validation validator value values version violated when with yyyy
    zero
"""
STANDARD_WORDS = frozenset(_STANDARD_TEXT.split())


def values_in_repr(received: str) -> list[str]:
    """The plain values in the representation *received*, itself included."""
    values = [received]
    values += [first or second for first, second, colon in _TEXT.findall(received) if not colon]
    values += _NUMBER.findall(received)
    return [value for value in values[:_MOST_VALUES] if value.strip()]


def says_value(text: str, issue: Issue) -> bool:
    """Whether *text* repeats what was received for *issue*."""
    received = issue.received
    if not received or received == REDACTED:
        return False
    if is_stand_in(received, issue.received_type):
        return f"<{received}>" in text
    spoken = _told_values(text)
    return any(
        occurs(value, spoken if value.isalpha() else text) for value in values_in_repr(received)
    )


def _told_values(text: str) -> str:
    """*text*, or only what it quotes where all its other words are standard ones."""
    around = _QUOTED.sub(" ", text)
    if all(word.lower() in STANDARD_WORDS for word in _WORD.findall(around)):
        return " ".join(_QUOTED.findall(text))
    return text


def occurs(value: str, text: str) -> bool:
    """Whether *value* stands in *text* by itself, not inside a longer word or number."""
    start = text.find(value)
    while start >= 0:
        end = start + len(value)
        before = text[start - 1 : start]
        after = text[end : end + 1]
        if not (wordish(before) and wordish(value[:1])) and not (
            wordish(after) and wordish(value[-1:])
        ):
            return True
        start = text.find(value, start + 1)
    return False


def wordish(character: str) -> bool:
    return character.isalnum() or character == "_"
