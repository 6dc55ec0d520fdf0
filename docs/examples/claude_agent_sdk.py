"""Claude Agent SDK: its own hooks, in its own options."""

from claude_agent_sdk import ClaudeAgentOptions, query

import toolfault
from toolfault.integrations.claude_agent_sdk import hooks

toolfault.init(agent="travel")
options = ClaudeAgentOptions(hooks=hooks())


async def run() -> list[object]:
    """Ask Claude Code, and return what comes back."""
    return [message async for message in query(prompt="Book a table for four.", options=options)]
