"""Repairing what models commonly send: one function per mistake.

Every function returns a value it does not apply to unchanged, so that validation reports it with
everything else; none turns an unknown text into `False` (contract.md 2.3.2).
"""

from __future__ import annotations

from toolfault.coerce._json import coerce_json, container_from_json
from toolfault.errors._types import is_a, is_any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "COERCERS",
    "coerce_bool",
    "coerce_date",
    "coerce_enum",
    "coerce_float",
    "coerce_int",
    "coerce_json",
    "coerce_list",
    "coerce_strip",
]

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})
# Python itself refuses longer numbers since 3.10.7; older ones would take quadratic time.
_MOST_DIGITS = 4_300
_MOST_CHOICES = 1_000
_LONGEST_DATE = 40


def _text(value: object) -> str | None:
    """Return text as an exact str, None for anything else.

    What a class derived from str has overridden is not asked: `int` even prints what it refuses.
    """
    return str.__str__(value) if is_a(value, str) else None


def coerce_bool(value: object) -> object:
    """`"true"`, `"1"`, `"yes"`, `"on"` as True and their opposites as False, in any case.

    Everything else, `""` and `" true "` included, is returned unchanged.
    """
    text = _text(value)
    if text is not None:
        lowered = text.lower()
        if lowered in _TRUE:
            return True
        if lowered in _FALSE:
            return False
    return value


def coerce_int(value: object) -> object:
    """Text that `int()` accepts as an integer (`" 80 "`, `"-456"`); else unchanged."""
    text = _text(value)
    if text is not None and len(text) <= _MOST_DIGITS:
        try:
            return int(text)
        except ValueError:
            return value
    return value


def coerce_float(value: object) -> object:
    """Text of a finite number as a float (`"1.5"`, `"1e3"`); else unchanged.

    `"nan"` and `"inf"` stay text: JSON has no such numbers.
    """
    text = _text(value)
    if text is not None and len(text) <= _MOST_DIGITS:
        try:
            number = float(text)
        except ValueError:
            return value
        if number - number == 0:
            return number
    return value


def coerce_list(value: object) -> object:
    """A single value as a list of one, and a JSON array in a text as that list.

    None, and what is a list, tuple or set already, is returned unchanged.
    """
    if value is None or is_any(value, list, tuple, set, frozenset):
        return value
    text = _text(value)
    if text is not None and text.lstrip().startswith("["):
        parsed = container_from_json(text, list)
        if parsed is not None:
            return parsed
    return [value]


def coerce_strip(value: object) -> object:
    """Text without white space around it; anything else unchanged."""
    text = _text(value)
    return value if text is None else text.strip()


def coerce_enum(value: object, choices: type | Iterable[object]) -> object:
    """The one choice that differs from *value* by case, separators or outer white space only.

    Args:
        value: What the model sent.
        choices: An `Enum` class (the member is returned, also by its name) or the allowed texts.

    Returns:
        The choice, or *value* unchanged when it is one already or no single one fits.
    """
    text = _text(value)
    if text is None:
        return value
    wanted = _folded(text)
    found: list[object] = []
    for name, choice in _named_choices(choices):
        if name == text:
            return choice if isinstance(choices, type) else value
        if _folded(name) == wanted and not any(choice is one for one in found):
            found.append(choice)
    return found[0] if len(found) == 1 else value


def _named_choices(choices: type | Iterable[object]) -> list[tuple[str, object]]:
    named: list[tuple[str, object]] = []
    if isinstance(choices, type):
        members = getattr(choices, "__members__", {})
        named += [(m.value, m) for m in members.values() if isinstance(m.value, str)]
        named += members.items()
    else:
        named += [(choice, choice) for choice in choices if isinstance(choice, str)]
    return named[:_MOST_CHOICES]


def _folded(text: str) -> str:
    return text[:256].strip().casefold().replace("-", "_").replace(" ", "_")


def coerce_date(value: object) -> object:
    """Text of one unmistakable calendar day as a `datetime.date`; else unchanged.

    ISO 8601 dates and date-times, year first with `/` or `.`, and English month names are
    understood. `01/02/2024` stays text: it is two different days on two continents.
    """
    text = (_text(value) or "").strip()
    if not 8 <= len(text) <= _LONGEST_DATE:
        return value
    from toolfault.coerce._dates import day_of

    day = day_of(text)
    return value if day is None else day


def _object_from_text(value: object) -> object:
    return _container(value, dict)


def _array_from_text(value: object) -> object:
    return _container(value, list)


def _container(value: object, kind: type) -> object:
    """A JSON text of *kind* parsed; other texts unchanged, broken ones of that kind refused."""
    text = _text(value)
    if text is None or text.lstrip()[:1] not in {"{", "["}:
        return value
    parsed = coerce_json(text)
    return parsed if isinstance(parsed, kind) else value


COERCERS: dict[str, Callable[[object], object]] = {
    "boolean": coerce_bool,
    "integer": coerce_int,
    "number": coerce_float,
    "object": _object_from_text,
    "array": _array_from_text,
}
"""What `coerce=True` does for a parameter of each JSON type; texts stay as they are."""
