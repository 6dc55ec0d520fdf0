"""A server of FastMCP that tells clients everything that is wrong at once."""

from fastmcp import Client, FastMCP

import toolfault

toolfault.init(agent="travel")
toolfault.instrument("mcp", "fastmcp", improve=True)
server = FastMCP("travel")


@server.tool
def book(restaurant: str, people: int) -> str:
    """Book a table."""
    return f"booked {restaurant} for {people}"


async def run() -> str:
    """Call the tool as a client does that knows nothing of the schema."""
    async with Client(server) as client:
        result = await client.call_tool("book", {"people": "four"}, raise_on_error=False)
        return "\n".join(block.text for block in result.content)
