"""pydantic's own words, in one place.

The contract's texts were taken from pydantic 2.13. Codes, layout and fixed sentences are ours and
may not move; these sentences are pydantic's and may. Each is asked of the installed version here,
so a new wording changes the expectation and nothing else.
"""

from __future__ import annotations

from typing import Annotated, Any

from annotated_types import Le, MinLen
from pydantic import TypeAdapter, ValidationError


def _said(annotation: Any, value: object, *, strict: bool = False) -> str:
    try:
        TypeAdapter(annotation).validate_python(value, strict=strict)
    except ValidationError as error:
        return str(error.errors()[0]["msg"])
    raise AssertionError(f"{value!r} was accepted")


WORDS = {
    "Input should be a valid boolean": _said(bool, "true", strict=True),
    "Input should be a valid integer, unable to parse string as an integer": _said(int, "x"),
    "Input should be a valid integer": _said(int, "80", strict=True),
    "Input should be less than or equal to 65535": _said(Annotated[int, Le(65535)], 99999),
    "String should have at least 8 characters": _said(Annotated[str, MinLen(8)], "abc"),
}


def in_todays_words(told: Any) -> Any:
    """Return expectations with every sentence of pydantic as the installed version says it."""
    if isinstance(told, dict):
        return {key: in_todays_words(item) for key, item in told.items()}
    if isinstance(told, list):
        return [in_todays_words(item) for item in told]
    if isinstance(told, str):
        for written, said in WORDS.items():
            if written in told:
                return told.replace(written, said)
    return told
