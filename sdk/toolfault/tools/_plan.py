"""How the arguments of one tool are validated: compiled from its type hints, once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from toolfault.tools._checks import (
    ABSENT,
    ANYTHING,
    Check,
    FieldCheck,
    Findings,
    Hints,
    NullCheck,
    ObjectCheck,
    UnionCheck,
    description_of,
)
from toolfault.tools._signature import Parameters

__all__ = ["HintsPlan", "Plan", "hoisted", "schema_hash", "secret_names"]


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
        # Bound once: this is the success path of every call.
        self.prepare = self._prepare  # type: ignore[method-assign]

    def _prepare(self, arguments: dict[Any, Any], findings: Findings) -> dict[str, Any]:
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
    import hashlib
    import json

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
