"""Claude Agent SDK: its own hooks, in its own options."""

from claude_agent_sdk import ClaudeAgentOptions, query

import toolfault
from toolfault.integrations.claude_agent_sdk import hooks

toolfault.init(agent="reviewer")
options = ClaudeAgentOptions(hooks=hooks())


async def run(question: str) -> None:
    """Ask, and print what comes back."""
    async for message in query(prompt=question, options=options):
        print(message)  # noqa: T201
