"""The forms a `ToolResult` takes outside: the contract dict and the messages of providers."""

from __future__ import annotations

import json

from toolfault.errors._codes import ToolErrorCode
from toolfault.errors._error import ToolError
from toolfault.errors._json import to_jsonable
from toolfault.errors._words import INTERNAL_TEXT, UNAVAILABLE_TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from toolfault.errors._result import ToolResult

__all__ = ["contract_dict", "error_of_text", "text_content", "tool_message"]

RESERVED = frozenset({"success", "error", "error_code", "error_details", "metadata"})
_DEEPEST_DATA = 100


def contract_dict(result: ToolResult[Any]) -> dict[str, object]:
    """See `ToolResult.to_dict` (contract.md 3.8)."""
    if result.success:
        return _success_dict(result)
    error = error_of(result)
    payload = error.to_llm_payload()
    shape: dict[str, object] = {"success": False, "error": result.message or INTERNAL_TEXT}
    _merge(shape, _echo(result))
    _merge(shape, _plain(result.error_defaults))
    if result.value is not None:
        _add_data(shape, to_jsonable(result.value, redact=True, max_depth=20, max_items=1_000))
    shape["error_code"] = payload["code"]
    shape["error_details"] = payload
    return _with_metadata(shape, result)


def _success_dict(result: ToolResult[Any]) -> dict[str, object]:
    shape: dict[str, object] = {"success": True, "error": None}
    _merge(shape, _echo(result))
    if result.exclude_value_from_context:
        shape["message"] = result.message
    elif result.value is not None:
        _add_data(shape, _data(result.value))
    return _with_metadata(shape, result)


def _with_metadata(shape: dict[str, object], result: ToolResult[Any]) -> dict[str, object]:
    if result.metadata:
        shape["metadata"] = _plain(result.metadata)
    return shape


def _echo(result: ToolResult[Any]) -> dict[str, object]:
    """Echoed arguments: they came from the model and may hold a secret, so they are redacted."""
    return _plain(result.fields, redact=True)


def _plain(value: Mapping[str, object], *, redact: bool = False) -> dict[str, object]:
    plain = to_jsonable(
        dict(value), redact=redact, max_depth=_DEEPEST_DATA, max_items=None, max_string=None
    )
    return plain if isinstance(plain, dict) else {}


def _data(value: object) -> object:
    """The tool's own data: complete, only made fit for JSON."""
    return to_jsonable(value, max_depth=_DEEPEST_DATA, max_items=None, max_string=None)


def _merge(shape: dict[str, object], more: Mapping[str, object]) -> None:
    shape.update({key: value for key, value in more.items() if key not in RESERVED})


def _add_data(shape: dict[str, object], data: object) -> None:
    """Merge a dict at the top; reserved keys of the tool move under `data`, never win."""
    if not isinstance(data, dict):
        shape["data"] = data
        return
    collided = {k: v for k, v in data.items() if k in RESERVED and shape.get(k, data) != v}
    _merge(shape, data)
    if not collided:
        return
    own = data.get("data")
    if isinstance(own, dict):
        shape["data"] = {**own, **collided}
    else:
        shape["data"] = {"data": own, **collided} if "data" in data else collided


def error_of(result: ToolResult[Any]) -> ToolError:
    """The failure of *result*; made from its text when it was given none."""
    return result.error or error_of_text("unknown", result.message)


def error_of_text(tool: str, text: str) -> ToolError:
    """The failure that *text* for the model stands for."""
    from toolfault.errors._classify import seed_code

    if text == UNAVAILABLE_TEXT:
        return ToolError.unavailable(tool)
    code = seed_code(text) or ("invalid_input" if text[:6].lower() == "error:" else None)
    return ToolError(
        tool, text, code or ToolErrorCode.INTERNAL_ERROR, llm_message=text or INTERNAL_TEXT
    )


def tool_message(result: ToolResult[Any], call_id: str) -> dict[str, object]:
    """See `ToolResult.to_tool_message`."""
    content = contract_dict(result) if result.success else error_of(result).to_llm_payload()
    return {
        "role": "tool",
        "tool_call_id": call_id,
        "content": json.dumps(content, ensure_ascii=False, allow_nan=False),
    }


def text_content(result: ToolResult[Any]) -> str:
    """The result as one text: the model's text of a failure, else the value."""
    if not result.success or result.exclude_value_from_context or result.value is None:
        return result.message
    data = _data(result.value)
    if isinstance(data, str):
        return data
    return json.dumps(data, ensure_ascii=False, allow_nan=False)
