"""Near misses of senders that name none: what an issue itself tells of the rejected value.

The SDK tries its remedies on the value and sends their names. Imported transcripts and older
senders say only what was expected and, cut and redacted, what was received; this reads the same
remedies off those two texts, where they leave no doubt.
"""

from __future__ import annotations

import ast
import re
from typing import Final

__all__ = ["inferred_remedies", "is_stand_in"]

_TRUTH: Final = frozenset({"true", "false", "yes", "no", "on", "off", "1", "0"})
_INTEGER: Final = re.compile(r"\s*[+-]?\d{1,18}\s*")
_NUMBER: Final = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?\s*")
# Only patterns that are plainly about the case of letters are evaluated; none of a sender's is run.
_CASED: Final = re.compile(r"pattern \^\[(A-Z|a-z)\](?:\{(\d{1,3})(?:,(\d{1,3}))?\}|\+)\$")
_LONGEST: Final = 2_000


def inferred_remedies(
    expected: str | None, received: str | None, received_type: str | None
) -> tuple[str, ...]:
    """Return the remedies that would have accepted the value, as far as the texts tell.

    Args:
        expected: What the field takes, in the words of the protocol: ``boolean``, ``array`` ...
        received: Representation of the rejected value, perhaps cut.
        received_type: Name of its type.
    """
    if not expected or not received or len(received) > _LONGEST:
        return ()
    if is_stand_in(received, received_type):
        return ()  # an SDK that sends no values has tried its remedies itself
    if expected == "array" and received_type not in {"list", "tuple", "NoneType", "dict"}:
        text = _text(received)
        looks_like_json = text is not None and text.lstrip().startswith("[")
        return ("json_from_string",) if looks_like_json else ("wrap_in_list",)
    text = _text(received)
    return () if text is None else _of_text(expected, text)


def is_stand_in(received: str | None, received_type: str | None) -> bool:
    """Return whether *received* is no value but its type and size: `str, 18 characters`, `int`.

    So senders write that keep the values of arguments to themselves (`docs/protocol.md`).
    """
    if not received or not received_type:
        return False
    return received == received_type or received.startswith(f"{received_type}, ")


def _of_text(expected: str, text: str) -> tuple[str, ...]:
    if expected == "boolean":
        return ("bool_from_string",) if text.strip().lower() in _TRUTH else ()
    if expected == "integer":
        return ("int_from_string",) if _INTEGER.fullmatch(text) else ()
    if expected == "number":
        return ("float_from_string",) if _NUMBER.fullmatch(text) else ()
    if expected == "object":
        return ("json_from_string",) if text.lstrip().startswith("{") else ()
    return ("fold_case",) if _differs_in_case(expected, text) else ()


def _text(received: str) -> str | None:
    """Return the text that *received* is the representation of; None if it is of something else."""
    if received[:1] not in {"'", '"'}:
        return None
    quote, inner = received[0], received[1:-1]
    if received[-1] == quote and received.isprintable() and not {quote, "\\"} & set(inner):
        return inner  # nothing in it is written otherwise than it is; so it is nearly always
    try:
        value = ast.literal_eval(received)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return received[1:]  # a representation that was cut
    return value if isinstance(value, str) else None


def _differs_in_case(expected: str, text: str) -> bool:
    pattern = _CASED.fullmatch(expected)
    if pattern is None or not text.isascii() or not text.isalpha():
        return False
    low = int(pattern[2]) if pattern[2] else 1
    high = int(pattern[3]) if pattern[3] else (low if pattern[2] else len(text))
    folded = text.upper() if pattern[1] == "A-Z" else text.lower()
    return low <= len(text) <= high and folded != text
