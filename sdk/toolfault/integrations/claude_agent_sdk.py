"""Claude Agent SDK, 0.1.33 up to 0.2.189: its hooks, in the form that its options take.

::

    from toolfault.integrations.claude_agent_sdk import hooks

    options = ClaudeAgentOptions(hooks=hooks())

The text of a failed call cannot be replaced there, so nothing is improved. Claude Code itself has
hooks of the same form: ``python -m toolfault hook claude-code``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolfault.integrations.seen import Seen, observe
from toolfault.telemetry._claude_code import conversation_in, failure_of

__all__ = ["hooks", "observed"]

_EVENTS = ("PostToolUse", "PostToolUseFailure")


def hooks(others: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the hooks of ``ClaudeAgentOptions`` that report each finished tool call.

    Args:
        others: Hooks of your own, by event; they are kept.
    """
    from claude_agent_sdk import HookMatcher

    mine = {event: [HookMatcher(hooks=[observed])] for event in _EVENTS}
    kept = dict(others or {})
    return {**kept, **{event: [*kept.get(event, ()), *mine[event]] for event in _EVENTS}}


async def observed(message: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
    """Report what one hook message tells; it never changes what the agent does.

    Args:
        message: The input of a ``PostToolUse`` or ``PostToolUseFailure`` hook.
        tool_use_id: Id of the call; the message has it, too.
        context: Unused.
    """
    del context
    observe(lambda: _seen(message, tool_use_id))
    return {}


def _seen(message: Mapping[str, Any], tool_use_id: str | None) -> Seen:
    tool, duration = message["tool_name"], message.get("duration_ms")
    seen = Seen(
        "claude_agent_sdk",
        tool,
        call_id=message.get("tool_use_id") or tool_use_id,
        conversation=conversation_in(message),
        agent=message.get("agent_type"),
        arguments=message.get("tool_input") or {},
        duration_ms=float(duration) if isinstance(duration, int | float) else 0.0,
    )
    if message["hook_event_name"] == "PostToolUse":
        seen.result = message.get("tool_response")
        return seen
    failure = failure_of(tool, message)
    seen.error, seen.told = failure, failure.llm_message or failure.message
    if str(failure.code) == "not_available":
        seen.stage = "unknown"
    else:
        seen.stage = "validation" if failure.issues else "exec"
    return seen
