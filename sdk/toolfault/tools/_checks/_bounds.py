"""Bounds of a value: limits, lengths, patterns, with the words a model is told them in."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

from toolfault.tools._checks._findings import Findings, Loc

__all__ = ["Bounds", "bounds_from"]

_Test = tuple[Callable[[Any], bool], str, Callable[[Any], str], str | None]

# keyword -> (comparison, code, words, short form); the words are pydantic's
_LIMITS: dict[str, tuple[Callable[[Any, Any], Any], str, str, str]] = {
    "gt": (operator.gt, "field_too_small", "greater than", ">"),
    "ge": (operator.ge, "field_too_small", "greater than or equal to", ">="),
    "lt": (operator.lt, "field_too_large", "less than", "<"),
    "le": (operator.le, "field_too_large", "less than or equal to", "<="),
}
_SCHEMA_NAMES = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}
_LENGTH_NAMES = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_LENGTH_SUBJECTS = {
    "string": ("String", "character", ""),
    "array": ("List", "item", " after validation, not {n}"),
    "object": ("Dictionary", "item", " after validation, not {n}"),
}


class Bounds:
    """The bounds of one value, compiled once."""

    __slots__ = ("_schema", "_tests")

    def __init__(self, tests: list[_Test], schema: dict[str, Any]) -> None:
        self._tests = tests
        self._schema = schema

    def check(self, value: Any, loc: Loc, findings: Findings, *, raw: Any) -> None:
        """Note every bound that ``value`` breaks; ``raw`` is what the model sent."""
        for holds, code, words, expected in self._tests:
            if not holds(value):
                findings.add(loc, code, words(value), expected=expected, value=raw)

    def schema(self) -> dict[str, Any]:
        """Return the bounds as JSON schema keywords."""
        return self._schema


def bounds_from(constraints: Iterable[tuple[str, Any]], *, kind: str) -> Bounds | None:
    """Compile ``(name, limit)`` pairs into bounds; None if there are none.

    Args:
        constraints: Names as in ``annotated_types``: gt, ge, lt, le, multiple_of, min_length,
            max_length, pattern, and ``predicate`` (a callable).
        kind: JSON word of the value's type; decides the words about lengths.
    """
    tests: list[_Test] = []
    schema: dict[str, Any] = {}
    for name, limit in constraints:
        if not _binds(name, limit, kind):
            continue
        if name in _LIMITS:
            tests.append(_limit_test(name, limit))
        elif name == "multiple_of":
            tests.append(_multiple_test(limit))
        elif name in ("min_length", "max_length"):
            tests.append(_length_test(name, limit, kind))
        elif name == "pattern":
            tests.append(_pattern_test(limit))
        elif name == "predicate":
            tests.append((limit, "invalid_input", lambda _: "Invalid value", None))
        keyword = _keyword(name, kind)
        if keyword is not None:
            schema[keyword] = limit.pattern if name == "pattern" and _compiled(limit) else limit
    return Bounds(tests, schema) if tests else None


def _binds(name: str, limit: Any, kind: str) -> bool:
    """Whether a bound says anything about values of ``kind``.

    The bounds of a union reach every branch: ``Annotated[int | str, Ge(1)]`` binds its numbers.
    """
    if name in _LIMITS or name == "multiple_of":
        return kind not in _LENGTH_NAMES or (kind == "string" and isinstance(limit, str))
    if name in ("min_length", "max_length"):
        return kind in _LENGTH_NAMES
    return name != "pattern" or kind == "string"


def _keyword(name: str, kind: str) -> str | None:
    if name == "min_length":
        return _LENGTH_NAMES.get(kind, (None, None))[0]
    if name == "max_length":
        return _LENGTH_NAMES.get(kind, (None, None))[1]
    return _SCHEMA_NAMES.get(name)


def _limit_test(name: str, limit: Any) -> _Test:
    compare, code, words, sign = _LIMITS[name]

    def holds(value: Any) -> bool:
        return bool(compare(value, limit))

    return holds, code, lambda _: f"Input should be {words} {limit}", f"{sign} {limit}"


def _multiple_test(step: Any) -> _Test:
    def holds(value: Any) -> bool:
        if isinstance(value, int) and isinstance(step, int):
            return value % step == 0
        ratio = value / step
        return bool(abs(ratio - round(ratio)) < 1e-9)  # 0.3 is a multiple of 0.1

    return (
        holds,
        "invalid_format",
        lambda _: f"Input should be a multiple of {step}",
        f"multiple of {step}",
    )


def _length_test(name: str, limit: int, kind: str) -> _Test:
    subject, unit, rest = _LENGTH_SUBJECTS.get(kind, ("Value", "item", ""))
    units = unit if limit == 1 else f"{unit}s"
    least = name == "min_length"
    bound = f"at {'least' if least else 'most'} {limit} {units}"

    def holds(value: Any) -> bool:
        return len(value) >= limit if least else len(value) <= limit

    def words(value: Any) -> str:
        return f"{subject} should have {bound}{rest.format(n=len(value))}"

    code = "field_too_small" if least else "field_too_large"
    return holds, code, words, f"length {'>=' if least else '<='} {limit}"


def _compiled(pattern: Any) -> bool:
    return isinstance(pattern, re.Pattern)


def _pattern_test(pattern: Any) -> _Test:
    source = pattern.pattern if _compiled(pattern) else str(pattern)
    search = re.compile(pattern).search

    def holds(value: Any) -> bool:
        return search(value) is not None

    return (
        holds,
        "invalid_format",
        lambda _: f"String should match pattern '{source}'",
        f"pattern {source}",
    )
