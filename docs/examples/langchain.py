"""LangChain: two lines before an agent you have."""

from typing import Any

from langchain.agents import create_agent

import toolfault

toolfault.init(agent="travel")
toolfault.instrument("langchain", improve=True)  # optional: the model is told all that is wrong


def book(restaurant: str, people: int) -> str:
    """Book a table."""
    return f"booked {restaurant} for {people}"


def run(model: Any) -> str:
    """Run the agent with any chat model of LangChain."""
    agent: Any = create_agent(model, [book])
    messages = [{"role": "user", "content": "Book a table for four."}]
    return str(agent.invoke({"messages": messages})["messages"][-1].content)
