"""Strands Agents, 1.30 up to 1.62: the tool calls of every agent.

Strands replaces arguments that are no JSON by ``{}`` before anybody can see them; such a call is
refused for missing arguments, and that is what the model reads and what is reported. Before 1.30
what a tool returns has become a text that is no JSON: ``{"success": False}`` of a tool that is not
decorated counts as a success there.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from typing import Any

from toolfault.integrations._discover import hook
from toolfault.integrations._threads import latest_answer, thread_of
from toolfault.integrations.seen import Call, Seen, current_call

__all__ = ["install"]

_UNNAMED = "Strands Agents"
_END = "ToolResultEvent"
_PAUSE = "ToolInterruptEvent"


def install(module: Any) -> None:
    """Hook ``ToolExecutor._stream``, through which every call of an agent runs."""
    hook("strands", module.ToolExecutor, "_stream", _streams)
    # Older versions leave the exception out of the result, and give it to hooks of the host alone.
    name = "_invoke_after_tool_call_hook"
    hook("strands", module.ToolExecutor, name, _after, optional=True)


async def _after(original: Any, *args: Any, **kwargs: Any) -> Any:
    """Keep what a tool raised last: it may be tried again."""
    call = current_call()
    if call is not None and call.seen is not None:
        call.seen.error = kwargs.get("exception")
    return await original(*args, **kwargs)


async def _streams(
    original: Any, agent: Any, tool_use: Any, tool_results: Any, *args: Any, **kwargs: Any
) -> AsyncIterator[Any]:
    """Observe one call: the last event of its stream is the result that the model reads."""
    call = Call(lambda: _seen(agent, tool_use))
    events = original(agent, tool_use, tool_results, *args, **kwargs)
    last: Any = None
    try:
        while True:
            with call:  # not across a yield: the consumer has a context of its own
                try:
                    event = await anext(events)
                except StopAsyncIteration:
                    break
            last = event
            if type(event).__name__ == _END:
                text = call.ended(functools.partial(_answered, agent=agent, event=event))
                if text is not None:
                    event.tool_result["content"] = [{"text": text}]
            yield event
    except BaseException as error:
        call.raised(error)
        raise
    finally:
        await events.aclose()
    if type(last).__name__ == _PAUSE:
        call.ended(_paused)


def _seen(agent: Any, tool_use: Any) -> Seen:
    thread = thread_of(agent)
    manager = getattr(agent, "_session_manager", None)
    session = getattr(manager, "session_id", None) or thread.id
    config = agent.model.get_config() if hasattr(agent.model, "get_config") else {}
    return Seen(
        "strands",
        tool_use["name"],
        call_id=tool_use["toolUseId"],
        turn=f"{session}/{latest_answer(agent.messages)}",
        conversation=session,
        model=config.get("model_id") if isinstance(config, dict) else None,
        agent=None if agent.name == _UNNAMED else agent.name,
        arguments=tool_use["input"],
    )


def _answered(seen: Seen, *, agent: Any, event: Any) -> None:
    result = event.tool_result
    blocks = result.get("content", ())
    text = "\n".join(block["text"] for block in blocks if "text" in block)
    tools = agent.tool_registry.registry
    tool = tools.get(seen.tool)
    if tool is not None:
        seen.schema = tool.tool_spec["inputSchema"].get("json")
    error, seen.error = getattr(event, "exception", None) or seen.error, None
    if result.get("status") != "error":
        seen.result = blocks[0]["json"] if len(blocks) == 1 and "json" in blocks[0] else text
        return
    seen.error, seen.told = error, text
    seen.known_tools = tuple(tools)
    if tool is None:
        seen.stage = "unknown"
        return
    seen.fn = getattr(tool, "_tool_func", None)
    # Arguments are refused by a ValueError; any other exception is of the body, whatever it says.
    refusing = seen.error is None or isinstance(seen.error, ValueError)
    if refusing and "alidation failed" in text[:100]:
        seen.stage = "validation"
    else:
        seen.stage = "returned" if seen.error is None else "exec"


def _paused(seen: Seen) -> None:
    seen.stage = "control"
