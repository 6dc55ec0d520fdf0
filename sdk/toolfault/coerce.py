"""Repairs for what models commonly send: as functions, as annotations, and as near misses.

`LLMBool`, `LLMInt`, `LLMFloat`, `LLMJson`, `LLMStr`, `LLMDate` and `LLMList[T]` are `Annotated`
types for pydantic models, dataclasses and plain functions. A near miss is a remedy that would have
accepted a rejected value: only its name leaves the process, never the value.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from itertools import islice
from typing import Annotated, Any, TypeVar, Union

from toolfault.errors import Issue
from toolfault.errors._cleaning import strict_json
from toolfault.errors._hints import closest
from toolfault.errors._types import is_a, is_any

__all__ = [
    "COERCERS",
    "REMEDIES",
    "Coercion",
    "InvalidJSONError",
    "LLMBool",
    "LLMDate",
    "LLMFloat",
    "LLMInt",
    "LLMJson",
    "LLMList",
    "LLMStr",
    "coerce_bool",
    "coerce_date",
    "coerce_enum",
    "coerce_float",
    "coerce_int",
    "coerce_json",
    "coerce_list",
    "coerce_strip",
    "container_from_json",
    "near_misses",
]


class Coercion:
    """An annotation that repairs a value before it is validated.

    `Annotated[int, Coercion("integer", coerce_int)]` works in pydantic models (without this
    package importing pydantic) and in the parameters of a tool function.

    Args:
        name: What the value becomes, in JSON words.
        coerce: The function; it returns what it does not apply to unchanged.
    """

    __slots__ = ("coerce", "name")

    def __init__(self, name: str, coerce: Callable[[object], object]) -> None:
        self.name = name
        self.coerce = coerce

    def __get_pydantic_core_schema__(
        self, source: object, handler: Callable[[object], dict[str, object]]
    ) -> dict[str, object]:
        # The plain form of `no_info_before_validator_function` of pydantic-core's schemas.
        return {
            "type": "function-before",
            "function": {"type": "no-info", "function": self.coerce},
            "schema": handler(source),
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Coercion):
            return NotImplemented
        return self.name == other.name and self.coerce is other.coerce

    def __hash__(self) -> int:
        return hash((self.name, self.coerce))

    def __repr__(self) -> str:
        return f"Coercion({self.name!r})"


class InvalidJSONError(ValueError):
    """A text that should hold JSON does not; says what the parser expected."""


def coerce_json(value: object) -> object:
    """A text that holds a JSON object or array as that object or array.

    Anything but text is returned unchanged, and so is the text of a bare number, string,
    boolean or null: it is not what a complex parameter needs, and validation will say so.

    Raises:
        InvalidJSONError: The text is not JSON. Where pydantic is loaded, its own
            `PydanticCustomError` of type `malformed_json` is raised, so that the error joins
            all others of the model. Both are `ValueError`s that read `Invalid JSON: ...`.
    """
    if not is_a(value, str):
        return value
    try:
        parsed = strict_json(str.__str__(value))
    except json.JSONDecodeError as exc:
        raise _invalid(exc.msg) from None
    return parsed if isinstance(parsed, (dict, list)) else value


def container_from_json(text: str, kind: type) -> object | None:
    """*text* parsed when it is JSON of *kind* (`dict` or `list`), else None; never raises."""
    try:
        parsed = strict_json(text)
    except json.JSONDecodeError:
        return None
    return parsed if type(parsed) is kind else None


def _invalid(reason: str) -> ValueError:
    core = sys.modules.get("pydantic_core")
    custom = getattr(core, "PydanticCustomError", None)
    if custom is not None:
        error: ValueError = custom("malformed_json", "Invalid JSON: {error}", {"error": reason})
        return error
    return InvalidJSONError(f"Invalid JSON: {reason}")


_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sep sept",
            "october oct",
            "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}
_YEAR_FIRST = re.compile(r"(\d{4})[/.\-](\d{1,2})[/.\-](\d{1,2})$", re.ASCII)
_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})$", re.ASCII)
_DAY_MONTH = re.compile(
    r"(\d{1,2})(?:st|nd|rd|th)?[ \-]([A-Za-z]{3,9})\.?,?[ \-](\d{4})$", re.ASCII
)
_MONTH_DAY = re.compile(r"([A-Za-z]{3,9})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})$", re.ASCII)


def _day_of(text: str) -> date | None:
    """The day that *text* means, or None when it is not certain."""
    for pattern in (_YEAR_FIRST, _COMPACT):
        match = pattern.match(text)
        if match:
            return _day(int(match[1]), int(match[2]), int(match[3]))
    match = _DAY_MONTH.match(text)
    if match:
        return _day(int(match[3]), _MONTHS.get(match[2].lower(), 0), int(match[1]))
    match = _MONTH_DAY.match(text)
    if match:
        return _day(int(match[3]), _MONTHS.get(match[1].lower(), 0), int(match[2]))
    if len(text) > 10 and text[10] in "T ":
        try:
            # Python 3.10 does not read the `Z` of ISO 8601.
            return datetime.fromisoformat(text.replace("Z", "+00:00")).date()
        except ValueError:
            return None
    return None


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


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
    day = _day_of(text)
    return value if day is None else day


def _container_of(kind: type) -> Callable[[object], object]:
    """A coercer of JSON texts of *kind*; everything else stays unchanged."""

    def coerce(value: object) -> object:
        text = _text(value)
        parsed = None if text is None else container_from_json(text, kind)
        return value if parsed is None else parsed

    return coerce


COERCERS: dict[str, Callable[[object], object]] = {
    "boolean": coerce_bool,
    "integer": coerce_int,
    "number": coerce_float,
    "object": _container_of(dict),
    "array": _container_of(list),
}
"""What `coerce=True` does for a parameter of each JSON type; texts stay as they are."""


_Item = TypeVar("_Item")

LLMBool = Annotated[bool, Coercion("boolean", coerce_bool)]
LLMInt = Annotated[int, Coercion("integer", coerce_int)]
LLMFloat = Annotated[float, Coercion("number", coerce_float)]
LLMStr = Annotated[str, Coercion("string", coerce_strip)]
LLMDate = Annotated[date, Coercion("date", coerce_date)]
LLMJson = Annotated[Union[dict[str, Any], list[Any]], Coercion("object", coerce_json)]  # noqa: UP007
LLMList = Annotated[list[_Item], Coercion("array", coerce_list)]


REMEDIES = (
    "bool_from_string",
    "int_from_string",
    "float_from_string",
    "json_from_string",
    "wrap_in_list",
    "strip",
    "fold_case",
    "close_choice",
    "alias",
    "clamp",
    "date_from_string",
)
"""The names of all remedies; an open set on the wire."""

_BUDGET = 0.002
_LONGEST_TEXT = 10_000
_MOST_TRIED = 500
_BOUND = re.compile(r"(<=|<|>=|>) (-?\d+(?:\.\d+)?)$")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'")


def near_misses(
    value: object,
    issue: Issue,
    *,
    choices: Iterable[object] | None = None,
) -> tuple[str, ...]:
    """The names of the remedies that would have accepted *value*.

    Args:
        value: The rejected value, as the model sent it. Objects other than JSON values and texts
            beyond 10,000 characters have no near miss.
        issue: What was wrong with it.
        choices: The values the field takes, by default those the issue expected; for an unexpected
            field, the names of the fields that may have been meant.

    Returns:
        Names out of `REMEDIES`, in their order; empty when no remedy helps. What is not decided
        within two milliseconds is left out. Never raises.
    """
    try:
        if choices is None and issue.code.value == "invalid_choice":
            choices = _QUOTED.findall(issue.expected or "")
        found = _tried(value, issue, list(islice(choices or (), _MOST_TRIED)))
        return tuple(name for name in REMEDIES if name in found)
    except Exception:  # noqa: BLE001 - advice must never get in the way of the failure itself
        return ()


def _tried(value: object, issue: Issue, choices: Sequence[object]) -> set[str]:
    found: set[str] = set()
    if type(value) is str and len(value) > _LONGEST_TEXT:
        return found
    # The time of this thread alone: a busy machine must not change the answer. Asking for it takes
    # longer than most remedies, so it is asked where the clock on the wall says that it may be up.
    begun, wall = time.thread_time(), time.perf_counter()
    for remedy in _PROBES:
        if time.perf_counter() - wall > _BUDGET and time.thread_time() - begun > _BUDGET:
            break
        found.update(remedy(value, issue, choices))
    return found


def _from_text(value: object, issue: Issue, choices: Sequence[object]) -> Sequence[str]:
    """Booleans, numbers and dates written as text."""
    kinds: dict[str, tuple[str, Callable[[object], object], type]] = {
        "boolean": ("bool_from_string", coerce_bool, bool),
        "integer": ("int_from_string", coerce_int, int),
        "number": ("float_from_string", coerce_float, float),
    }
    if type(value) is not str:
        return ()
    expected = issue.expected or ""
    if expected.startswith("date"):
        return () if coerce_date(value) is value else ("date_from_string",)
    kind = kinds.get(expected)
    if kind is None:
        return ()
    name, coerce, wanted = kind
    remedies: tuple[str, ...] = (name,)
    repaired = coerce(value)
    if type(repaired) is not wanted:
        remedies = (name, "strip")
        repaired = coerce(value.strip())
    if type(repaired) is not wanted:
        return ()
    if choices and issue.code.value != "unknown_field":
        is_one = any(type(choice) is wanted and choice == repaired for choice in choices)
        return remedies if is_one else ()
    return remedies


def _from_json(value: object, issue: Issue, _: Sequence[object]) -> Sequence[str]:
    """Objects and arrays written as JSON text."""
    if type(value) is not str or issue.expected not in {"object", "array"}:
        return ()
    kind = dict if issue.expected == "object" else list
    return () if container_from_json(value, kind) is None else ("json_from_string",)


def _wrapped(value: object, issue: Issue, _: Sequence[object]) -> Sequence[str]:
    """A single value where a list of them is wanted."""
    if issue.expected != "array" or value is None or type(value) in (list, tuple, set, frozenset):
        return ()
    if type(value) is str and value.lstrip()[:1] == "[":
        return ()
    return ("wrap_in_list",)


def _chosen(value: object, issue: Issue, choices: Sequence[object]) -> Sequence[str]:
    """A choice but for white space, case or a slip of the pen."""
    if type(value) is not str or issue.code.value == "unknown_field":
        return ()
    texts = [choice for choice in choices if type(choice) is str]
    stripped = value.strip()
    if stripped != value and stripped in texts:
        return ("strip",)
    folded = stripped.casefold()
    if sum(choice.casefold() == folded for choice in texts) == 1:
        return ("fold_case",) if stripped == value else ("strip", "fold_case")
    return ("close_choice",) if closest(value, texts) else ()


def _renamed(_: object, issue: Issue, choices: Sequence[object]) -> Sequence[str]:
    """An unexpected field whose name is close to one that is missing."""
    if issue.code.value != "unknown_field":
        return ()
    name = str(issue.loc[-1]) if issue.loc else issue.field
    names = [choice for choice in choices if type(choice) is str and choice != name]
    return ("alias",) if closest(name, names) else ()


def _clamped(value: object, issue: Issue, _: Sequence[object]) -> Sequence[str]:
    """A number beyond its bounds."""
    bound = _BOUND.match(issue.expected or "")
    if bound is None or issue.code.value not in {"field_too_large", "field_too_small"}:
        return ()
    number: Any = coerce_float(value) if type(value) is str else value
    if type(number) not in (int, float) or number != number:  # noqa: PLR0124 - NaN
        return ()
    limit = float(bound[2])
    fits = number <= limit if bound[1].startswith("<") else number >= limit
    return () if fits else ("clamp",)


_PROBES = (_from_text, _from_json, _wrapped, _chosen, _renamed, _clamped)
