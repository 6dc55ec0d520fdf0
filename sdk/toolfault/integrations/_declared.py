"""A function that stands for a JSON schema, where ``jsonschema`` is not installed.

The SDK needs no package; many frameworks bring none that could check arguments against the schema
they show. Its own checks work on type hints, so the schema is read as type hints: types, required
and unknown arguments, alternatives, lists and enumerations. What a schema says beyond that is not
checked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, Union

_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": None,
    "object": dict[str, Any],
}
_DEEPEST = 6


def function_of(schema: Mapping[str, Any]) -> Callable[..., None]:
    """Return a function whose signature says what ``schema`` says of the arguments.

    Args:
        schema: JSON schema of an object, as models are shown it.

    Raises:
        ValueError: A property has a name that no parameter can have.
    """
    required = set(schema.get("required", ()))
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if name in required else None,
            annotation=_hint(said, schema, 0),
        )
        for name, said in schema.get("properties", {}).items()
    ]
    if schema.get("additionalProperties") is not False:
        parameters.append(inspect.Parameter("others", inspect.Parameter.VAR_KEYWORD))

    def stand_in(**arguments: Any) -> None: ...

    stand_in.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    stand_in.__annotations__ = {each.name: each.annotation for each in parameters}
    return stand_in


def _hint(said: Any, root: Mapping[str, Any], depth: int) -> Any:
    """Return the type hint for one schema; ``Any`` for what hints cannot say."""
    if not isinstance(said, Mapping) or depth > _DEEPEST:
        return Any
    if isinstance(said.get("$ref"), str):
        name = said["$ref"].rpartition("/")[2]
        return _hint(root.get("$defs", {}).get(name), root, depth + 1)
    choices = said.get("enum")
    if isinstance(choices, list) and all(isinstance(each, str | int) for each in choices):
        return Literal[tuple(choices)]
    kinds = said.get("type")
    ways = said.get("anyOf") or said.get("oneOf")
    if ways is None and isinstance(kinds, list):
        ways = [{**said, "type": kind} for kind in kinds]
    if ways is not None:
        return Union[tuple(_hint(way, root, depth + 1) for way in ways)]  # noqa: UP007
    if kinds == "array":
        return list[_hint(said.get("items"), root, depth + 1)]  # type: ignore[misc]
    hint = _TYPES.get(str(kinds), Any)
    return Union[hint, None] if said.get("nullable") else hint  # noqa: UP007
