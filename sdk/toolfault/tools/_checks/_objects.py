"""Checks of objects with known fields: arguments, dataclasses, TypedDicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolfault.tools._checks._containers import from_json_text, too_deep
from toolfault.tools._checks._findings import ABSENT, Check, Findings, Loc

__all__ = ["FieldCheck", "ObjectCheck"]


class FieldCheck:
    """One field of an object.

    Attributes:
        name: Key in the JSON object.
        check: What its value has to be.
        required: Whether it has to be there.
        default: Default shown in the schema, or ABSENT.
        description: Text shown in the schema, or None.
    """

    __slots__ = ("check", "default", "description", "name", "required")

    def __init__(
        self,
        name: str,
        check: Check,
        *,
        required: bool = True,
        default: object = ABSENT,
        description: str | None = None,
    ) -> None:
        self.name = name
        self.check = check
        self.required = required
        self.default = default
        self.description = description

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
            findings.add(loc, "invalid_input", words or "Invalid value")
            return checked

    def schema(self) -> dict[str, Any]:
        """Return properties, required and what other keys may be."""
        return {
            "type": "object",
            "properties": {name: field.schema() for name, field in self.fields.items()},
            "required": [name for name, field in self.fields.items() if field.required],
            "additionalProperties": False if self.extra is None else self.extra.schema() or True,
        }
