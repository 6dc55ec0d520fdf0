"""Checks of arguments, compiled once per tool from type hints.

Every check says all that is wrong (never fail-fast), in pydantic's words, with codes of our own.

Known: int, float, bool, str, None, list, tuple, set, frozenset, dict and their abstract forms,
Literal, Enum, Optional, Union, dataclass, TypedDict, NamedTuple, NewType, TypeVar, type aliases,
date, datetime, time, UUID, Path, Decimal, bytes, pydantic models, msgspec structs, and Annotated
with bounds that look like ``annotated_types`` (attributes gt, ge, lt, le, multiple_of, min_length,
max_length, pattern). Every other annotation accepts every value.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import hashlib
import json
import operator
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from enum import Enum
from pathlib import Path, PurePath
from typing import Any, NamedTuple
from uuid import UUID

from toolfault.coerce import Coercion, coerce_bool, coerce_float, coerce_int, coerce_json
from toolfault.errors import Issue, listed
from toolfault.errors._types import ABSENT
from toolfault.tools._phantoms import Parents, Phantoms
from toolfault.tools._signature import Parameters

# What a check finds wrong, before it becomes issues; only failures pay for it.

Loc = tuple[Any, ...]

# Deeper values are refused, so that a cycle or a hostile nesting ends in an issue, not in a
# RecursionError of the host. 64 levels are far beyond what a model writes.
MAX_DEPTH = 64


class Finding:
    """One thing wrong with one value.

    Attributes:
        loc: Keys and indexes from the arguments to the value; ``()`` is the arguments as a whole.
        code: Wire code of the issue.
        message: The sentence; the words are pydantic's where pydantic has one, so that a model
            reads the same text whoever validates.
        expected: Short expectation in JSON words, or None.
        value: The value the model sent, or ABSENT.
        issue: The issue itself, where a foreign model found it.
        type: ``value_error``, as pydantic says, where the words are those of an exception of the
            host: they may quote the value.
    """

    __slots__ = ("code", "expected", "issue", "loc", "message", "type", "value")

    def __init__(
        self,
        loc: Loc,
        code: str,
        message: str,
        *,
        expected: str | None,
        value: object,
        issue: Issue | None = None,
        type: str | None = None,  # noqa: A002 - the name of the member of the issue
    ) -> None:
        self.loc = loc
        self.code = code
        self.message = message
        self.expected = expected
        self.value = value
        self.issue = issue
        self.type = type


class Findings:
    """Collects everything wrong and every repair of one validation.

    Attributes:
        coerce: Whether bool, int, float and JSON strings may be repaired.
        found: What is wrong, in the order of the parameters.
        repairs: ``(loc, value before, value after)`` of every repair.
        phantoms: Names of what was sent and is no parameter, where a model dropped it.
    """

    __slots__ = ("coerce", "found", "phantoms", "repairs")

    def __init__(self, coerce: bool = False) -> None:
        self.coerce = coerce
        self.found: list[Finding] = []
        self.repairs: list[tuple[Loc, object, object]] = []
        self.phantoms: Phantoms | None = None  # as nearly every validation leaves it

    def add(
        self,
        loc: Loc,
        code: str,
        message: str,
        *,
        expected: str | None = None,
        value: object = ABSENT,
        type: str | None = None,  # noqa: A002 - see above
    ) -> None:
        """Note one thing that is wrong."""
        found = Finding(loc, code, message, expected=expected, value=value, type=type)
        self.found.append(found)

    def add_issue(self, loc: Loc, issue: Issue) -> None:
        """Note an issue that a foreign model found at ``loc``."""
        self.found.append(
            Finding(
                loc,
                issue.code.value,
                issue.message,
                expected=issue.expected,
                value=ABSENT,
                issue=issue,
            )
        )

    def note_dropped(self, sent: Mapping[Any, Any], kind: type, loc: Loc, parents: Parents) -> None:
        """Note what was sent at ``loc`` to a model of class ``kind``, which does not know it.

        Args:
            sent: What was sent.
            kind: The class.
            loc: Where it stands in the arguments.
            parents: The models that it is inside of.
        """
        if self.phantoms is None:
            self.phantoms = Phantoms()
        self.phantoms.add_dropped(sent, kind, loc, parents)

    def any_key(self, at: Loc, repairs: int) -> None:
        """Forget the last part of ``at``, a key that is data, in what was repaired or left out.

        Both are counted by field, and a key may be a name or an address.

        Args:
            at: Where the value of the key stands.
            repairs: How many there were before that value was checked.
        """
        for number, (loc, before, after) in enumerate(self.repairs[repairs:], repairs):
            place = len(at)
            self.repairs[number] = ((*loc[: place - 1], 0, *loc[place:]), before, after)
        if self.phantoms is not None:
            self.phantoms.any_key(at)

    def absorb(self, other: Findings) -> None:
        """Take over what ``other`` collected."""
        self.found.extend(other.found)
        self.repairs.extend(other.repairs)
        if self.phantoms is None:
            self.phantoms = other.phantoms
        elif other.phantoms is not None:
            self.phantoms.absorb(other.phantoms)


class Check:
    """Checks one value against one declared type; this one accepts everything.

    Attributes:
        exact: A value of exactly this type passes unchanged; lets containers skip the call.
        kind: The JSON word for what is expected: ``integer``, ``array`` ...
    """

    __slots__ = ()
    exact: type | None = None
    kind: str = "value"

    def check(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Return the value to use; what is wrong goes into ``findings``."""
        return value

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of what this check accepts."""
        return {}


ANYTHING = Check()
"""Accepts every value: no annotation, or one this validator does not know."""


# Bounds of a value: limits, lengths, patterns, with the words a model is told them in.

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


# The JSON scalars: string, integer, number, boolean, null.

# ``issubclass(type(value), int)`` everywhere, never ``isinstance``: isinstance reads the value's
# ``__class__``, which a hostile object can make raise.


class _Bounded(Check):
    """A scalar with optional bounds."""

    __slots__ = ("bounds", "exact")
    exact: type | None
    plain: type

    def __init__(self, bounds: Bounds | None = None) -> None:
        self.bounds = bounds
        # With bounds the value has to be looked at, so containers may not skip the check.
        self.exact = self.plain if bounds is None else None

    def check(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Return the value, repaired if that is allowed and possible."""
        if type(value) is self.plain:
            if self.bounds is not None:
                self.bounds.check(value, loc, findings, raw=value)
            return value
        return self._other(value, loc, findings)

    def _other(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Decide on a value that is not exactly of the plain type."""
        if self.accepts(type(value)):
            accepted = value
        else:
            accepted = self.repair(value, coerce=findings.coerce)
            if type(accepted) is not self.plain:
                findings.add(loc, "wrong_type", self.words(value), expected=self.kind, value=value)
                return value
            findings.repairs.append((loc, value, accepted))
        if self.bounds is not None:
            self.bounds.check(accepted, loc, findings, raw=value)
        return accepted

    def accepts(self, kind: type) -> bool:
        """Say whether values of ``kind`` pass unchanged."""
        return issubclass(kind, self.plain)

    def repair(self, value: Any, *, coerce: bool) -> Any:
        """Return the value as the plain type if that loses nothing, else unchanged."""
        return value

    def words(self, value: Any) -> str:
        """Return the sentence for a value of the wrong type."""
        return f"Input should be a valid {self.kind}"

    def schema(self) -> dict[str, Any]:
        """Return type and bounds."""
        return {"type": self.kind, **(self.bounds.schema() if self.bounds else {})}


class StrCheck(_Bounded):
    """A string."""

    __slots__ = ()
    plain = str
    kind = "string"


class BoolCheck(_Bounded):
    """A boolean."""

    __slots__ = ()
    plain = bool
    kind = "boolean"

    def repair(self, value: Any, *, coerce: bool) -> Any:
        """Repair ``"true"``, ``"no"`` ... if coercion is on."""
        if not coerce:
            return value
        return coerce_bool(value)


class IntCheck(_Bounded):
    """An integer; a boolean is none."""

    __slots__ = ()
    plain = int
    kind = "integer"

    def accepts(self, kind: type) -> bool:
        """Accept subclasses of int, but bool is not a number."""
        return issubclass(kind, int) and not issubclass(kind, bool)

    def repair(self, value: Any, *, coerce: bool) -> Any:
        """Take ``2.0`` as 2: JSON has one number type (JSON Schema 2020-12, 6.1.1)."""
        if type(value) is float:
            return int(value) if value.is_integer() else value
        if not coerce:
            return value
        return coerce_int(value)

    def words(self, value: Any) -> str:
        """Say why a number is not an integer."""
        sentence = super().words(value)
        if type(value) is float and value - value == 0:  # finite
            return f"{sentence}, got a number with a fractional part"
        return sentence


class FloatCheck(_Bounded):
    """A number; integers pass unchanged (PEP 484, the numeric tower), booleans do not."""

    __slots__ = ()
    plain = float
    kind = "number"

    def accepts(self, kind: type) -> bool:
        """Accept int and float, but bool is not a number."""
        return issubclass(kind, (int, float)) and not issubclass(kind, bool)

    def repair(self, value: Any, *, coerce: bool) -> Any:
        """Repair ``"1.5"`` if coercion is on."""
        if not coerce:
            return value
        return coerce_float(value)


class NullCheck(Check):
    """None, JSON's null."""

    __slots__ = ()
    exact = type(None)
    kind = "null"

    def check(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Accept None alone."""
        if value is not None:
            findings.add(loc, "wrong_type", "Input should be None", expected="null", value=value)
        return value

    def schema(self) -> dict[str, Any]:
        """Return the null type."""
        return {"type": "null"}


# Alternatives: a fixed list of values, several types, a type named later.


class ChoiceCheck(Check):
    """One of a fixed list of JSON values, each standing for a final value (an Enum member)."""

    __slots__ = ("_by_value", "_finals", "_words")
    kind = "choice"

    def __init__(self, choices: Sequence[tuple[Any, Any]]) -> None:
        """Take ``(JSON value, final value)`` pairs in the order they are told to the model."""
        self._finals = tuple(choices)
        # Keyed by type too: 1, 1.0 and True are equal in Python, and different answers in JSON.
        self._by_value: dict[tuple[type, Any], Any] = {}
        for shown, final in choices:
            self._by_value.setdefault((type(shown), shown), final)
        self._words = listed(shown for shown, _ in choices)

    def check(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Return the final value that ``value`` names."""
        kind = type(value)
        if kind in (str, int, bool, float) or value is None:
            found = self._by_value.get((kind, value), self)
            if found is not self:
                return found
        for _, final in self._finals:
            if value is final:
                return final
        findings.add(
            loc,
            "invalid_choice",
            f"Input should be {self._words}",
            expected=self._words,
            value=value,
        )
        return value

    @property
    def shown(self) -> list[Any]:
        """The JSON values a model may send."""
        return [shown for shown, _ in self._finals]

    def schema(self) -> dict[str, Any]:
        """Return enum, with the type where all choices share it."""
        shown = self.shown
        if shown and all(type(value) is str for value in shown):
            return {"type": "string", "enum": shown}
        return {"enum": shown}


class UnionCheck(Check):
    """One of several types."""

    __slots__ = ("branches",)

    def __init__(self, branches: Sequence[Check]) -> None:
        self.branches = tuple(branches)

    @property
    def kind(self) -> str:  # type: ignore[override] # depends on the branches
        """The branches' words: ``integer or null``."""
        kinds = list(dict.fromkeys(branch.kind for branch in self.branches))
        return " or ".join([", ".join(kinds[:-1]), kinds[-1]]) if len(kinds) > 1 else kinds[0]

    def check(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Take the first branch that fits, one that changes nothing before one that repairs."""
        kind = type(value)
        for branch in self.branches:
            if branch.exact is kind:
                return value
        fit, trials = self._try(value, loc, Findings())
        if fit is None and findings.coerce:
            fit, trials = self._try(value, loc, Findings(coerce=True))
        if fit is None:
            self._explain(value, loc, findings, trials)
            return value
        result, trial = fit
        findings.absorb(trial)
        return result

    def _try(
        self, value: Any, loc: Loc, findings: Findings
    ) -> tuple[tuple[Any, Findings] | None, list[Findings]]:
        """Return the best fit (value and what it took), and what every branch found."""
        repaired: tuple[Any, Findings] | None = None
        trials: list[Findings] = []
        for branch in self.branches:
            trial = Findings(findings.coerce)
            result = branch.check(value, loc, trial)
            trials.append(trial)
            if trial.found:
                continue
            if not trial.repairs:
                return (result, trial), trials
            repaired = repaired or (result, trial)
        return repaired, trials

    def _explain(self, value: Any, loc: Loc, findings: Findings, trials: list[Findings]) -> None:
        """Note why nothing fits.

        Where the value was of a branch's type, that branch knows best what is wrong with it;
        otherwise one sentence names all types, since a list of complaints per type would read as
        several errors.
        """
        close = [trial for trial in trials if not _wrong_at(trial, loc)]
        real = [branch for branch in self.branches if branch.kind != "null"]
        if len(real) == 1:
            close = close or [trials[self.branches.index(real[0])]]
        if close:
            findings.found.extend(min(close, key=lambda trial: len(trial.found)).found)
            return
        findings.add(
            loc,
            "wrong_type",
            f"Input should be a valid {self.kind}",
            expected=self.kind,
            value=value,
        )

    def schema(self) -> dict[str, Any]:
        """Return anyOf."""
        return {"anyOf": [branch.schema() for branch in self.branches]}


def _wrong_at(trial: Findings, loc: Loc) -> bool:
    """Say whether the value itself was of the wrong type, not something inside it."""
    return any(found.code == "wrong_type" and found.loc == loc for found in trial.found)


class LaterCheck(Check):
    """A type that refers to itself: resolved when it is first needed."""

    __slots__ = ("_make", "_name", "_target")

    def __init__(self, name: str, make: Callable[[], Check]) -> None:
        self._name = name
        self._make = make
        self._target: Check | None = None

    def check(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Check against the type referred to."""
        if self._target is None:
            self._target = self._make()
        return self._target.check(value, loc, findings)

    def schema(self) -> dict[str, Any]:
        """Return the name only: the schema of a type inside itself has no end."""
        return {"type": "object", "title": self._name}


# Arrays and maps: list, tuple, set, dict.


def from_json_text(value: Any, wanted: type, loc: Loc, findings: Findings) -> Any:
    """Return the array or object that a string holds, where coercion allows it.

    A model often sends a structured argument as JSON text. Text that was meant as JSON and is
    broken is noted as ``malformed_json`` with the parser's words; other strings are left alone.
    """
    if not findings.coerce or type(value) is not str:
        return value
    text = value.strip()
    if not text.startswith(("{", "[")):
        return value
    try:
        parsed = coerce_json(text)
    except ValueError as error:
        findings.add(loc, "malformed_json", str(error), value=value)
        return value
    if type(parsed) is not wanted:
        return value
    findings.repairs.append((loc, value, parsed))
    return parsed


def too_deep(value: Any, loc: Loc, findings: Findings) -> bool:
    """Note and report a value nested deeper than MAX_DEPTH (also a cycle)."""
    if len(loc) < MAX_DEPTH:
        return False
    findings.add(loc[:MAX_DEPTH], "invalid_format", "Input is nested too deeply", value=value)
    return True


def object_from(value: Any, loc: Loc, findings: Findings) -> tuple[Any, bool]:
    """Return a value that must be an object, read from JSON text where need be, and if it is one.

    Where it is not, or is nested too deeply, that is noted.
    """
    before = len(findings.found)
    if not issubclass(type(value), dict):
        value = from_json_text(value, dict, loc, findings)
        if type(value) is not dict:
            if len(findings.found) == before:
                words = "Input should be a valid dictionary"
                findings.add(loc, "wrong_type", words, expected="object", value=value)
            return value, False
    return value, not too_deep(value, loc, findings)


class ListCheck(Check):
    """An array; becomes a list, or what ``build`` makes of it (set, frozenset, tuple)."""

    __slots__ = ("bounds", "build", "item")
    kind = "array"

    def __init__(
        self,
        item: Check = ANYTHING,
        *,
        bounds: Bounds | None = None,
        build: Callable[[list[Any]], Any] | None = None,
    ) -> None:
        self.item = item
        self.bounds = bounds
        self.build = build

    def check(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Check every item; the array stays the same object when nothing changed."""
        before = len(findings.found)
        items = self._items(value, loc, findings)
        if items is None:
            if len(findings.found) == before:
                findings.add(
                    loc,
                    "wrong_type",
                    "Input should be a valid list",
                    expected="array",
                    value=value,
                )
            return value
        if too_deep(value, loc, findings):
            return value
        checked = self._checked(items, loc, findings)
        if self.bounds is not None:
            self.bounds.check(checked, loc, findings, raw=value)
        return self._built(checked, value, loc, findings)

    def _items(self, value: Any, loc: Loc, findings: Findings) -> list[Any] | None:
        kind = type(value)
        if kind is list:
            return value  # type: ignore[no-any-return] # narrowed by the exact type
        if issubclass(kind, (list, tuple)):
            return list(value)
        if self.build is not None and issubclass(kind, (set, frozenset)):
            return list(value)
        parsed = from_json_text(value, list, loc, findings)
        return parsed if type(parsed) is list else None

    def _checked(self, items: list[Any], loc: Loc, findings: Findings) -> list[Any]:
        check = self.item.check
        exact = self.item.exact
        changed: list[Any] | None = None
        for index, item in enumerate(items):
            if type(item) is exact:
                continue
            result = check(item, (*loc, index), findings)
            if result is not item:
                if changed is None:
                    changed = list(items)
                changed[index] = result
        return items if changed is None else changed

    def _built(self, items: list[Any], value: Any, loc: Loc, findings: Findings) -> Any:
        if self.build is None or findings.found:
            return items
        try:
            return self.build(items)
        except TypeError:  # an unhashable item of a set
            findings.add(
                loc, "wrong_type", "Set items should be hashable", expected="array", value=value
            )
            return items

    def schema(self) -> dict[str, Any]:
        """Return array, items and bounds."""
        shown: dict[str, Any] = {"type": "array", "items": self.item.schema()}
        return {**shown, **(self.bounds.schema() if self.bounds else {})}


class TupleCheck(Check):
    """An array of a fixed length with one type per place."""

    __slots__ = ("items",)
    kind = "array"

    def __init__(self, items: tuple[Check, ...]) -> None:
        self.items = items

    def check(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Check length and every place."""
        if not issubclass(type(value), (list, tuple)):
            findings.add(
                loc, "wrong_type", "Input should be a valid tuple", expected="array", value=value
            )
            return value
        if len(value) != len(self.items):
            few = len(value) < len(self.items)
            findings.add(
                loc,
                "field_too_small" if few else "field_too_large",
                f"Tuple should have exactly {len(self.items)} items, not {len(value)}",
                expected=f"length {len(self.items)}",
                value=value,
            )
            return value
        before = len(findings.found)
        checked = [
            place.check(item, (*loc, index), findings)
            for index, (place, item) in enumerate(zip(self.items, value, strict=True))
        ]
        return value if len(findings.found) > before else tuple(checked)

    def schema(self) -> dict[str, Any]:
        """Return prefixItems and the exact length."""
        size = len(self.items)
        places = [place.schema() for place in self.items]
        return {"type": "array", "prefixItems": places, "minItems": size, "maxItems": size}


class DictCheck(Check):
    """An object whose keys are data: ``dict[str, int]``."""

    __slots__ = ("bounds", "key", "value")
    kind = "object"

    def __init__(
        self, key: Check = ANYTHING, value: Check = ANYTHING, *, bounds: Bounds | None = None
    ) -> None:
        self.key = key
        self.value = value
        self.bounds = bounds

    def check(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Check every key and value; the object stays the same when nothing changed."""
        value, is_object = object_from(value, loc, findings)
        if not is_object:
            return value
        checked = self._checked(value, loc, findings)
        if self.bounds is not None:
            self.bounds.check(checked, loc, findings, raw=value)
        return checked

    def _checked(self, value: dict[Any, Any], loc: Loc, findings: Findings) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        changed = False
        for key, item in list(value.items()):
            at = (*loc, key)
            new_key = key if type(key) is self.key.exact else self._key(key, at, findings)
            if type(item) is self.value.exact:
                new_item = item
            else:
                repairs = len(findings.repairs)
                new_item = self.value.check(item, at, findings)
                if len(findings.repairs) > repairs or findings.phantoms is not None:
                    findings.any_key(at, repairs)
            changed = changed or new_key is not key or new_item is not item
            result[new_key] = new_item
        return result if changed else value

    def _key(self, key: Any, loc: Loc, findings: Findings) -> Any:
        # JSON has string keys only, so "1" for dict[int, X] is no repair but the one way to say 1.
        trial = Findings(coerce=True)
        checked = self.key.check(key, loc, trial)
        findings.found.extend(trial.found)
        return checked

    def schema(self) -> dict[str, Any]:
        """Return object, type of the values and bounds."""
        shown = {"type": "object", "additionalProperties": self.value.schema()}
        return {**shown, **(self.bounds.schema() if self.bounds else {})}


# Python types that JSON can only write as strings.

_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\Z")  # RFC 9562


def _datetime(text: str) -> Any:
    # Python 3.10 reads no "Z" (RFC 3339); an offset means the same everywhere.
    return datetime.fromisoformat(text[:-1] + "+00:00" if text[-1:] in "Zz" else text)


def _time(text: str) -> Any:
    return time.fromisoformat(text[:-1] + "+00:00" if text[-1:] in "Zz" else text)


def _uuid(text: str) -> Any:
    if not _UUID.match(text):
        raise ValueError(text)
    return UUID(text)


def _path(text: str) -> Any:
    if not text or "\0" in text:
        raise ValueError(text)
    return Path(text)


def _decimal(text: str) -> Any:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(text) from None


_PATH = ("path", _path, "path", "path")
# type -> (format, parser raising ValueError, words, expected)
_FORMATS: dict[type, tuple[str, Callable[[str], Any], str, str]] = {
    date: ("date", date.fromisoformat, "date", "date (YYYY-MM-DD)"),
    datetime: ("date-time", _datetime, "datetime", "datetime (ISO 8601)"),
    time: ("time", _time, "time", "time (HH:MM:SS)"),
    UUID: ("uuid", _uuid, "UUID", "UUID"),
    Path: _PATH,
    PurePath: _PATH,
    Decimal: ("decimal", _decimal, "decimal number", "decimal number"),
    bytes: ("binary", str.encode, "bytes", "string"),
}


class FormatCheck(Check):
    """A string in a given format."""

    __slots__ = ("_expected", "_format", "_parse", "_target", "_words")
    kind = "string"

    def __init__(self, target: type) -> None:
        """Take the Python type to convert to."""
        self._format, self._parse, words, self._expected = _FORMATS[target]
        self._words = f"Input should be a valid {words}"
        self._target = target

    def check(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Parse the string; a value of the target type passes unchanged."""
        kind = type(value)
        if issubclass(kind, self._target):
            return value
        if self._format == "decimal" and kind in (int, float):
            value = str(value)
        elif not issubclass(kind, str):
            findings.add(loc, "wrong_type", self._words, expected=self._expected, value=value)
            return value
        try:
            return self._parse(value)
        except (ValueError, OverflowError):
            findings.add(loc, "invalid_format", self._words, expected=self._expected, value=value)
            return value

    def schema(self) -> dict[str, Any]:
        """Return string with its format."""
        return {"type": "string", "format": self._format}


# Objects with known fields: arguments, dataclasses, TypedDicts.


class FieldCheck(NamedTuple):
    """One field of an object.

    Attributes:
        name: Key in the JSON object.
        check: What its value has to be.
        required: Whether it has to be there.
        default: Default shown in the schema, or ABSENT.
        description: Text shown in the schema, or None.
    """

    name: str
    check: Check
    required: bool = True
    default: object = ABSENT
    description: str | None = None

    def schema(self) -> dict[str, Any]:
        """Return the schema of the value with description and default."""
        shown = dict(self.check.schema())
        if self.description:
            shown["description"] = self.description
        if self.default is None or type(self.default) in (str, int, float, bool):
            shown["default"] = self.default
        return shown


class ObjectCheck(Check):
    """An object with known fields.

    Attributes:
        fields: The fields, by name, in declared order.
        extra: None forbids other keys; a check is applied to each of them.
        build: Makes the final value from the checked fields (a dataclass); None keeps a dict.
    """

    __slots__ = ("_plan", "build", "extra", "fields")
    kind = "object"

    def __init__(
        self,
        fields: Mapping[str, FieldCheck],
        *,
        extra: Check | None = None,
        build: Callable[..., Any] | None = None,
    ) -> None:
        self.fields = dict(fields)
        self.extra = extra
        self.build = build
        # One flat tuple per field: the success path of every call walks it.
        self._plan = tuple(
            (field.name, field.check.exact, field.check.check, field.required)
            for field in self.fields.values()
        )

    def check(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Check a nested object and build its value."""
        if self.build is not None and type(value) is self.build:
            return value
        before = len(findings.found)
        value, is_object = object_from(value, loc, findings)
        if not is_object:
            return value
        checked = self.members(value, loc, findings)
        if self.build is None or len(findings.found) > before:
            return checked
        return self._built(checked, loc, findings)

    def members(self, value: dict[Any, Any], loc: Loc, findings: Findings) -> dict[Any, Any]:
        """Return the checked fields of ``value`` as a new dict."""
        result: dict[Any, Any] = {}
        for name, exact, check, required in self._plan:
            item = value.get(name, ABSENT)
            if item is ABSENT:
                if required:
                    findings.add((*loc, name), "missing_field", "Missing required parameter")
            elif type(item) is exact:
                result[name] = item
            else:
                result[name] = check(item, (*loc, name), findings)
        if len(value) > len(result):
            self._others(value, result, loc, findings)
        return result

    def _others(
        self, value: dict[Any, Any], result: dict[Any, Any], loc: Loc, findings: Findings
    ) -> None:
        for key, item in list(value.items()):
            if key in self.fields:
                continue
            if self.extra is None or type(key) is not str:
                findings.add((*loc, key), "unknown_field", "Unexpected parameter", value=item)
            else:
                result[key] = self.extra.check(item, (*loc, key), findings)

    def _built(self, checked: dict[Any, Any], loc: Loc, findings: Findings) -> Any:
        assert self.build is not None
        try:
            return self.build(**checked)
        except (ValueError, AssertionError) as error:  # the class's own rule, said in its words
            # A nested validation error would print the values it was given.
            words = "" if callable(getattr(error, "errors", None)) else str(error)
            findings.add(loc, "invalid_input", words or "Invalid value", type="value_error")
            return checked

    def schema(self) -> dict[str, Any]:
        """Return properties, required and what other keys may be."""
        return {
            "type": "object",
            "properties": {name: field.schema() for name, field in self.fields.items()},
            "required": [name for name, field in self.fields.items() if field.required],
            "additionalProperties": False if self.extra is None else self.extra.schema() or True,
        }


# Values that are repaired first, because their field asks for it (`port: LLMInt`).


class RepairCheck(Check):
    """Applies a coercer, then the check of the declared type."""

    __slots__ = ("_coerce", "_inner")

    def __init__(self, inner: Check, coerce: Callable[[Any], Any]) -> None:
        self._inner = inner
        self._coerce = coerce

    @property
    def kind(self) -> str:  # type: ignore[override] # depends on what is inside
        """The word of the declared type."""
        return self._inner.kind

    def check(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Repair, then check; a repair counts only where the result is right."""
        try:
            repaired = self._coerce(value)
        except ValueError as error:  # broken JSON in a string
            words = str(error)
            if words.startswith("Invalid JSON"):
                findings.add(loc, "malformed_json", words, value=value)
            else:
                findings.add(loc, "invalid_input", words, value=value, type="value_error")
            return value
        trial = Findings(findings.coerce)
        checked = self._inner.check(repaired, loc, trial)
        for found in trial.found:
            if found.loc == loc:
                found.value = value  # what the model sent, not what became of it
        if repaired is not value and not trial.found and not _same(repaired, value):
            findings.repairs.append((loc, value, repaired))
        findings.absorb(trial)
        return checked

    def schema(self) -> dict[str, Any]:
        """Return the schema of the declared type."""
        return self._inner.schema()


def _same(repaired: Any, value: Any) -> bool:
    return type(repaired) is type(value) and bool(repaired == value)


# Type hints compiled into checks, once per tool.

_BOUNDS = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern")
_SCALARS: dict[Any, tuple[Callable[[Bounds | None], Check], str]] = {
    bool: (BoolCheck, "boolean"),
    int: (IntCheck, "integer"),
    float: (FloatCheck, "number"),
    str: (StrCheck, "string"),
}
_ARRAYS: dict[Any, Callable[[list[Any]], Any] | None] = {
    list: None,
    set: set,
    frozenset: frozenset,
    collections.abc.Sequence: None,
    collections.abc.MutableSequence: None,
    collections.abc.Iterable: None,
    collections.abc.Collection: None,
    collections.abc.Set: set,
    collections.abc.MutableSet: set,
}
_OBJECTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)

Constraints = tuple[tuple[str, Any], ...]


def constraints_of(metadata: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Yield ``(name, limit)`` for every bound in the metadata of an Annotated type.

    Duck-typed: ``annotated_types.Ge``, ``Interval``, ``Len``, ``msgspec.Meta`` and pydantic's
    ``Field`` (which keeps its bounds in ``.metadata``) all carry the same attribute names.
    """
    for item in metadata:
        if isinstance(item, (str, bytes, type)):
            continue
        for name in _BOUNDS:
            limit = getattr(item, name, None)
            if limit is not None and not callable(limit):
                yield name, limit
        if type(item).__name__ == "Predicate" and callable(getattr(item, "func", None)):
            yield "predicate", item.func
        nested = getattr(item, "metadata", None)
        if isinstance(nested, (list, tuple)):
            yield from constraints_of(nested)


def description_of(annotation: Any) -> str | None:
    """Return the text that describes a parameter: ``Annotated[int, "the port"]`` and alike."""
    for item in getattr(annotation, "__metadata__", ()):
        if isinstance(item, str):
            return item
        for name in ("description", "documentation"):
            text = getattr(item, name, None)
            if isinstance(text, str):
                return text
    return None


class Hints:
    """Compiles annotations; remembers the classes it is inside of, so that recursion ends.

    Attributes:
        model_check: Makes the check of a class with its own validation (pydantic, msgspec), or of
            a union with tags of pydantic; returns None for others. Told that there is no other
            check, it makes one of any type that pydantic knows.
        unchecked: Annotations of which nothing is known: any value passes.
    """

    def __init__(self, model_check: Callable[..., Check | None]) -> None:
        self.model_check = model_check
        self.unchecked: list[Any] = []
        self._open: dict[Any, LaterCheck] = {}
        self._done: dict[Any, Check] = {}

    def compile(self, annotation: Any, constraints: Constraints = ()) -> Check:
        """Return the check of ``annotation`` with ``constraints`` from around it."""
        tagged = self.model_check(annotation) if has_tag(annotation) else None
        if tagged is not None:
            return tagged
        annotation, constraints, coercers = _unwrapped(annotation, constraints)
        check = self._plain(annotation, constraints)
        for coercer in coercers:
            check = RepairCheck(check, coercer)
        return check

    def _plain(self, annotation: Any, constraints: Constraints) -> Check:
        if annotation is Any or annotation is object:
            return ANYTHING
        if annotation is None or annotation is type(None):
            return NullCheck()
        if isinstance(annotation, type) and annotation in _SCALARS:
            make, kind = _SCALARS[annotation]
            return make(bounds_from(constraints, kind=kind))
        origin = typing.get_origin(annotation)
        if origin is not None:
            return self._generic(origin, typing.get_args(annotation), constraints)
        if isinstance(annotation, type):
            return self._class(annotation, constraints)
        return self._unknown(annotation)

    def _unknown(self, annotation: Any) -> Check:
        self.unchecked.append(annotation)
        return ANYTHING

    def _generic(self, origin: Any, args: tuple[Any, ...], constraints: Constraints) -> Check:
        if origin is typing.Union or origin is types.UnionType:
            return UnionCheck([self.compile(arg, constraints) for arg in args])
        if origin is typing.Literal:
            return ChoiceCheck([_literal_choice(value) for value in args])
        if origin is tuple:
            return self._tuple(args, constraints)
        if origin in _ARRAYS:
            item = self.compile(args[0]) if args else ANYTHING
            return self._array(origin, item, constraints)
        if origin in _OBJECTS:
            key, value = (self.compile(arg) for arg in (args or (Any, Any)))
            return DictCheck(key, value, bounds=bounds_from(constraints, kind="object"))
        if isinstance(origin, type):
            return self._class(origin, constraints, args)
        return self._unknown(origin)

    def _array(self, origin: Any, item: Check, constraints: Constraints) -> Check:
        bounds = bounds_from(constraints, kind="array")
        return ListCheck(item, bounds=bounds, build=_ARRAYS[origin])

    def _tuple(self, args: tuple[Any, ...], constraints: Constraints) -> Check:
        if not args or args[-1] is Ellipsis:
            item = self.compile(args[0]) if args else ANYTHING
            bounds = bounds_from(constraints, kind="array")
            return ListCheck(item, bounds=bounds, build=tuple)
        return TupleCheck(tuple(self.compile(arg) for arg in args))

    def _class(self, kind: type, constraints: Constraints, args: tuple[Any, ...] = ()) -> Check:
        if kind in _ARRAYS:
            return self._array(kind, ANYTHING, constraints)
        if kind is tuple:
            return self._tuple((), constraints)
        if kind in _OBJECTS:
            return DictCheck(bounds=bounds_from(constraints, kind="object"))
        if issubclass(kind, Enum):
            return ChoiceCheck(_enum_choices(kind))
        own = self.model_check(kind)
        if own is not None:
            return own
        defaults = _defaults_of(kind)
        if defaults is not None:
            return self._object(kind, defaults)
        if kind in _FORMATS:
            return FormatCheck(kind)
        whole = types.GenericAlias(kind, args) if args else kind
        own = self.model_check(whole, is_last=True)
        return self._unknown(kind) if own is None else own

    def _object(self, kind: type, defaults: Mapping[str, object]) -> Check:
        if kind in self._done:
            return self._done[kind]
        if kind in self._open:
            return self._open[kind]
        self._open[kind] = LaterCheck(kind.__name__, lambda: self._done[kind])
        hints = _annotations(kind)
        fields = {}
        for name, default in defaults.items():
            annotation = hints.get(name, Any)
            required = default is _REQUIRED
            fields[name] = FieldCheck(
                name,
                self.compile(annotation),
                required=required,
                default=ABSENT if required else default,
                description=description_of(annotation),
            )
        # A dataclass may be a dictionary as well.
        is_typed_dict = issubclass(kind, dict) and not hasattr(kind, "__dataclass_fields__")
        self._done[kind] = ObjectCheck(fields, build=None if is_typed_dict else kind)
        del self._open[kind]
        return self._done[kind]


def has_tag(annotation: Any) -> bool:
    """Whether an annotation is a discriminated union of pydantic 2, which alone knows its tags."""
    return any(
        type(item).__module__ in _HOMES_OF_TAGS and getattr(item, "discriminator", None) is not None
        for item in getattr(annotation, "__metadata__", ())
    ) and hasattr(sys.modules.get("pydantic"), "TypeAdapter")


_HOMES_OF_TAGS = ("pydantic.fields", "pydantic.types")


def _unwrapped(
    annotation: Any, constraints: Constraints
) -> tuple[Any, Constraints, list[Callable[[Any], Any]]]:
    """Peel off Annotated, NewType, type aliases, TypeVar and Required/NotRequired.

    Returns:
        The annotation inside, the bounds around it, and the coercers around it, innermost first.
    """
    coercers: list[Callable[[Any], Any]] = []
    for _ in range(32):  # an alias cycle is the author's error, not a reason to hang
        metadata = getattr(annotation, "__metadata__", None)
        if metadata is not None:
            constraints = (*constraints, *constraints_of(metadata))
            coercers[:0] = [item.coerce for item in metadata if isinstance(item, Coercion)]
            annotation = annotation.__origin__
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        elif isinstance(annotation, typing.TypeVar):
            limits = annotation.__constraints__
            annotation = typing.Union[limits] if limits else (annotation.__bound__ or Any)  # noqa: UP007
        elif _is_qualifier(typing.get_origin(annotation)):
            annotation = typing.get_args(annotation)[0]
        else:
            break
    return annotation, constraints, coercers


def _is_qualifier(origin: Any) -> bool:
    return getattr(origin, "_name", None) in ("Required", "NotRequired", "ReadOnly", "Final")


def _literal_choice(value: Any) -> tuple[Any, Any]:
    """Return what a model writes for one value of a Literal; Enum members go by their value."""
    return (value.value, value) if isinstance(value, Enum) else (value, value)


def _enum_choices(kind: type[Enum]) -> list[tuple[Any, Any]]:
    """Return what a model writes for every member: its value where JSON can, else its name."""
    members = list(kind)
    plain = all(type(member.value) in (str, int, float, bool) for member in members)
    return [(member.value if plain else member.name, member) for member in members]


_REQUIRED = object()


def _defaults_of(kind: Any) -> dict[str, object] | None:
    """Return the fields of a dataclass, NamedTuple or TypedDict; None for any other class.

    Each has its default: ABSENT where it may be left out and none can be shown, _REQUIRED where it
    may not.
    """
    if hasattr(kind, "__dataclass_fields__"):
        return {field.name: _default_of(field) for field in dataclasses.fields(kind) if field.init}
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return {name: kind._field_defaults.get(name, _REQUIRED) for name in kind._fields}
    if hasattr(kind, "__required_keys__") and hasattr(kind, "__total__"):
        names = _annotations(kind) or (*kind.__required_keys__, *kind.__optional_keys__)
        return {name: _REQUIRED if name in kind.__required_keys__ else ABSENT for name in names}
    return None


def _default_of(field: dataclasses.Field[Any]) -> object:
    if field.default is not dataclasses.MISSING:
        return field.default
    return _REQUIRED if field.default_factory is dataclasses.MISSING else ABSENT


def _annotations(kind: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except Exception:  # noqa: BLE001 - a name nobody can resolve: those fields accept everything
        return {}


# The checks of all arguments of one tool, and the schema that they amount to.


class Plan:
    """Validates the arguments of one tool.

    Attributes:
        mode: What the validation is called in records: ``comprehensive`` or ``fail_fast``.
        optional: Whether the tool can be called without arguments.
    """

    mode = "comprehensive"
    optional = True

    def prepare(self, arguments: dict[Any, Any], findings: Findings) -> dict[str, Any]:
        """Return the keyword arguments of the function; what is wrong goes into ``findings``.

        A plan around a foreign model raises that model's own validation error instead.
        """
        return dict(arguments)

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments, for the model."""
        return {"type": "object"}


class HintsPlan(Plan):
    """Validation from type hints."""

    def __init__(self, parameters: Parameters, hints: Hints) -> None:
        self._check = ObjectCheck(
            {
                name: _field(name, annotation, parameters, hints)
                for name, annotation in parameters.annotations.items()
            },
            extra=hints.compile(parameters.extra_annotation) if parameters.takes_extra else None,
        )
        self.optional = not parameters.required

    def prepare(self, arguments: dict[Any, Any], findings: Findings) -> dict[str, Any]:
        """Return the checked arguments."""
        return self._check.members(arguments, (), findings)

    def schema(self) -> dict[str, Any]:
        """Return the schema the hints amount to."""
        return hoisted(self._check.schema())


def _field(name: str, annotation: Any, parameters: Parameters, hints: Hints) -> FieldCheck:
    default = parameters.defaults.get(name, ABSENT)
    check: Check = hints.compile(annotation)
    if default is None and check is not ANYTHING:
        check = _or_null(check)  # ``x: int = None`` means that None is fine
    return FieldCheck(
        name,
        check,
        required=name in parameters.required,
        default=default,
        description=description_of(annotation),
    )


def _or_null(check: Check) -> Check:
    if isinstance(check, UnionCheck):
        if any(isinstance(branch, NullCheck) for branch in check.branches):
            return check
        return UnionCheck([*check.branches, NullCheck()])
    return UnionCheck([check, NullCheck()])


def hoisted(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with the definitions of all its parts at its root, where ``$ref`` looks."""
    definitions: dict[str, Any] = {}

    def lifted(part: Any) -> Any:
        if isinstance(part, list):
            return [lifted(inner) for inner in part]
        if not isinstance(part, dict):
            return part
        for name, definition in part.get("$defs", {}).items():
            definitions[name] = lifted(definition)
        return {key: lifted(inner) for key, inner in part.items() if key != "$defs"}

    whole: dict[str, Any] = lifted(schema)
    return {**whole, "$defs": definitions} if definitions else whole


def schema_hash(schema: Callable[[], dict[str, Any]]) -> str | None:
    """Return 16 hex digits that change when a parameter schema changes; None if it has none."""
    try:
        text = json.dumps(schema(), sort_keys=True, separators=(",", ":"), default=repr)
    except Exception:  # noqa: BLE001 - a schema that cannot be written has no hash
        return None
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def secret_names(schema: Any) -> Iterator[str]:
    """Yield the names of properties that a JSON schema marks as secret, at any depth.

    ``writeOnly`` and the format ``password`` mark one (JSON Schema Validation 2020-12, 9.4; OpenAPI
    3.1, Data Types). pydantic writes both for a ``SecretStr``, whose errors before pydantic 2.4
    quote the clear value like that of any string.
    """
    if isinstance(schema, Mapping):
        properties = schema.get("properties")
        if isinstance(properties, Mapping):
            yield from (name for name, part in properties.items() if _is_secret(part))
        for part in schema.values():
            yield from secret_names(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from secret_names(part)


def _is_secret(part: Any) -> bool:
    if not isinstance(part, Mapping):
        return False
    if part.get("writeOnly") is True or part.get("format") == "password":
        return True
    inside = [part.get("items"), *(part.get("anyOf") or ()), *(part.get("oneOf") or ())]
    return any(_is_secret(branch) for branch in inside)
