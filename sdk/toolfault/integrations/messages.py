"""Calls out of the messages of a loop that is written by hand: ``capture_messages``."""

from __future__ import annotations

import functools
import json
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from toolfault._forks import fork_safe_lock
from toolfault.errors import ConfigError
from toolfault.integrations._conversation import conversation_of
from toolfault.integrations._providers import PROVIDERS, Part, answered
from toolfault.integrations.seen import Seen, observe

__all__ = ["capture_messages", "report_answered"]

_REMEMBERED = 4_096  # calls of which a second look at the same messages is recognised
_captured: OrderedDict[int, None] = OrderedDict()  # by hash: arguments may be long
_lock = fork_safe_lock()


def capture_messages(
    messages: Iterable[Any],
    *,
    provider: str = "openai",
    conversation: str | None = None,
    model: str | None = None,
) -> int:
    """Report the tool calls of *messages* that have an answer and were not reported before.

    Call it with the whole history before each request to the model, or once at the end. Nothing of
    the messages is changed. Objects of the provider's client are read like dictionaries.

    A call failed where its answer says so: ``is_error`` (Anthropic), or a JSON object with
    ``"success": false`` or ``"isError": true``. A call whose arguments are not JSON failed, too.

    Args:
        messages: The history, oldest first.
        provider: ``openai`` (Chat Completions), ``anthropic`` (Messages) or ``openai_responses``
            (the items of ``input``).
        conversation: Id of the conversation, where no ``toolfault.conversation`` is open.
        model: Name of the model, where the conversation has none.

    Returns:
        How many calls were reported. Never raises for what stands in the messages.

    Raises:
        ConfigError: The provider is another one.
    """
    read = PROVIDERS.get(provider)
    if read is None:
        raise ConfigError(f"capture_messages() knows {', '.join(PROVIDERS)}; not {provider!r}")
    template = Seen("messages", "", conversation=conversation, model=model)
    try:
        return report_answered(answered(read, messages), template)
    except Exception:  # noqa: BLE001 - the promise to the host
        return 0


def report_answered(pairs: Iterable[tuple[Part, Part]], template: Seen) -> int:
    """Report the calls that were not reported before; return how many.

    Args:
        pairs: Calls and their answers.
        template: What is known of all of them: conversation and model.
    """
    named = conversation_of(template)
    new = [pair for pair in pairs if _is_new(pair[0], None if named is None else named.id)]
    for call, answer in new:
        observe(functools.partial(_seen, call, answer, template))
    return len(new)


def _seen(call: Part, answer: Part, template: Seen) -> Seen:
    content = answer["content"]
    result = _json(content)
    arguments = call["arguments"]
    unreadable = isinstance(arguments, str) and bool(arguments.strip()) and _json(arguments) is None
    stage = "parse" if unreadable else "returned" if answer["failed"] or _says_so(result) else "ok"
    return replace(
        template,
        tool=call["tool"],
        call_id=call["id"],
        turn=call["turn"],
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


def _is_new(call: Part, conversation: str | None) -> bool:
    if call["id"] is None:
        return True
    # Some models number their calls anew in every chat or turn.
    hashed = hash((conversation, str(call["id"]), call["tool"], str(call["arguments"])))
    with _lock:
        if hashed in _captured:
            return False
        _captured[hashed] = None
        if len(_captured) > _REMEMBERED:
            _captured.popitem(last=False)
    return True
