"""The patch of a fix: code for the SDK, for a pydantic model and for a JSON schema, and words.

Names come from data: what is no plain identifier appears in no code. CAPITALS stand for what only
the tool's author knows. A pydantic patch needs nothing of toolfault; where both libraries are used
alike, one patch stands for both. JSON Schema has no conversions: its patches say what to accept,
and the handler converts it.

Sources: pydantic 2 (validators, ``AliasChoices``, strict mode), JSON Schema 2020-12.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, Literal

from toolfault_dashboard.analysis.fixes.opportunities import FixKey
from toolfault_dashboard.analysis.fixes.remedies import advice, plain_name

__all__ = ["Patch", "PatchKind", "patches"]

PatchKind = Literal["SDK", "pydantic", "JSON schema", "description", "message"]


@dataclass(frozen=True, slots=True)
class Patch:
    """One way to carry out a fix.

    Attributes:
        kind: What it is for: code of the SDK, a pydantic model, a JSON schema; a description that
            the model reads before a call, or a message that it reads after one.
        text: Code, JSON or words, with CAPITALS where something is to be filled in.
    """

    kind: PatchKind
    text: str


_INTEGER: Final = "^[+-]?[0-9]+$"
_NUMBER: Final = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_TRUTH: Final = ["true", "false", "yes", "no", "1", "0"]
_BEFORE: Final = "Annotated[{}, BeforeValidator(lambda value: {})]"

_TYPES: Final[dict[str, tuple[str, Any, str]]] = {
    "bool_from_string": (
        "Annotated[bool, Field(strict=False)]",
        {"anyOf": [{"type": "boolean"}, {"enum": _TRUTH}]},
        "A boolean, not text: true or false, without quotes.",
    ),
    "int_from_string": (
        "Annotated[int, Field(strict=False)]",
        {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": _INTEGER}]},
        "An integer, not text: 5, without quotes.",
    ),
    "float_from_string": (
        "Annotated[float, Field(strict=False)]",
        {"anyOf": [{"type": "number"}, {"type": "string", "pattern": _NUMBER}]},
        "A number, not text: 2.5, without quotes.",
    ),
    "json_from_string": (
        _BEFORE.format("T", "json.loads(value) if isinstance(value, str) else value"),
        {
            "anyOf": [
                {"type": ["object", "array"]},
                {"type": "string", "contentMediaType": "application/json"},
            ]
        },
        "JSON itself, not text that holds JSON: no quotes around it.",
    ),
    "wrap_in_list": (
        _BEFORE.format("list[T]", "value if isinstance(value, list) else [value]"),
        {"anyOf": [{"type": "array"}, {"type": ["string", "number", "boolean", "object"]}]},
        "A list, also where there is one item: [item].",
    ),
    "strip": (
        "Annotated[str, StringConstraints(strip_whitespace=True)]",
        None,
        "No white space before or after it.",
    ),
    "date_from_string": (
        _BEFORE.format("date", 'date.fromisoformat(str(value)[:10].replace("/", "-"))'),
        {"type": "string", "examples": ["2026-01-31"]},
        "A date as 2026-01-31.",
    ),
}
"""Of each remedy: the pydantic type, the JSON schema, the description."""


def patches(key: FixKey) -> tuple[Patch, ...]:
    """Return the ways to carry out the fix *key*; none where no remedy is known."""
    code = advice(key).code
    # Some code of the SDK is an annotation of pydantic, which both read alike.
    kind: PatchKind = "pydantic" if "Annotated[" in code or "Field(" in code else "SDK"
    found = [Patch(kind, code)] if code else []
    if key.remedy in _TYPES:
        found += _of_argument(key, *_TYPES[key.remedy])
    elif key.remedy in _OTHERS:
        found += _OTHERS[key.remedy](key)
    return tuple(found)


def _of_argument(key: FixKey, kind: str, schema: Any, said: str) -> list[Patch]:
    name = plain_name(key.field)
    found = [Patch("pydantic", f"{name}: {kind}")]
    if schema is not None:
        found.append(_schema({"properties": {name: schema}}))
    return [*found, Patch("description", said)]


def _choice(key: FixKey) -> list[Patch]:
    name = plain_name(key.field)
    schema = {"properties": {name: {"enum": ["CHOICE"], "description": "Exactly one of these."}}}
    return [_schema(schema), Patch("description", "Exactly one of CHOICES, in lower case.")]


def _clamp(key: FixKey) -> list[Patch]:
    said = "LOW to HIGH; a value beyond is cut to the nearer of them."
    schema = {"properties": {plain_name(key.field): {"type": "integer", "description": said}}}
    return [_schema(schema), Patch("description", said)]


def _alias(key: FixKey) -> list[Patch]:
    name, other = plain_name(key.field), plain_name(key.detail)
    schema = {
        "properties": {other: {"description": f"Another name of {name}."}},
        "anyOf": [{"required": [name]}, {"required": [other]}],
    }
    return [_schema(schema), Patch("description", f"Call it {name}, not {other}.")]


def _default(key: FixKey) -> list[Patch]:
    name = plain_name(key.field)
    said = "Leave it out for DEFAULT."
    return [
        Patch("pydantic", f'{name}: T = Field(default=DEFAULT, description="{said}")'),
        _schema({"properties": {name: {"default": "DEFAULT", "description": said}}}),
        Patch("description", said),
    ]


def _describe(key: FixKey) -> list[Patch]:
    name, said = plain_name(key.field), "Required. WHAT TO WRITE, for example EXAMPLE."
    schema = {"properties": {name: {"description": said}}, "required": [name]}
    return [_schema(schema), Patch("description", said)]


def _all_at_once(_: FixKey) -> list[Patch]:
    return [
        Patch("pydantic", "Parameters.model_validate(arguments)  # reports every problem"),
        Patch("JSON schema", "errors = list(Draft202012Validator(SCHEMA).iter_errors(arguments))"),
        Patch("message", "ARGUMENT: WHAT IS WRONG. OTHER ARGUMENT: WHAT IS WRONG. Correct both."),
    ]


def _reword(_: FixKey) -> list[Patch]:
    return [Patch("message", "ARGUMENT: WHAT IS WRONG. Write WHAT TO WRITE, for example EXAMPLE.")]


def _expose(key: FixKey) -> list[Patch]:
    name = plain_name(key.tool)
    return [Patch("message", f"There is no tool {name}. Call THE RIGHT TOOL instead.")]


_OTHERS: Final = {
    "close_choice": _choice,
    "fold_case": _choice,
    "clamp": _clamp,
    "alias": _alias,
    "default": _default,
    "describe": _describe,
    "all_at_once": _all_at_once,
    "reword": _reword,
    "expose": _expose,
}


def _schema(value: dict[str, Any]) -> Patch:
    return Patch("JSON schema", json.dumps(value, indent=2))
