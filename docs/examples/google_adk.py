"""Google ADK: one line before an agent you have."""

from typing import Any

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner

import toolfault

toolfault.init(agent="travel")


def book(restaurant: str, people: int) -> str:
    """Book a table."""
    return f"booked {restaurant} for {people}"


async def run(model: Any) -> str:
    """Run the agent with any model of ADK."""
    runner = InMemoryRunner(LlmAgent(name="booker", model=model, tools=[book]))
    events = await runner.run_debug("Book a table for four.", quiet=True)
    return str(events[-1].content.parts[0].text)
