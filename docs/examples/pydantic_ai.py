"""Pydantic AI: one line before an agent you have."""

from typing import Any

from pydantic_ai import Agent

import toolfault

toolfault.init(agent="travel")


def book(restaurant: str, people: int) -> str:
    """Book a table."""
    return f"booked {restaurant} for {people}"


async def run(model: Any) -> str:
    """Run the agent with any model of Pydantic AI."""
    return str((await Agent(model, tools=[book]).run("Book a table for four.")).output)
