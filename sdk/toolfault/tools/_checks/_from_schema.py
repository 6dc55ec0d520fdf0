"""Checks compiled from a JSON schema: the documented subset of draft 2020-12.

Understood: ``type`` (also a list of types), ``properties``, ``required``,
``additionalProperties``, ``items``, ``prefixItems``, ``enum``, ``const``, ``anyOf``, ``oneOf``
(as anyOf), ``allOf`` of objects (merged), ``$ref`` inside the document, ``nullable`` (OpenAPI),
the bounds ``minimum``, ``maximum``, ``exclusiveMinimum``, ``exclusiveMaximum``, ``multipleOf``,
``minLength``, ``maxLength``, ``pattern``, ``minItems``, ``maxItems``, ``uniqueItems``,
``minProperties``, ``maxProperties``, and the formats date, date-time, time, uuid, uri, email.
Other keywords are ignored: they describe, or they are checked by the tool itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolfault.tools._checks._bounds import Bounds, bounds_from
from toolfault.tools._checks._choices import ChoiceCheck, LaterCheck, UnionCheck
from toolfault.tools._checks._containers import DictCheck, ListCheck, TupleCheck
from toolfault.tools._checks._findings import ABSENT, ANYTHING, Check
from toolfault.tools._checks._formats import schema_format
from toolfault.tools._checks._objects import FieldCheck, ObjectCheck
from toolfault.tools._checks._scalars import BoolCheck, FloatCheck, IntCheck, NullCheck, StrCheck

__all__ = ["Schema"]

_KEYWORDS = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
    "minLength": "min_length",
    "maxLength": "max_length",
    "pattern": "pattern",
    "minItems": "min_length",
    "maxItems": "max_length",
    "minProperties": "min_length",
    "maxProperties": "max_length",
}
# A keyword binds values of its own type only (2020-12, 6.2-6.5).
_KEYWORDS_OF = {
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "string": ("minLength", "maxLength", "pattern"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}


class Schema:
    """Compiles the parts of one JSON schema document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._refs: dict[str, Check] = {}
        self._makers: dict[str, Callable[[Any], Check]] = {
            "string": self._string,
            "integer": lambda part: IntCheck(_bounds(part, "integer")),
            "number": lambda part: FloatCheck(_bounds(part, "number")),
            "boolean": lambda _: BoolCheck(),
            "null": lambda _: NullCheck(),
            "array": self._array,
            "object": self.object,
        }

    def compile(self, part: Any) -> Check:
        """Return the check of one subschema; True and unknown shapes accept everything."""
        if not isinstance(part, Mapping):
            return ANYTHING
        check = self._alternatives(part)
        if check is None:
            check = self._typed(part)
        if part.get("nullable") is True and not isinstance(check, NullCheck):
            return UnionCheck([check, NullCheck()])
        return check

    def _alternatives(self, part: Mapping[str, Any]) -> Check | None:
        """Return the check of a part that is defined by other parts or by a list of values."""
        if isinstance(part.get("$ref"), str):
            return self._ref(part["$ref"])
        if isinstance(part.get("enum"), list):
            return ChoiceCheck([(value, value) for value in part["enum"]])
        if "const" in part:
            return ChoiceCheck([(part["const"], part["const"])])
        for keyword in ("anyOf", "oneOf"):
            if isinstance(part.get(keyword), list) and part[keyword]:
                return UnionCheck([self.compile(branch) for branch in part[keyword]])
        if isinstance(part.get("allOf"), list) and part["allOf"]:
            return self.compile(self._merged(part))
        return None

    def _typed(self, part: Mapping[str, Any]) -> Check:
        kinds = part.get("type")
        if kinds is None:
            kinds = "object" if "properties" in part else "array" if "items" in part else None
        if isinstance(kinds, str):
            maker = self._makers.get(kinds)
            return ANYTHING if maker is None else maker(part)
        if isinstance(kinds, list) and kinds:
            branches = [self._typed({**part, "type": kind}) for kind in kinds]
            return branches[0] if len(branches) == 1 else UnionCheck(branches)
        return ANYTHING

    def _string(self, part: Mapping[str, Any]) -> Check:
        format_check = schema_format(str(part.get("format", "")))
        return format_check or StrCheck(_bounds(part, "string"))

    def _array(self, part: Mapping[str, Any]) -> Check:
        places = part.get("prefixItems")
        size = len(places) if isinstance(places, list) else -1
        if isinstance(places, list) and part.get("minItems") == size == part.get("maxItems"):
            return TupleCheck(tuple(self.compile(place) for place in places), build=list)
        item = ANYTHING if isinstance(places, list) else self.compile(part.get("items"))
        unique = part.get("uniqueItems") is True
        return ListCheck(item, bounds=_bounds(part, "array"), unique=unique)

    def object(self, part: Mapping[str, Any], *, open_by_default: bool = True) -> Check:
        """Return the check of an object part.

        Args:
            part: The subschema.
            open_by_default: What a missing ``additionalProperties`` means; a tool that takes no
                other arguments forbids them.
        """
        extra = part.get("additionalProperties", open_by_default)
        properties = part.get("properties")
        if not isinstance(properties, Mapping) and extra is not False:
            return DictCheck(value=self.compile(extra), bounds=_bounds(part, "object"))
        required = part.get("required")
        names = set(required) if isinstance(required, list) else set()
        fields = properties if isinstance(properties, Mapping) else {}
        # A required name without a property of its own may hold anything, but has to be there.
        fields = {**fields, **dict.fromkeys(names - set(fields), True)}
        return ObjectCheck(
            {name: self._field(name, field, name in names) for name, field in fields.items()},
            extra=None if extra is False else self.compile(extra),
            bounds=_bounds(part, "object"),
        )

    def _field(self, name: str, part: Any, required: bool) -> FieldCheck:
        known = part if isinstance(part, Mapping) else {}
        text = known.get("description")
        return FieldCheck(
            name,
            self.compile(part),
            required=required,
            default=known.get("default", ABSENT),
            description=text if isinstance(text, str) else None,
        )

    def _ref(self, pointer: str) -> Check:
        """Return the check that ``#/...`` points to; other documents are never fetched."""
        if pointer not in self._refs:
            name = pointer.rpartition("/")[2]
            self._refs[pointer] = LaterCheck(name, lambda: self._refs[pointer])
            self._refs[pointer] = self.compile(self._resolve(pointer))
        return self._refs[pointer]

    def _resolve(self, pointer: str) -> Any:
        part: Any = self._document
        if not pointer.startswith("#"):
            return True
        for step in pointer[1:].split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")  # RFC 6901
            if not isinstance(part, Mapping) or key not in part:
                return True
            part = part[key]
        return part

    def _merged(self, part: Mapping[str, Any]) -> dict[str, Any]:
        """Return one object part that says what all parts of ``allOf`` say."""
        merged: dict[str, Any] = {key: value for key, value in part.items() if key != "allOf"}
        for branch in part["allOf"]:
            known = branch
            for _ in range(32):
                if not (isinstance(known, Mapping) and isinstance(known.get("$ref"), str)):
                    break
                known = self._resolve(known["$ref"])
            if not isinstance(known, Mapping):
                continue
            for key, value in known.items():
                if key == "properties":
                    merged[key] = {**merged.get(key, {}), **value}
                elif key == "required":
                    merged[key] = [*merged.get(key, []), *value]
                else:
                    merged.setdefault(key, value)
        return merged


def _bounds(part: Mapping[str, Any], kind: str) -> Bounds | None:
    found = []
    for keyword in _KEYWORDS_OF[kind]:
        limit = part.get(keyword)
        if isinstance(limit, bool) or limit is None:
            continue  # draft 4 wrote exclusiveMinimum as a flag
        found.append((_KEYWORDS[keyword], limit))
    return bounds_from(found, kind=kind)
