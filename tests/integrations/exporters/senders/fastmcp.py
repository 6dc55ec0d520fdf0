"""A client and a server of FastMCP in one process; both write spans by themselves."""

from __future__ import annotations

import asyncio

from fastmcp import Client, FastMCP
from opentelemetry import trace
from tests.integrations.exporters.senders.common import Case, book, lookup, played, provider


def run(case: Case) -> None:
    """Run one case; MCP knows neither call ids nor conversations."""

    async def call() -> None:
        server = FastMCP("travel", tools=[book, lookup])
        async with Client(server) as client:
            await client.call_tool(case.tool, case.arguments)

    asyncio.run(call())


def main() -> None:
    """Run all cases and send."""
    sending = provider()
    trace.set_tracer_provider(sending)
    played(run)
    sending.shutdown()


if __name__ == "__main__":
    main()
