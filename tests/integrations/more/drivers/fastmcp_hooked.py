"""A hooked server of FastMCP, and a client that reports nothing and lists no tools."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import mcp
from fastmcp import FastMCP
from tests.integrations.more.drivers.fastmcp_server import (
    IDEMPOTENT,
    LACKS,
    SIDE,
    add_tools,
    call_tools,
)
from tests.integrations.more.scenes import Outcome, Scenario

__all__ = ["FRAMEWORKS", "IDEMPOTENT", "LACKS", "SIDE", "run"]

FRAMEWORKS = ("mcp", "fastmcp")


def run(scenario: Scenario, outcome: Outcome) -> None:
    """Make the calls as a program does that knows nothing of toolfault."""
    session: Any = mcp.ClientSession
    hooked = session.call_tool
    session.call_tool = inspect.unwrap(hooked)
    server = FastMCP("stub")
    add_tools(server, scenario)
    try:
        asyncio.run(call_tools(server, scenario, outcome, listed=False))
    finally:
        session.call_tool = hooked
