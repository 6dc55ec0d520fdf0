"""LlamaIndex, 0.14.8 up to 0.14.25: the tool calls of function agents, ReAct agents and workflows.

LlamaIndex validates nothing: a missing or an unknown argument is a ``TypeError`` that names one of
them, and a value of the wrong type reaches the tool. Versions before 0.14.8 keep no exception, so
that wrong arguments are one failure without issues there.
"""

from __future__ import annotations

import functools
from contextvars import copy_context
from typing import Any

from toolfault.integrations._discover import hook
from toolfault.integrations._threads import Thread, thread_of
from toolfault.integrations.llama_index.answers import answered
from toolfault.integrations.seen import Call, Seen, note

__all__ = ["install"]


def install(module: Any) -> None:
    """Hook the agent of ``base_agent`` or ``multi_agent_workflow``; both have the same steps."""
    if module.__name__.endswith(".function_tool"):
        hook("llama_index", module, "sync_to_async", _threads)
        return
    agent = getattr(module, "AgentWorkflow", None) or module.BaseWorkflowAgent
    hook("llama_index", agent, "parse_agent_output", _parses)
    hook("llama_index", agent, "call_tool", _calls)
    hook("llama_index", agent, "_call_tool", _runs)


def _threads(original: Any, fn: Any) -> Any:
    """Take the context into a tool's thread, by which a decorated one joins its call.

    LlamaIndex does so itself since 0.14.23.
    """

    async def run(*args: Any, **kwargs: Any) -> Any:
        return await original(functools.partial(copy_context().run, fn))(*args, **kwargs)

    return run


async def _parses(original: Any, agent: Any, ctx: Any, ev: Any) -> Any:
    """Count the turns of the model."""
    thread = await _thread(ctx)
    if thread is not None:
        thread.turns += 1
    return await original(agent, ctx, ev)


async def _calls(original: Any, agent: Any, ctx: Any, ev: Any) -> Any:
    """Observe one call."""
    thread, owner = await _thread(ctx), await _owner(agent, ctx)
    with Call(lambda: _seen(owner, ev, thread)) as call:
        result = await original(agent, ctx, ev)
        text = call.ended(lambda seen: answered(owner, seen, result.tool_output))
        if text is not None:
            result.tool_output.content = text
        return result


async def _runs(original: Any, agent: Any, ctx: Any, tool: Any, tool_input: Any) -> Any:
    """Note the tool that was found."""
    note(fn=tool)
    return await original(agent, ctx, tool, tool_input)


def _seen(agent: Any, ev: Any, thread: Thread | None) -> Seen:
    return Seen(
        "llama_index",
        ev.tool_name,
        call_id=ev.tool_id,
        turn=None if thread is None else thread.turn,
        conversation=None if thread is None else thread.id,
        model=_model(agent),
        agent=getattr(agent, "name", None),
        arguments=ev.tool_kwargs,
    )


async def _thread(ctx: Any) -> Thread | None:
    """Return the conversation: the memory of the agent holds its messages."""
    try:
        return thread_of(await ctx.store.get("memory"))
    except Exception:  # noqa: BLE001 - a call without a conversation is better than none
        return None


async def _owner(agent: Any, ctx: Any) -> Any:
    """Return the agent whose model made the call: an ``AgentWorkflow`` has several."""
    try:
        return agent.agents[await ctx.store.get("current_agent_name")]
    except Exception:  # noqa: BLE001
        return agent


def _model(agent: Any) -> str | None:
    metadata = getattr(getattr(agent, "llm", None), "metadata", None)
    return getattr(metadata, "model_name", None)
