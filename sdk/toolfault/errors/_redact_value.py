"""Redaction of JSON that stands in a text: by key and by text, keeping remarks and schemas."""

from __future__ import annotations

from toolfault.errors._judge import is_sentence
from toolfault.errors._policy import is_secret_key, names_a_secret, shown_anyway
from toolfault.errors._redact import redact_text
from toolfault.errors._words import REDACTED

__all__ = ["redact_json"]

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
