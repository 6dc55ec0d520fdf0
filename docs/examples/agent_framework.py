"""Microsoft Agent Framework: one line before an agent you have."""

from typing import Any

from agent_framework import Agent, tool

import toolfault

toolfault.init(agent="travel")


@tool(approval_mode="never_require")
def book(restaurant: str, people: int) -> str:
    """Book a table."""
    return f"booked {restaurant} for {people}"


async def run(model: Any) -> str:
    """Run the agent with any chat client of the framework."""
    return str(await Agent(client=model, tools=[book]).run("Book a table for four."))
