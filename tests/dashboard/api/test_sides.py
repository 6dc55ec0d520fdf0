"""Client and server of MCP are processes with keys of their own: each call is counted once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from tests.live_server import LiveServer, live_server

# The collector's part of it, on both engines: tests/collector/test_sides.py.
pytestmark = pytest.mark.long
PROGRAM = "from tests.dashboard.api.sides import call; call()"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A real server, collector and dashboard."""
    with live_server(tmp_path_factory.mktemp("server")) as running:
        yield running


def _play(client_dsn: str, server_dsn: str, first: str) -> None:
    dsns = {"CLIENT_DSN": client_dsn, "SERVER_DSN": server_dsn, "FIRST": first}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
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


@pytest.mark.parametrize(
    ("first", "apart"),
    [
        ("client", False),
        ("client", True),
        ("server", True),
    ],
)
def test_each_project_counts_a_call_once(server: LiveServer, first: str, apart: bool) -> None:
    """Two keys of a project, or of two projects: the same figures, whichever side reports first."""
    case = f"{first}-{'apart' if apart else 'together'}"  # the server keeps what others sent
    both, of_client, of_server = (f"{name}-{case}" for name in ("both", "client", "server"))
    _play(server.dsn(both), server.dsn(both), first)
    found = _overview(server, both)
    assert found["summary"]["tools"] == {"book": {"calls": 16, "failures": 4}}
    assert found["summary"]["conversations"] == 2
    if apart:
        _play(server.dsn(of_client), server.dsn(of_server), first)
        assert _overview(server, of_client) == found
        tools = _overview(server, of_server)["summary"]["tools"]
        assert tools == found["summary"]["tools"]
