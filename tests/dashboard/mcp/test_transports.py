"""The official client lists and calls every tool, over both transports and both eras."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from sqlalchemy import Engine
from tests.dashboard.generated import NOW
from tests.dashboard.mcp.asking import text_of
from tests.live_server import LiveServer, live_server, served
from tests.running import new_key
from tests.starting import completed

from toolfault_collector.admin.backup import backup
from toolfault_collector.admin.projects import find_project
from toolfault_collector.storage.database.engine import open_engine, read_connection
from toolfault_dashboard.mcp.http import allowed_callers
from toolfault_dashboard.mcp.sdk import FAULT, create_server
from toolfault_dashboard.mcp.tools import TOOLS, answered

pytestmark = pytest.mark.slow
MODES = ("auto", "legacy")


@pytest.fixture(scope="module")
def url(filled_sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of the generated history; a key is added and nothing else."""
    path = tmp_path_factory.mktemp("transports") / "toolfault.db"
    shutil.copyfile(filled_sqlite, path)
    return f"sqlite:///{path}"


@pytest.fixture(scope="module")
def server(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A real server on the history."""
    with live_server(tmp_path_factory.mktemp("server"), database_url=url) as running:
        yield running


@asynccontextmanager
async def _over_http(address: str, key: str, mode: str = "auto") -> AsyncIterator[Client]:
    async with AsyncExitStack() as stack:
        headers = {"Authorization": f"Bearer {key}"}
        http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=60))
        transport = streamable_http_client(f"{address}/mcp", http_client=http)
        yield await stack.enter_async_context(Client(transport, mode=mode))


async def _every_tool(client: Client) -> dict[str, Any]:
    """What each tool answers, by its name; the list comes from the server."""
    listed = [tool.name for tool in (await client.list_tools()).tools]
    assert listed == list(TOOLS)
    kinds = await _call(client, "kinds")
    found = await _call(client, "search")
    given = {
        "kind": {"kind": kinds["kinds"][0]["kind"]},
        "chain": {"chain": next(row["chain"] for row in found["rows"] if "chain" in row)},
        "compare": {"before": "until:2026-11-10", "after": "since:2026-11-10"},
    }
    return {name: await _call(client, name, **given.get(name, {})) for name in listed}


async def _call(client: Client, name: str, **arguments: str) -> dict[str, Any]:
    result = await client.call_tool(name, arguments)
    (block,) = result.content
    assert not result.is_error, block
    return dict(json.loads(block.text))  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.long)])
async def test_every_tool_over_http(url: str, server: LiveServer, mode: str):
    """A client of either era gets the figures of the key's project from a real server.

    What each tool answers is tested in process (`test_tools.py`); all are called in the long run.
    """
    async with _over_http(server.address, _key(url), mode) as client:
        if mode == "legacy":
            said = await _every_tool(client)
        else:
            assert [tool.name for tool in (await client.list_tools()).tools] == list(TOOLS)
            said = {name: await _call(client, name) for name in ("overview", "search")}
        refused = await client.call_tool("kind", {"kind": "x"})
    assert said["overview"]["failures"] == said["search"]["failures"] == _failures(url)
    assert refused.is_error


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.long)])
async def test_every_tool_over_stdio(url: str, server: LiveServer, tmp_path: Path, mode: str):
    """The installed command answers on standard output and writes nothing else there.

    Which tools there are, and that each answers, is the same for both transports; all are called in
    the long run.
    """
    parameters = StdioServerParameters(
        command=server.command[0],
        args=["mcp", "--project", "generated"],
        env={"TOOLFAULT_DATABASE_URL": url},
        cwd=tmp_path,
    )
    async with Client(parameters, mode=mode) as client:
        if mode == "legacy":
            said = (await _every_tool(client))["overview"]
        else:
            said = await _call(client, "overview")
    assert said["failures"] == _failures(url)


@pytest.mark.long
async def test_a_second_server_answers_the_next_request(
    url: str, server: LiveServer, tmp_path: Path
):
    """Nothing is kept between two requests: behind a balancer any server answers any of them.

    The other one has a copy of the database, since an SQLite file takes one server.
    """
    key = _key(url)
    engine = open_engine(url)
    made = backup(engine, tmp_path / "copy.db")
    engine.dispose()
    with live_server(tmp_path, database_url=f"sqlite:///{made.path}") as second:
        turns = [server.address, second.address]

        async def balanced(request: httpx2.Request) -> None:
            turns.append(turns.pop(0))
            request.url = httpx2.URL(f"{turns[0]}/mcp")

        async with (
            httpx2.AsyncClient(
                headers={"Authorization": f"Bearer {key}"},
                event_hooks={"request": [balanced]},
                timeout=60,
            ) as http,
            Client(streamable_http_client(f"{turns[0]}/mcp", http_client=http)) as client,
        ):
            said = await _every_tool(client)
    assert said["overview"]["failures"] == _failures(url)


@pytest.mark.parametrize("mode", ["legacy", pytest.param("auto", marks=pytest.mark.long)])
async def test_a_server_in_the_stateless_mode_of_the_sdk(history: Engine, mode: str):
    """The same tools work in a server that the SDK itself serves without sessions."""
    with read_connection(history) as conn:
        project = find_project(conn, "generated")
        assert project is not None
        expected = json.loads(text_of(conn, project, "overview"))

    def ask(name: str, arguments: Any) -> str:
        with read_connection(history) as conn:
            return answered(conn, project, name, arguments, now=NOW, audience="llm")

    app = create_server(ask).streamable_http_app(stateless_http=True, json_response=True)
    with served(app) as address:
        async with Client(streamable_http_client(f"{address}/mcp"), mode=mode) as client:
            assert await _call(client, "overview") == expected


@pytest.mark.parametrize("mode", MODES)
async def test_a_fault_says_nothing_of_the_inside(mode: str):
    """What nobody foresaw is logged; the agent gets a sentence, in either era of the protocol."""

    def ask(name: str, arguments: Any) -> str:
        raise RuntimeError("SELECT secret FROM chain")

    async with Client(create_server(ask), mode=mode) as client:
        result = await client.call_tool("overview", {})
    (block,) = result.content
    assert (result.is_error, block.text) == (True, FAULT)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("key", "status", "code"),
    [
        (lambda _: "none", 401, "unauthorized"),
        (lambda _: "tf_read_wrong", 401, "unauthorized"),
        (lambda url: new_key(url, project="generated", kind="ingest"), 403, "wrong_key_kind"),
    ],
)
def test_a_wrong_key_is_refused(
    url: str, server: LiveServer, key: Callable[[str], str], status: int, code: str
):
    """Only a read key is let in, by the same words as at the API."""
    headers = {"Authorization": f"Bearer {key(url)}"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    answer = httpx2.post(f"{server.address}/mcp", json=body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    if status == 401:
        assert "tf_read_" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("named", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({}, 200),
    ],
)
def test_a_page_of_another_site_is_refused(
    url: str, server: LiveServer, named: dict[str, str], status: int
):
    """A name or an origin that is not this machine's is refused, whatever key comes with it."""
    headers = {
        "Authorization": f"Bearer {_key(url)}",
        "Accept": "application/json, text/event-stream",
        **named,
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    answer = httpx2.post(f"{server.address}/mcp", json=body, headers=headers, timeout=60)
    assert answer.status_code == status, answer.text


def test_which_names_and_origins_are_known():
    """One that others reach takes any name and pages of its public address alone."""
    told = allowed_callers("tf:8321", is_local=False, public_url="https://tf.example.com/x")
    assert told.allowed_hosts == ["tf.example.com", "tf:8321"]
    assert told.allowed_origins == ["https://tf.example.com"]
    local = allowed_callers("evil.example", is_local=True, public_url="https://tf.example.com")
    assert {"tf.example.com", "localhost:*", "127.0.0.1"} <= set(local.allowed_hosts)
    assert "evil.example" not in local.allowed_hosts
    assert "https://tf.example.com" in local.allowed_origins


def test_a_server_that_no_agent_asks_does_not_load_the_sdk():
    """The application is made without the SDK, so that no start waits for it."""
    code = "import sys, toolfault_dashboard.app; sys.exit('mcp' in sys.modules)"
    assert completed("-c", code).returncode == 0


def _key(url: str) -> str:
    return new_key(url, project="generated", kind="read")


def _failures(url: str) -> int:
    engine = open_engine(url)
    with read_connection(engine) as conn:
        project = find_project(conn, "generated")
        assert project is not None
        said = json.loads(text_of(conn, project, "overview"))
    engine.dispose()
    return int(said["failures"])
