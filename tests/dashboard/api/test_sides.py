"""Client and server of MCP are processes with keys of their own: each call is counted once."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.server.mcpserver import MCPServer
from tests.live_server import LiveServer, live_server

import toolfault

pytestmark = pytest.mark.slow
# By conversation, the arguments of its calls: 0 fails. Of the third nobody knows the conversation.
CALLS = {"c1": (1, 2, 3, 0, 4, 0, 0, 5, 6), "c2": (1, 2, 3, 4), "": (7, 0, 8)}
PROGRAM = "from tests.dashboard.api.test_sides import {0}; {0}()"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A real server, collector and dashboard."""
    with live_server(tmp_path_factory.mktemp("server")) as running:
        yield running


def serve() -> None:
    """Be a server of tools that sends what it has to report when it is asked to."""
    toolfault.init(os.environ["SERVER_DSN"], integrations=["mcp"])
    tools = MCPServer("stub")

    @tools.tool()
    def book(seats: int) -> str:
        if seats == 0:
            raise ValueError("no seats")
        return "booked"

    @tools.resource("toolfault://reported")
    def reported() -> str:
        return str(toolfault.close(60))

    tools.run()


def call() -> None:
    """Be a client that makes all calls; the side that is named first reports first."""
    toolfault.init(os.environ["CLIENT_DSN"], integrations=["mcp"])
    asyncio.run(_call(os.environ["FIRST"]))


async def _call(first: str) -> None:
    program = StdioServerParameters(
        command=sys.executable, args=["-c", PROGRAM.format("serve")], env=dict(os.environ)
    )
    async with Client(program) as client:
        for name, calls in CALLS.items():
            if name:
                with toolfault.conversation(name):
                    await _each(client, calls)
            else:
                await _each(client, calls)
        if first == "client":
            assert toolfault.close(60)
        answer = await client.read_resource("toolfault://reported")
        assert answer.contents[0].text == "True"  # type: ignore[union-attr]
        assert toolfault.close(60)


async def _each(client: Any, calls: tuple[int, ...]) -> None:
    for seats in calls:
        result = await client.call_tool("book", {"seats": seats})
        assert result.is_error == (seats == 0), result


def _play(client_dsn: str, server_dsn: str, first: str) -> None:
    dsns = {"CLIENT_DSN": client_dsn, "SERVER_DSN": server_dsn, "FIRST": first}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format("call")],
        env={**os.environ, **dsns},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def _overview(server: LiveServer, project: str) -> dict[str, Any]:
    """What the API says of a project: of all calls, and of each tool."""
    key = server.run("keys", "create", "--project", project, "--kind", "read").split()[-1]
    headers = {"Authorization": f"Bearer {key}"}
    with httpx2.Client(headers=headers, timeout=60, trust_env=False) as client:
        return dict(client.get(f"{server.address}/api/v1/overview?window=1h").json())


@pytest.mark.parametrize("first", ["client", pytest.param("server", marks=pytest.mark.long)])
def test_each_project_counts_a_call_once(server: LiveServer, first: str) -> None:
    """Two keys of a project, or of two projects: the same figures, whichever side reports first."""
    both, of_client, of_server = (f"{name}-{first}" for name in ("both", "client", "server"))
    _play(server.dsn(both), server.dsn(both), first)
    _play(server.dsn(of_client), server.dsn(of_server), first)

    expected = _overview(server, of_client)
    assert expected["summary"]["tools"] == {"book": {"calls": 16, "failures": 4}}
    assert _overview(server, both) == expected
    assert _overview(server, of_server)["summary"]["tools"] == expected["summary"]["tools"]
