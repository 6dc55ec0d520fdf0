"""Tool calls as they stand in the messages of a model: what it asked for, and what it was told.

Every provider and framework writes them in a shape of its own, but all shapes are told apart by
their members, so one walk over any JSON finds them whatever attribute it came from. Arguments and
results are data and never walked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from toolfault_collector.otlp.calls.dialects import decoded
from toolfault_collector.otlp.calls.spans import JSON

__all__ = ["Asked", "Told", "may_tell", "read_messages", "text_of_result", "tool_names"]

MAX_DEPTH: Final = 12
MAX_VALUES: Final = 50_000
_HINTS: Final = ("tool", "function", "Tool", "Function")
_Json = Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that a model asked for."""

    call_id: str | None
    tool: str
    arguments: JSON = None


@dataclass(frozen=True, slots=True)
class Told:
    """What a model was told about a call; ``failed`` where the message says so itself."""

    call_id: str
    tool: str | None
    text: str
    failed: bool = False


_Found: TypeAlias = Asked | Told


def read_messages(value: JSON) -> Iterator[Asked | Told]:
    """Yield the calls and answers in *value*: JSON, a text that holds JSON, or anything else."""
    if isinstance(value, str):
        if not may_tell(value):
            return
        value = decoded(value)
    budget = [MAX_VALUES]
    yield from _walk(value, 0, budget, None)


def text_of_result(value: JSON, depth: int = 0) -> str:
    """Return what a result says as a text: itself, the texts of its blocks, or its JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if depth < 4 and isinstance(value, Mapping):
        for key in ("text", "content", "value", "output", "result"):
            if isinstance(value.get(key), str | list) and not _has_mark(value):
                return text_of_result(value[key], depth + 1)
    if depth < 4 and isinstance(value, list) and all(map(_is_block, value)):
        return "\n".join(filter(None, (text_of_result(part, depth + 1) for part in value)))
    return json.dumps(value, ensure_ascii=False, default=str)


def tool_names(value: JSON, depth: int = 0) -> Iterator[str]:
    """Yield the names of the tools that a request to a model offers, in any provider's shape."""
    value = decoded(value)
    if isinstance(value, list) and depth < 8:
        for each in value:
            inner = decoded(each)
            if isinstance(inner, str):
                yield inner
            else:
                yield from tool_names(inner, depth + 1)
    elif isinstance(value, Mapping) and depth < 8:
        if isinstance(value.get("name"), str):
            yield value["name"]
            return
        for key in (
            "function",
            "json_schema",
            "tool",
            "toolSpec",
            "functionDeclarations",
            "function_declarations",
        ):
            yield from tool_names(value.get(key), depth + 1)


def _is_block(value: JSON) -> bool:
    return isinstance(value, Mapping) and ("text" in value or "type" in value)


def _has_mark(value: _Json) -> bool:
    """Say whether an object says itself whether it failed, which its text alone would not."""
    return any(key in value for key in ("isError", "is_error", "error", "status", "success"))


def _walk(value: JSON, depth: int, budget: list[int], under: str | None) -> Iterator[_Found]:
    budget[0] -= 1
    if depth > MAX_DEPTH or budget[0] < 0:
        return
    if isinstance(value, Mapping):
        yield from _walk_object(value, depth, budget, under)
    elif isinstance(value, list):
        for part in value:
            if isinstance(part, dict | list | str):
                yield from _walk(part, depth + 1, budget, under)
    elif under in _IN_TEXTS and value[:1] in ("[", "{") and may_tell(value):
        inner = decoded(value)
        if not isinstance(inner, str):
            yield from _walk(inner, depth + 1, budget, None)


def _walk_object(
    value: _Json, depth: int, budget: list[int], under: str | None
) -> Iterator[_Found]:
    if under == "invalid_tool_calls":
        yield from _invalid(value)
        return
    found = next((each for shape in _SHAPES if (each := shape(value, under))), None)
    if found is not None:
        yield found
    skipped = _OWN if found is not None else _DATA
    for key, part in value.items():
        if key not in skipped and isinstance(part, dict | list | str):
            yield from _walk(part, depth + 1, budget, key)


def _invalid(value: _Json) -> Iterator[_Found]:
    """Read a call that LangChain could not read: its arguments are no JSON. Nothing answers it."""
    call_id, tool = value.get("id"), value.get("name")
    if (asked := _asked(call_id, tool, value.get("args"))) is not None:
        yield asked
        reason = _text(value.get("error")) or "The arguments are not valid JSON."
        if (told := _told(call_id, tool, reason, True)) is not None:
            yield told


def may_tell(text: str) -> bool:
    """Say whether a text may hold calls at all, before it is decoded."""
    return any(hint in text for hint in _HINTS)


# Members of a message that hold data, and those of a call or an answer itself.
_DATA: Final = frozenset(
    {"arguments", "args", "input_schema", "parameters", "tools", "tool_definitions", "config"}
)
_OWN: Final = _DATA | {"content", "response", "result", "output", "input", "function"}
# Members whose text may be JSON again.
_IN_TEXTS: Final = frozenset({"content", "message", "messages", "tool_calls", "parts"})


def _text(value: JSON) -> str | None:
    if isinstance(value, str) and value:
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _asked(call_id: JSON, tool: JSON, arguments: JSON) -> Asked | None:
    name = _text(tool)
    return Asked(_text(call_id), name, arguments) if name else None


def _told(call_id: JSON, tool: JSON, value: JSON, failed: bool) -> Told | None:
    known = _text(call_id)
    return Told(known, _text(tool), text_of_result(value), failed) if known else None


def _typed(value: _Json, under: str | None) -> _Found | None:
    """Read parts that name their type: OpenTelemetry, OpenAI, Anthropic, LangChain, Vercel."""
    kind = value.get("type")
    if kind == "tool_call":  # OpenTelemetry's parts, LangChain's calls
        inner = value.get("arguments", value.get("args"))
        return _asked(value.get("id"), value.get("name"), inner)
    if kind in ("tool_call_response", "tool_result_response"):
        result = value.get("response", value.get("result"))
        failed = value.get("is_error") is True or _failed_status(value)
        return _told(value.get("id"), value.get("name"), result, failed)
    if kind == "tool_use":  # Anthropic
        return _asked(value.get("id"), value.get("name"), value.get("input"))
    if kind == "tool_result":
        failed = value.get("is_error") is True
        return _told(value.get("tool_use_id"), value.get("name"), value.get("content"), failed)
    if kind == "function_call":  # OpenAI Responses
        return _asked(value.get("call_id"), value.get("name"), value.get("arguments"))
    if kind == "function_call_output":
        failed = _failed_status(value)
        return _told(value.get("call_id"), value.get("name"), value.get("output"), failed)
    if kind == "tool-call":  # Vercel AI SDK
        return _asked(value.get("toolCallId"), value.get("toolName"), _vercel_input(value))
    if kind in ("tool-result", "tool-error"):
        result = value.get("output", value.get("result", value.get("error")))
        marked = isinstance(result, Mapping) and str(result.get("type", "")).startswith("error")
        denied = isinstance(result, Mapping) and result.get("type") == "execution-denied"
        failed = kind == "tool-error" or value.get("isError") is True or marked
        told = result.get("value", result.get("reason")) if marked or denied else result
        text = "Tool execution denied." if denied and not told else told
        return _told(value.get("toolCallId"), value.get("toolName"), text, failed)
    if kind == "tool" and "tool_call_id" in value:  # LangChain's dumps
        return _tool_message(value)
    return None


def _vercel_input(value: _Json) -> JSON:
    return value.get("input", value.get("args"))


def _failed_status(value: _Json) -> bool:
    return value.get("status") in ("error", "failed")


def _by_role(value: _Json, under: str | None) -> _Found | None:
    """Read answers of OpenAI's chat messages, which OpenInference and Traceloop keep."""
    if value.get("role") == "tool" and "tool_call_id" in value:
        return _tool_message(value)
    kwargs = value.get("kwargs")
    if isinstance(kwargs, Mapping) and "tool_call_id" in kwargs:
        return _tool_message(kwargs)
    if value.get("role") == "tool" and "id" in value and "content" in value:
        return _told(value["id"], value.get("name"), value["content"], False)
    return None


def _tool_message(value: _Json) -> Told | None:
    failed = _failed_status(value) or value.get("is_error") is True
    return _told(value.get("tool_call_id"), value.get("name"), value.get("content"), failed)


def _function(value: _Json, under: str | None) -> _Found | None:
    """Read calls that hold a function: OpenAI's chat messages."""
    function = value.get("function")
    if not isinstance(function, Mapping) or "arguments" not in function:
        return None
    return _asked(value.get("id"), function.get("name"), function.get("arguments"))


def _gemini(value: _Json, under: str | None) -> _Found | None:
    """Read Gemini's parts, in either spelling."""
    for key in ("function_call", "functionCall"):
        call = value.get(key)
        if isinstance(call, Mapping) and "name" in call and ("args" in call or "id" in call):
            return _asked(call.get("id"), call["name"], call.get("args"))
    for key in ("function_response", "functionResponse"):
        answer = value.get(key)
        if isinstance(answer, Mapping):
            result = answer.get("response")
            failed = isinstance(result, Mapping) and bool(result.get("error"))
            return _told(answer.get("id"), answer.get("name"), result, failed)
    return None


def _bedrock(value: _Json, under: str | None) -> _Found | None:
    """Read Bedrock's blocks, which Strands keeps."""
    call, answer = value.get("toolUse"), value.get("toolResult")
    if isinstance(call, Mapping):
        return _asked(call.get("toolUseId"), call.get("name"), call.get("input"))
    if isinstance(answer, Mapping):
        failed = answer.get("status") == "error"
        return _told(answer.get("toolUseId"), None, answer.get("content"), failed)
    return None


def _listed(value: _Json, under: str | None) -> _Found | None:
    """Read calls in a list of calls, which need not say that they are some."""
    if "toolCallId" in value and "toolName" in value and ("input" in value or "args" in value):
        return _asked(value["toolCallId"], value["toolName"], _vercel_input(value))
    if (
        under in ("tool_calls", "toolCalls", "function_calls", "tool_call", None)
        and "name" in value
    ):
        for key in ("arguments", "args"):
            if key in value:
                call_id = value.get("id", value.get("call_id"))
                return _asked(call_id, value["name"], value[key])
    return None


_SHAPES: Final[tuple[Callable[[_Json, str | None], _Found | None], ...]] = (
    _typed,
    _by_role,
    _function,
    _gemini,
    _bedrock,
    _listed,
)
