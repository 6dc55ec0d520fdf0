"""One line around a client of OpenAI or Anthropic, for a loop of your own.

Of each request the answered tool calls are reported before it goes out; nothing of it is changed.
No class is touched: frameworks use these clients, too, and their calls would be counted twice.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar

from toolfault.integrations._discover import around
from toolfault.integrations._providers import PROVIDERS, answered, latest_run
from toolfault.integrations.messages import report_answered
from toolfault.integrations.seen import Seen
from toolfault.telemetry import conversation as open_conversation
from toolfault.telemetry._guard import debug, warn
from toolfault.tools import CallRecord, observe

__all__ = ["wrap_anthropic", "wrap_openai"]

Client = TypeVar("Client")
# Who makes requests, where these have the history, and in whose form.
_OPENAI = (("chat.completions", "messages", "openai"), ("responses", "input", "openai_responses"))
_ANTHROPIC = tuple((who, "messages", "anthropic") for who in ("messages", "beta.messages"))
_own: set[str] = set()  # tools that report themselves, at most 1,000


def wrap_openai(client: Client, *, conversation: str | None = None) -> Client:
    """Return a copy of a client of OpenAI that reports the tool calls of your loop.

    Each request of ``chat.completions`` or ``responses`` reports the calls that it answers, once;
    of ``responses`` those that stand in ``input`` beside their outputs. What is a failure
    ``capture_messages`` says. Tools that ``@toolfault.tool`` or a client of MCP runs report
    themselves and are left out.

    Args:
        client: ``OpenAI()``, ``AsyncOpenAI()`` or one derived from them; stays as it is.
        conversation: Id of the conversation, for a client that serves one chat. By default the
            ``toolfault.conversation`` that is open when the request is made, else the baggage or
            trace of OpenTelemetry. Without any of them calls are counted, and not chained.
    """
    return _wrapped(client, _OPENAI, conversation)


def wrap_anthropic(client: Client, *, conversation: str | None = None) -> Client:
    """Return a copy of a client of Anthropic that does what ``wrap_openai`` says.

    Args:
        client: ``Anthropic()``, ``AsyncAnthropic()`` or one derived from them; stays as it is.
        conversation: The same as there.
    """
    return _wrapped(client, _ANTHROPIC, conversation)


def _wrapped(client: Client, places: Any, conversation: str | None) -> Client:
    again = partial(_wrapped, places=places, conversation=conversation)
    try:
        twin = client
        for who, history, provider in places:
            asks = partial(_asks, partial(_report, history, provider, conversation))
            twin = _replaced(twin, who.split("."), asks)
        if twin is not client:
            observe(_note_own)
            made = lambda original, *args, **given: again(original(*args, **given))  # noqa: E731
            vars(twin).update(_methods(client, ("copy", "with_options"), made))
            return twin
    except Exception:  # noqa: BLE001 - the promise to the host
        debug("a client could not be wrapped")
    warn(f"no requests of {type(client).__name__} can be followed; it is used as it is")
    return client


def _replaced(owner: Any, path: list[str], instead: Callable[..., Any]) -> Any:
    """Return a copy of *owner* with other methods at the end of *path*; itself without them."""
    if path:
        part = getattr(owner, path[0], None)
        twin = _replaced(part, path[1:], instead)
        found = {} if twin is part else {path[0]: twin}
    else:
        found = _methods(owner, ("create", "parse", "stream"), instead)
    if not found:
        return owner
    twin = copy.copy(owner)
    vars(twin).update(found)
    for of_methods in ("with_raw_response", "with_streaming_response"):
        vars(twin).pop(of_methods, None)
    return twin


def _methods(owner: Any, names: tuple[str, ...], instead: Callable[..., Any]) -> dict[str, Any]:
    methods = {name: getattr(owner, name, None) for name in names}
    return {name: around(each, instead) for name, each in methods.items() if callable(each)}


def _asks(report: Callable[[Any], None], original: Any, *args: Any, **request: Any) -> Any:
    report(request)
    return original(*args, **request)


def _report(history: str, provider: str, named: str | None, request: dict[str, Any]) -> None:
    try:
        messages, read = request.get(history), PROVIDERS[provider]
        if not isinstance(messages, (list, tuple)):
            return  # an iterator would be used up here
        first = latest_run(read, messages)
        pairs = answered(read, messages[first:], first)
        others = [pair for pair in pairs if pair[0]["tool"] not in _own]
        with nullcontext() if named is None else open_conversation(named):
            report_answered(others, Seen("messages", "", model=request.get("model")))
    except Exception:  # noqa: BLE001 - the promise to the host
        debug("the messages of a request could not be read")


def _note_own(record: CallRecord) -> None:
    if record.framework in (None, "mcp") and len(_own) < 1_000:
        _own.add(record.tool)
