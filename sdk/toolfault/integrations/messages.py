"""Calls out of the messages of a loop that is written by hand: ``capture_messages``."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolfault.errors import ConfigError
from toolfault.integrations._conversation import conversation_of
from toolfault.integrations.seen import Seen, observe

__all__ = ["PROVIDERS", "capture_messages"]

_REMEMBERED = 4_096  # calls of which a second look at the same messages is recognised
_captured: OrderedDict[tuple[str | None, str], None] = OrderedDict()
_lock = threading.Lock()


def capture_messages(
    messages: Iterable[Any], *, provider: str = "openai", conversation: str | None = None
) -> int:
    """Report the tool calls of *messages* that have an answer and were not reported before.

    Call it with the whole history before each request to the model, or once at the end. Nothing of
    the messages is changed. Objects of the provider's client are read like dictionaries.

    A call failed where its answer says so: ``is_error`` (Anthropic), or a JSON object with
    ``"success": false`` or ``"isError": true``. A call whose arguments are not JSON failed, too.

    Args:
        messages: The history, oldest first.
        provider: ``openai`` (Chat Completions) or ``anthropic`` (Messages).
        conversation: Id of the conversation, where no ``toolfault.conversation`` is open.

    Returns:
        How many calls were reported. Never raises for what stands in the messages.

    Raises:
        ConfigError: The provider is another one.
    """
    read = PROVIDERS.get(provider)
    if read is None:
        raise ConfigError(f"capture_messages() knows {', '.join(PROVIDERS)}; not {provider!r}")
    try:
        pairs = list(_answered(read, messages))
    except Exception:  # noqa: BLE001 - the promise to the host
        return 0
    reported = 0
    for call, answer in pairs:
        seen = _seen(call, answer, conversation)
        if _is_new(seen):
            observe(lambda seen=seen: seen)  # type: ignore[misc] # a default binds it now
            reported += 1
    return reported


_Part = dict[str, Any]


def _answered(read: Any, messages: Iterable[Any]) -> Iterator[tuple[_Part, _Part]]:
    """Yield each call with its answer, in the order of the answers."""
    open_calls: dict[str, _Part] = {}
    for index, message in enumerate(messages):
        for part in read(message, index):
            if "tool" in part:
                open_calls[part["id"]] = part
            elif part["id"] in open_calls:
                yield open_calls.pop(part["id"]), part


def _openai(message: Any, index: int) -> Iterator[_Part]:
    if _get(message, "role") == "tool":
        content = _text(_get(message, "content"))
        yield {"id": _get(message, "tool_call_id"), "content": content, "failed": False}
        return
    for call in _get(message, "tool_calls") or ():
        function = _get(call, "function")
        yield {
            "id": _get(call, "id"),
            "turn": f"m{index}",
            "tool": str(_get(function, "name")),
            "arguments": _get(function, "arguments"),
        }


def _anthropic(message: Any, index: int) -> Iterator[_Part]:
    content = _get(message, "content")
    for block in content if isinstance(content, (list, tuple)) else ():
        kind = _get(block, "type")
        if kind == "tool_use":
            yield {
                "id": _get(block, "id"),
                "turn": f"m{index}",
                "tool": str(_get(block, "name")),
                "arguments": _get(block, "input"),
            }
        elif kind == "tool_result":
            yield {
                "id": _get(block, "tool_use_id"),
                "content": _text(_get(block, "content")),
                "failed": _get(block, "is_error") is True,
            }


PROVIDERS = {"openai": _openai, "anthropic": _anthropic}


def _get(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def _text(content: Any) -> str:
    """Return the text of an answer: plain, or the text blocks of a list."""
    if isinstance(content, (list, tuple)):
        texts = (_get(block, "text") for block in content)
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _seen(call: _Part, answer: _Part, conversation: str | None) -> Seen:
    content = answer["content"]
    result = _json(content)
    failed = answer["failed"] or _says_so(result)
    arguments = call["arguments"]
    unreadable = isinstance(arguments, str) and bool(arguments.strip()) and _json(arguments) is None
    stage = "parse" if unreadable else "returned" if failed else "ok"
    return Seen(
        "messages",
        call["tool"],
        call_id=call["id"],
        turn=call["turn"],
        conversation=conversation,
        arguments=arguments,
        stage=stage,
        result=result if isinstance(result, dict) else None,
        told=content if stage != "ok" else None,
        duration_ms=0.0,
    )


def _says_so(result: Any) -> bool:
    return isinstance(result, dict) and (
        result.get("success") is False or result.get("isError") is True
    )


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_new(seen: Seen) -> bool:
    if seen.call_id is None:
        return True
    present = conversation_of(seen)
    key = (present.id if present is not None else None, str(seen.call_id))
    with _lock:
        if key in _captured:
            return False
        _captured[key] = None
        if len(_captured) > _REMEMBERED:
            _captured.popitem(last=False)
    return True
