"""smolagents: one line before an agent you have."""

from typing import Any

from smolagents import ToolCallingAgent, tool

import toolfault

toolfault.init(agent="travel")


@tool
def book(restaurant: str, people: int) -> str:
    """Book a table.

    Args:
        restaurant: which
        people: how many
    """
    return f"booked {restaurant} for {people}"


def run(model: Any) -> str:
    """Run the agent with any model of smolagents."""
    return str(ToolCallingAgent(tools=[book], model=model).run("Book a table for four."))
