"""A server of the MCP SDK whose refused calls are seen, with a client to try it."""

import mcp
from mcp.server.mcpserver import MCPServer

import toolfault

toolfault.init(agent="travel")  # in the process of the server; the same line in the client's
server = MCPServer("travel")


@server.tool()
def book(restaurant: str, people: int) -> str:
    """Book a table."""
    return f"booked {restaurant} for {people}"


async def run() -> str:
    """Call the tool as a client does that knows nothing of the schema."""
    async with mcp.Client(server) as client:
        result = await client.call_tool("book", {"people": "four"})
        return "\n".join(block.text for block in result.content)
