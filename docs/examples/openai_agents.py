"""OpenAI Agents SDK: two lines before an agent you have."""

from typing import Any

from agents import Agent, Runner, function_tool

import toolfault

toolfault.init(agent="travel")
toolfault.instrument("openai_agents", improve=True)  # optional: the model is told what is wrong


@function_tool
def book(restaurant: str, people: int) -> str:
    """Book a table."""
    return f"booked {restaurant} for {people}"


async def run(model: Any) -> str:
    """Run the agent with any model of the SDK."""
    agent: Any = Agent(name="travel", model=model, tools=[book])
    return str((await Runner.run(agent, "Book a table for four.")).final_output)
