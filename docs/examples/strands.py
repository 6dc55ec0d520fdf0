"""Strands: one line before an agent you have."""

from typing import Any

from strands import Agent, tool

import toolfault

toolfault.init(agent="travel")


@tool
def book(restaurant: str, people: int) -> str:
    """Book a table."""
    return f"booked {restaurant} for {people}"


def run(model: Any) -> str:
    """Run the agent with any model of Strands."""
    return str(Agent(model=model, tools=[book], callback_handler=None)("Book a table for four."))
