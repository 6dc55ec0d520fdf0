"""Wrapped clients of OpenAI and Anthropic against scripted answers: one JSON object to stdout.

``python -m tests.integrations.clients``, in ``clients-new`` or ``clients-old``. Each request is
made by a client and by its wrapped copy; nothing leaves the process.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import toolfault
from toolfault.testing import capture_events

anthropic: Any = import_module("anthropic")
openai: Any = import_module("openai")
# The newest versions of both use httpx2.
httpx: Any = import_module("httpx2" if find_spec("httpx2") else "httpx")

_TEXT = {"type": "text", "text": "done"}
_MESSAGE = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [_TEXT],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
_STREAMED: list[dict[str, Any]] = [
    {"type": "message_start", "message": {**_MESSAGE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": "done"},
    },
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 1},
    },
    {"type": "message_stop"},
]
_CHOICE = {"index": 0, "finish_reason": "stop"}
_CHAT = {"id": "c", "created": 1, "model": "m"}
_SAID = {"role": "assistant", "content": "done"}
_WHOLE = {**_CHAT, "object": "chat.completion", "choices": [{**_CHOICE, "message": _SAID}]}
_CHUNK = {**_CHAT, "object": "chat.completion.chunk", "choices": [{**_CHOICE, "delta": _SAID}]}
_RESPONSE = {
    "id": "r",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "output": [],
    "status": "completed",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}


def chat(call_id: str) -> list[dict[str, Any]]:
    """A call that failed, in Chat Completions."""
    function = {"name": "book", "arguments": "{}"}
    call = {"id": call_id, "type": "function", "function": function}
    told = json.dumps({"success": False, "error": "no such day"})
    return [
        {"role": "user", "content": "Book it"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": told},
    ]


def messages(call_id: str) -> list[dict[str, Any]]:
    """The same in Messages."""
    call = {"type": "tool_use", "id": call_id, "name": "book", "input": {}}
    told = {"type": "tool_result", "tool_use_id": call_id, "is_error": True}
    return [
        {"role": "user", "content": "Book it"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{**told, "content": "no such day"}]},
    ]


def items(call_id: str) -> list[dict[str, Any]]:
    """The same in Responses."""
    told = json.dumps({"success": False, "error": "no such day"})
    return [
        {"role": "user", "content": "Book it"},
        {"type": "function_call", "call_id": call_id, "name": "book", "arguments": "{}"},
        {"type": "function_call_output", "call_id": call_id, "output": told},
    ]


_TO_CLAUDE = {"model": "m-1", "max_tokens": 9}
# What a request is made with, and how its answer is read.
REQUESTS: dict[str, Callable[[Any, str], Any]] = {
    "openai create": lambda c, i: c.chat.completions.create(model="m-1", messages=chat(i)),
    "openai stream": lambda c, i: c.chat.completions.create(
        model="m-1", messages=chat(i), stream=True
    ),
    "openai raw": lambda c, i: c.chat.completions.with_raw_response.create(
        model="m-1", messages=chat(i)
    ),
    "openai with_options": lambda c, i: c.with_options(timeout=9).chat.completions.create(
        model="m-1", messages=chat(i)
    ),
    "openai responses": lambda c, i: c.responses.create(model="m-1", input=items(i)),
    "anthropic create": lambda c, i: c.messages.create(**_TO_CLAUDE, messages=messages(i)),
    "anthropic create stream": lambda c, i: c.messages.create(
        **_TO_CLAUDE, messages=messages(i), stream=True
    ),
    "anthropic stream": lambda c, i: c.messages.stream(**_TO_CLAUDE, messages=messages(i)),
    "anthropic beta": lambda c, i: c.beta.messages.create(**_TO_CLAUDE, messages=messages(i)),
}


def main() -> None:
    """Make every request four times: sync and async, plain and wrapped."""
    sent: list[Any] = []

    def answers(request: Any) -> Any:
        body = json.loads(request.content)
        sent.append(body)
        path = request.url.path
        if path.endswith("/responses"):
            return httpx.Response(200, json=_RESPONSE)
        is_chat = path.endswith("/chat/completions")
        if not body.get("stream"):
            return httpx.Response(200, json=_WHOLE if is_chat else _MESSAGE)
        told = [(each["type"], each) for each in _STREAMED]
        lines = [f"event: {kind}\ndata: {json.dumps(each)}\n\n" for kind, each in told]
        text = f"data: {json.dumps(_CHUNK)}\n\ndata: [DONE]\n\n" if is_chat else "".join(lines)
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=text)

    transport = httpx.MockTransport(answers)
    own: dict[str, Any] = {"api_key": "x", "http_client": httpx.Client(transport=transport)}
    own_async = {"api_key": "x", "http_client": httpx.AsyncClient(transport=transport)}
    wrapped = {"openai": toolfault.wrap_openai, "anthropic": toolfault.wrap_anthropic}
    kinds = {"openai": openai.OpenAI(**own), "anthropic": anthropic.Anthropic(**own)}
    kinds_async = {
        "openai": openai.AsyncOpenAI(**own_async),
        "anthropic": anthropic.AsyncAnthropic(**own_async),
    }

    async def talk(ask: Any, client: Any, call_id: str) -> str:
        asked = ask(client, call_id)
        return await _read_async(await asked if inspect.isawaitable(asked) else asked)

    told = []
    for name, ask in REQUESTS.items():
        of = name.split()[0]
        for is_async, plain in ((False, kinds[of]), (True, kinds_async[of])):
            twin: Any = wrapped[of](plain)
            results, call_id = [], f"{name} {is_async}"
            with capture_events() as events, toolfault.conversation("chat-1"):
                for client in (plain, twin):
                    asks = talk(ask, client, call_id) if is_async else None
                    result = _LOOP.run_until_complete(asks) if asks else _read(ask(client, call_id))
                    results.append(result)
            calls = [event for event in events if event["type"] == "tool_call"]
            told.append(
                {
                    "request": call_id,
                    "same": results[0] == results[1] and sent[-2] == sent[-1],
                    "answered": results[0],
                    "is_one": isinstance(twin, type(plain)),
                    "events": calls,
                }
            )
    sys.stdout.write(json.dumps({"requests": told}))


_LOOP = asyncio.new_event_loop()


def _read(result: Any) -> str:
    if hasattr(result, "__enter__"):
        with result as stream:
            return repr(list(stream))
    return repr(result.parse() if hasattr(result, "parse") else result)


async def _read_async(result: Any) -> str:
    if hasattr(result, "__aenter__"):
        async with result as stream:
            return repr([each async for each in stream])
    return repr(result.parse() if hasattr(result, "parse") else result)


if __name__ == "__main__":
    main()
