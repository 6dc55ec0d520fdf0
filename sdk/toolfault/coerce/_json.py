"""JSON inside a text argument."""

from __future__ import annotations

import json
import sys

from toolfault.errors._types import is_a

__all__ = ["InvalidJSONError", "coerce_json", "container_from_json"]


class InvalidJSONError(ValueError):
    """A text that should hold JSON does not; says what the parser expected."""


def coerce_json(value: object) -> object:
    """A text that holds a JSON object or array as that object or array.

    Anything but text is returned unchanged, and so is the text of a bare number, string,
    boolean or null: it is not what a complex parameter needs, and validation will say so.

    Raises:
        InvalidJSONError: The text is not JSON. Where pydantic is loaded, its own
            `PydanticCustomError` of type `malformed_json` is raised, so that the error joins
            all others of the model. Both are `ValueError`s that read `Invalid JSON: ...`.
    """
    if not is_a(value, str):
        return value
    try:
        parsed = json.loads(str.__str__(value), parse_constant=_refused)
    except json.JSONDecodeError as exc:
        raise _invalid(exc.msg) from None
    except RecursionError:
        raise _invalid("nested too deep") from None
    except ValueError as exc:
        raise _invalid(str(exc)[:100]) from None
    return parsed if isinstance(parsed, (dict, list)) else value


def container_from_json(text: str, kind: type) -> object | None:
    """*text* parsed when it is JSON of *kind* (`dict` or `list`), else None; never raises."""
    try:
        parsed = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return None
    return parsed if type(parsed) is kind else None


def _refused(constant: str) -> object:
    raise ValueError(f"{constant} is not a JSON number")


def _invalid(reason: str) -> ValueError:
    core = sys.modules.get("pydantic_core")
    custom = getattr(core, "PydanticCustomError", None)
    if custom is not None:
        error: ValueError = custom("malformed_json", "Invalid JSON: {error}", {"error": reason})
        return error
    return InvalidJSONError(f"Invalid JSON: {reason}")
