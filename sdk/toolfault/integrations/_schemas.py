"""JSON schemas out of the forms in which frameworks keep what a tool takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def of_google(tool: Any) -> Any:
    """Return the schema of the declaration of a tool of ADK, which may be in Google's own form."""
    declaration = None if tool is None else tool._get_declaration()  # noqa: SLF001
    schema = getattr(declaration, "parameters_json_schema", None)
    googles = getattr(declaration, "parameters", None)
    if schema is not None or googles is None:
        return schema
    return _in_lower_case(googles.model_dump(exclude_none=True, mode="json"))


def _in_lower_case(schema: Any) -> Any:
    """Return the schema with JSON's names of types: Google writes them in capitals."""
    if isinstance(schema, list):
        return [_in_lower_case(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: part.lower() if name == "type" and isinstance(part, str) else _in_lower_case(part)
        for name, part in schema.items()
    }


def of_smolagents(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of a tool as the JSON schema that smolagents shows to the model."""
    properties = {}
    for name, given in inputs.items():
        kept = {
            key: value for key, value in given.items() if key not in ("nullable", "description")
        }
        properties[name] = {} if kept.get("type") == "any" else kept
    required = [name for name, given in inputs.items() if not given.get("nullable")]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
