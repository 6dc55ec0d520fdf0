"""What a response of the model asks for: calls of one turn, and tools that do not exist."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from toolfault.integrations._discover import improves
from toolfault.integrations.seen import Seen, observe

__all__ = ["NAME", "name_run", "not_found", "process", "turn_of"]

NAME = "openai_agents"
_TURNS = 4_096
_turns: OrderedDict[str, str] = OrderedDict()  # call id -> the model's response that made it


def process(original: Any, *a: Any, **k: Any) -> Any:
    """What a model's response asks for; by default an unknown tool ends the run here."""
    response = k.get("response")
    _remember(response)
    try:
        return original(*a, **k)
    except Exception as error:
        text = str(error)
        for item in getattr(response, "output", ()):
            if f"Tool {getattr(item, 'name', None)} not found" in text:
                observe(functools.partial(_unknown, item, k))
                break
        raise


def _remember(response: Any) -> None:
    """Note which calls came in one response."""
    try:
        calls = [i.call_id for i in response.output if getattr(i, "type", "") == "function_call"]
        for call_id in calls:
            # With the first call's id: some providers' adapters give every response one id.
            _turns[call_id] = f"{response.response_id or 'response'}/{calls[0]}"[:128]
        while len(_turns) > _TURNS:
            _turns.popitem(last=False)
    except Exception:  # noqa: BLE001 - the promise to the host
        return


def turn_of(call_id: str) -> str | None:
    """Return which response made a call, as long as it is remembered."""
    return _turns.get(call_id)


def name_run(seen: Seen, agent: Any, run_config: Any) -> None:
    """Add the conversation (group of traces, else trace), the agent and its model."""
    from agents.tracing import get_current_trace

    trace = get_current_trace()
    trace_id = getattr(trace, "trace_id", None)
    seen.conversation = (
        getattr(run_config, "group_id", None)
        or getattr(trace, "group_id", None)
        or (trace_id if trace_id != "no-op" else None)
    )
    seen.agent = getattr(agent, "name", None)
    model = getattr(run_config, "model", None) or getattr(agent, "model", None)
    named = model if isinstance(model, str) else getattr(model, "model", None)
    seen.model = named if isinstance(named, str) else None


def _unknown(item: Any, given: Mapping[str, Any]) -> Seen:
    seen = Seen(NAME, item.name, call_id=item.call_id, arguments=item.arguments)
    seen.turn = turn_of(item.call_id)
    seen.stage = "unknown"
    seen.known_tools = [tool.name for tool in given.get("all_tools") or ()]
    name_run(seen, given.get("agent"), given.get("run_config"))
    return seen


async def not_found(original: Any, *, agent: Any, calls: Any, **k: Any) -> Any:
    """What the model is told of unknown tools, where the host has asked for it."""
    items = await original(agent=agent, calls=calls, **k)
    for call, item in zip(calls, items, strict=False):

        def seen(call: Any = call, item: Any = item) -> Seen:
            found = _unknown(call.tool_call, {**k, "agent": agent})
            found.tool = call.tool_name
            found.known_tools = [tool.name for tool in agent.tools]
            found.told = str(item.output)
            return found

        better = observe(seen, improve=improves(NAME))
        if better is not None:
            item.output = better
            item.raw_item["output"] = better
    return items
