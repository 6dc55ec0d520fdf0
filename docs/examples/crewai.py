"""CrewAI: one line before a crew you have."""

from typing import Any

from crewai import Agent, Crew, Task
from crewai.tools import tool

import toolfault

toolfault.init(agent="travel")


@tool
def book(restaurant: str, people: int) -> str:
    """Book a table."""
    return f"booked {restaurant} for {people}"


def run(model: Any) -> str:
    """Run the crew with any LLM of CrewAI."""
    agent = Agent(role="booker", goal="book", backstory="", llm=model, tools=[book])
    task = Task(description="Book a table for four.", expected_output="what", agent=agent)
    return str(Crew(agents=[agent], tasks=[task]).kickoff())
