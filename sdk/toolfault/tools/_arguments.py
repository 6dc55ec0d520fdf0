"""Reading the arguments as a model sends them: a JSON string, or an object already parsed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolfault.errors import ArgumentsNotObjectError
from toolfault.errors._cleaning import strict_json

# Some models end a tool call with this marker inside the arguments.
_END_MARKER = "<|tool_call_end|>"


def sanitised(text: str) -> str:
    """Return ``text`` without the end marker, what follows it, and the space around."""
    return text.partition(_END_MARKER)[0].strip()


def parse_arguments(raw: object, *, optional: bool) -> dict[Any, Any]:
    """Return the arguments as a dict.

    Args:
        raw: A JSON string, a mapping, or None for "no arguments".
        optional: Whether the tool can be called without arguments: then an empty string, which
            providers stream for a call without any, means no arguments.

    Raises:
        json.JSONDecodeError: The string is not JSON.
        ArgumentsNotObjectError: It is JSON, but no object.
    """
    kind = type(raw)
    if kind is dict:
        return raw  # type: ignore[return-value]
    if raw is None:
        return {}
    if issubclass(kind, (bytes, bytearray)):
        raw = bytes(raw).decode("utf-8", "replace")  # type: ignore[call-overload]
        kind = str
    if issubclass(kind, str):
        raw = _from_text(str(raw), optional=optional)
        kind = type(raw)
    if issubclass(kind, dict):
        return dict(raw)  # type: ignore[call-overload,no-any-return]
    if _is_mapping(kind):
        return dict(raw)  # type: ignore[call-overload,no-any-return]

    raise ArgumentsNotObjectError(raw)


def parsed(raw: object) -> dict[Any, Any] | None:
    """Return the arguments as a dict; None where they are unknown, or no JSON object."""
    if raw is None:
        return None
    try:
        return parse_arguments(raw, optional=True)
    except Exception:  # noqa: BLE001 - the failure itself says what is wrong
        return None


def _is_mapping(kind: type) -> bool:
    """Say whether values of ``kind`` are mappings, without asking the value itself."""
    try:
        return issubclass(kind, Mapping)
    except Exception:  # noqa: BLE001 - a metaclass may raise anything
        return False


def _from_text(text: str, *, optional: bool) -> Any:
    trimmed = text.strip()
    if not trimmed and optional:
        return {}
    # The marker may be a legitimate part of an argument (code about tool calls), so it is cut only
    # where it breaks the JSON.
    if _END_MARKER in trimmed:
        try:
            return strict_json(trimmed)
        except json.JSONDecodeError:
            trimmed = sanitised(trimmed)
    return strict_json(trimmed)
