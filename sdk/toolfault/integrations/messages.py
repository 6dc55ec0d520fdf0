"""Calls out of the messages of a loop that is written by hand: ``capture_messages``."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from toolfault.errors import ConfigError
from toolfault.integrations._conversation import conversation_of
from toolfault.integrations._providers import PROVIDERS, Part
from toolfault.integrations.seen import Seen, observe

__all__ = ["capture_messages"]

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


def _answered(read: Any, messages: Iterable[Any]) -> Iterator[tuple[Part, Part]]:
    """Yield each call with its answer, in the order of the answers."""
    open_calls: dict[str, Part] = {}
    for index, message in enumerate(messages):
        for part in read(message, index):
            if "tool" in part:
                open_calls[part["id"]] = part
            elif part["id"] in open_calls:
                yield open_calls.pop(part["id"]), part


def _seen(call: Part, answer: Part, conversation: str | None) -> Seen:
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
