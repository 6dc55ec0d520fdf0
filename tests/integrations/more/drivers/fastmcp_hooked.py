"""A hooked server of FastMCP, and a client that reports nothing and lists no tools."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import mcp
from tests.integrations.more.drivers.fastmcp_server import (
    EXPECTED,
    IDEMPOTENT,
    LACKS,
    MODES,
    SIDE,
    call_tools,
    server_of,
)
from tests.integrations.more.scenes import Outcome, Scenario

__all__ = ["EXPECTED", "FRAMEWORKS", "IDEMPOTENT", "LACKS", "MODES", "SIDE", "run"]

FRAMEWORKS = ("mcp", "fastmcp")


def run(scenario: Scenario, outcome: Outcome, *, mode: str = "async") -> None:
    """Make the calls as a program does that knows nothing of toolfault."""
    session: Any = mcp.ClientSession
    hooked = session.call_tool
    session.call_tool = inspect.unwrap(hooked)
    server = server_of(scenario, mode)
    try:
        asyncio.run(call_tools(server, scenario, outcome, listed=False))
    finally:
        session.call_tool = hooked
