"""A loop of your own: one line around its client, here OpenAI's."""

import json
from typing import Any

import toolfault

toolfault.init(agent="travel")


def book_table(restaurant: str, people: int) -> str:
    """Book a table."""
    return f"booked {restaurant} for {people}"


def answer(call: Any) -> dict[str, Any]:
    """Run a call of the model; what is told of a failure says that it is one."""
    try:
        told = book_table(**json.loads(call.function.arguments))
    except (TypeError, ValueError) as error:
        told = json.dumps({"success": False, "error": str(error)})
    return {"role": "tool", "tool_call_id": call.id, "content": told}


def run(model: Any) -> str:
    """Talk until the model calls no tool; ``model`` is ``OpenAI()``."""
    client = toolfault.wrap_openai(model)
    messages: list[Any] = [{"role": "user", "content": "Book a table for four."}]
    with toolfault.conversation("chat-1"):
        while True:
            asked = client.chat.completions.create(model="gpt-5", messages=messages)
            message = asked.choices[0].message
            messages += [message, *map(answer, message.tool_calls or ())]
            if not message.tool_calls:
                return str(message.content)
