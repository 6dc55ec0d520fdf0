"""Checks of arrays and maps: list, tuple, set, dict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolfault.tools._checks._bounds import Bounds
from toolfault.tools._checks._findings import ANYTHING, MAX_DEPTH, Check, Findings, Loc

__all__ = ["DictCheck", "ListCheck", "TupleCheck", "from_json_text", "too_deep"]


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
    from toolfault.coerce import coerce_json

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
        before = len(findings.found)
        if not issubclass(type(value), dict):
            value = from_json_text(value, dict, loc, findings)
            if type(value) is not dict:
                if len(findings.found) == before:
                    findings.add(
                        loc,
                        "wrong_type",
                        "Input should be a valid dictionary",
                        expected="object",
                        value=value,
                    )
                return value
        if too_deep(value, loc, findings):
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
            new_item = (
                item if type(item) is self.value.exact else self.value.check(item, at, findings)
            )
            changed = changed or new_key is not key or new_item is not item
            result[new_key] = new_item
        return result if changed else value

    def _key(self, key: Any, loc: Loc, findings: Findings) -> Any:
        # JSON has string keys only, so "1" for dict[int, X] is no repair but the one way to say 1.
        trial = findings.trial(coerce=True)
        checked = self.key.check(key, loc, trial)
        findings.found.extend(trial.found)
        return checked

    def schema(self) -> dict[str, Any]:
        """Return object, type of the values and bounds."""
        shown = {"type": "object", "additionalProperties": self.value.schema()}
        return {**shown, **(self.bounds.schema() if self.bounds else {})}
