"""LlamaIndex: one line before an agent you have."""

from typing import Any

from llama_index.core.agent.workflow import FunctionAgent

import toolfault

toolfault.init(agent="travel")


def book(restaurant: str, people: int) -> str:
    """Book a table."""
    return f"booked {restaurant} for {people}"


async def run(model: Any) -> str:
    """Run the agent with any function-calling LLM of LlamaIndex."""
    agent = FunctionAgent(name="booker", tools=[book], llm=model, streaming=False)
    return str(await agent.run("Book a table for four."))
