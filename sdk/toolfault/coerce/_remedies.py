"""Near misses: which known remedies would have accepted a rejected value (design.md 4.5).

Only the names of the remedies leave the process, never the value.
"""

from __future__ import annotations

import re
import time

from toolfault.coerce._json import container_from_json
from toolfault.coerce._values import coerce_bool, coerce_date, coerce_float, coerce_int
from toolfault.errors._hints import closest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from toolfault.errors import Issue

    Bounds = tuple[float | None, float | None]

__all__ = ["REMEDIES", "near_misses"]

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
_MOST_CHOICES = 500
_WORDS = {bool: "boolean", int: "integer", float: "number", str: "string", dict: "object"}
_WORDS.update({list: "array", tuple: "array", set: "array", frozenset: "array"})
_BOUND = re.compile(r"(<=|<|>=|>) (-?\d+(?:\.\d+)?)$")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'")


def near_misses(
    value: object,
    issue: Issue,
    *,
    expected_type: type | str | None = None,
    choices: Iterable[object] | None = None,
    bounds: Bounds | None = None,
) -> tuple[str, ...]:
    """The names of the remedies that would have accepted *value*.

    Args:
        value: The rejected value, as the model sent it. Objects other than JSON values and texts
            beyond 10,000 characters have no near miss.
        issue: What was wrong with it.
        expected_type: What the field takes: a Python type or a JSON word (`integer`); by default
            what the issue expected.
        choices: The values the field takes; for an unexpected field, the names of the fields that
            may have been meant.
        bounds: The smallest and largest number the field takes.

    Returns:
        Names out of `REMEDIES`, in their order; empty when no remedy helps. What is not decided
        within two milliseconds is left out. Never raises.
    """
    try:
        field = _Field(issue, expected_type, choices, bounds)
        return _ordered(_tried(value, field))
    except Exception:  # noqa: BLE001 - advice must never get in the way of the failure itself
        return ()


class _Field:
    """What the field of an issue takes, from the caller or from the issue itself."""

    def __init__(
        self,
        issue: Issue,
        expected_type: type | str | None,
        choices: Iterable[object] | None,
        bounds: Bounds | None,
    ) -> None:
        self.issue = issue
        self.code = issue.code.value
        expected = issue.expected or ""
        if isinstance(expected_type, type):
            expected_type = _WORDS.get(expected_type, "")
        self.kind = expected if expected_type is None else expected_type
        if choices is None and self.code == "invalid_choice":
            choices = _QUOTED.findall(expected)
        self.choices: list[object] = [] if choices is None else list(choices)[:_MOST_CHOICES]
        self.bounds = bounds if bounds is not None else _bounds_in(expected)

    def takes(self, value: object) -> bool:
        """Whether a repaired *value* is within the bounds and among the choices."""
        if self.bounds is not None and type(value) in (int, float):
            low, high = self.bounds
            if (low is not None and value < low) or (high is not None and value > high):  # type: ignore[operator]
                return False
        if self.choices and self.code != "unknown_field":
            return any(type(choice) is type(value) and choice == value for choice in self.choices)
        return True


def _bounds_in(expected: str) -> Bounds | None:
    match = _BOUND.match(expected)
    if match is None:
        return None
    number = float(match[2])
    return (None, number) if match[1].startswith("<") else (number, None)


def _tried(value: object, field: _Field) -> set[str]:
    found: set[str] = set()
    if type(value) is str and len(value) > _LONGEST_TEXT:
        return found
    # The time of this thread alone: a busy machine must not change the answer.
    deadline = time.thread_time() + _BUDGET
    for remedy in _PROBES:
        if time.thread_time() > deadline:
            break
        found.update(remedy(value, field))
    return found


def _ordered(found: set[str]) -> tuple[str, ...]:
    return tuple(name for name in REMEDIES if name in found)


def _from_text(value: object, field: _Field) -> Sequence[str]:
    """Booleans, numbers and dates written as text."""
    kinds: dict[str, tuple[str, Callable[[object], object], type]] = {
        "boolean": ("bool_from_string", coerce_bool, bool),
        "integer": ("int_from_string", coerce_int, int),
        "number": ("float_from_string", coerce_float, float),
    }
    if type(value) is not str:
        return ()
    if field.kind.startswith("date"):
        return () if coerce_date(value) is value else ("date_from_string",)
    kind = kinds.get(field.kind)
    if kind is None:
        return ()
    name, coerce, wanted = kind
    plain = coerce(value)
    if type(plain) is wanted:
        return (name,) if field.takes(plain) else ()
    stripped = coerce(value.strip())
    return (name, "strip") if type(stripped) is wanted and field.takes(stripped) else ()


def _from_json(value: object, field: _Field) -> Sequence[str]:
    """Objects and arrays written as JSON text."""
    if type(value) is not str or field.kind not in {"object", "array"}:
        return ()
    kind = dict if field.kind == "object" else list
    return () if container_from_json(value, kind) is None else ("json_from_string",)


def _wrapped(value: object, field: _Field) -> Sequence[str]:
    """A single value where a list of them is wanted."""
    if field.kind != "array" or value is None or type(value) in (list, tuple, set, frozenset):
        return ()
    if type(value) is str and value.lstrip()[:1] == "[":
        return ()
    return ("wrap_in_list",)


def _chosen(value: object, field: _Field) -> Sequence[str]:
    """A choice but for white space, case or a slip of the pen."""
    if type(value) is not str or not field.choices or field.code == "unknown_field":
        return ()
    texts = [choice for choice in field.choices if type(choice) is str]
    stripped = value.strip()
    if stripped != value and stripped in texts:
        return ("strip",)
    folded = stripped.casefold()
    if sum(choice.casefold() == folded for choice in texts) == 1:
        return ("fold_case",) if stripped == value else ("strip", "fold_case")
    return ("close_choice",) if closest(value, texts) else ()


def _renamed(value: object, field: _Field) -> Sequence[str]:
    """An unexpected field whose name is close to one that is missing."""
    del value
    if field.code != "unknown_field":
        return ()
    name = str(field.issue.loc[-1]) if field.issue.loc else field.issue.field
    names = [choice for choice in field.choices if type(choice) is str and choice != name]
    return ("alias",) if closest(name, names) else ()


def _clamped(value: object, field: _Field) -> Sequence[str]:
    """A number beyond its bounds."""
    if field.bounds is None or field.code not in {"field_too_large", "field_too_small"}:
        return ()
    number = coerce_float(value) if type(value) is str else value
    if type(number) not in (int, float) or number != number:  # noqa: PLR0124 - NaN
        return ()
    return () if field.takes(number) else ("clamp",)


_PROBES = (_from_text, _from_json, _wrapped, _chosen, _renamed, _clamped)
