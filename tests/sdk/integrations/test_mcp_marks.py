"""What an MCP server declares of its tools is the mark of their calls."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import mcp
import pytest
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, TextContent, ToolAnnotations

import toolfault
from toolfault.integrations.mcp.server import requested, served
from toolfault.integrations.mcp.tools import idempotent
from toolfault.integrations.seen import Call, Seen
from toolfault.testing import MemoryTransport

UNKNOWN: tuple[dict[str, Any], ...] = ({}, {"title": "x"}, {"open_world_hint": True})
SAFE = ({"read_only_hint": True}, {"idempotent_hint": True, "destructive_hint": True})
NOT = (
    {"idempotent_hint": False},
    {"read_only_hint": False},
    {"destructive_hint": False},
    {"read_only_hint": False, "destructive_hint": True, "idempotent_hint": False},
)


@pytest.mark.parametrize(
    ("said", "mark"),
    [(None, None)]
    + [(each, None) for each in UNKNOWN]
    + [(each, True) for each in SAFE]
    + [(each, False) for each in NOT],
)
def test_hints_are_read_with_the_defaults_of_the_specification(
    said: dict[str, Any] | None, mark: bool | None
) -> None:
    """Who says anything of what a tool does has said the rest; alike in both SDKs."""
    new = None if said is None else ToolAnnotations(**said)
    old = None
    if said is not None:
        names = {"read_only_hint", "idempotent_hint", "destructive_hint"}
        camel = {"".join([a, *(b.title() for b in rest)]): said.get(name)
                 for name in names for a, *rest in [name.split("_")]}  # fmt: skip
        old = SimpleNamespace(**camel)
    assert idempotent(SimpleNamespace(annotations=new)) is mark
    assert idempotent(SimpleNamespace(annotations=old)) is mark


@cache
def _printed() -> tuple[dict[str, str], str]:
    """What functions print that would leave their hooks, or what they were told, in this process.

    Each runs in a process of its own, a copy of one that has loaded MCP; and what these said else.
    """
    program = f"from {__name__} import print_of_each; print_of_each()"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def print_of_each() -> None:
    """Run each function in a fork of this process and print what each printed."""
    logging.disable()  # MCP draws each traceback, which takes seconds
    printed = {}
    for run in (marked_calls, calls_inside_others, handles_sent_back, sixty_clients):
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.dup2(writing, 1)
            try:
                run()
                sys.stdout.flush()
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as said:
            printed[run.__name__] = said.read()
        os.wait()
    sys.stdout.write(json.dumps(printed))


def _in_own_process(run: Callable[[], None]) -> tuple[str, str]:
    """What *run* printed, and what was said of any fault."""
    printed, errors = _printed()
    return printed[run.__name__].strip(), errors


def marked_calls() -> None:
    """Call three listed tools twice, one by way of a framework too; write what was counted."""
    transport = MemoryTransport()
    toolfault.init(transport=transport, successes="folded", integrations=["mcp"])
    server = MCPServer("stub")
    for name, said in (("pay", NOT[1]), ("look", SAFE[0]), ("other", UNKNOWN[1])):

        def body(n: int) -> str:
            return "ok"

        server.tool(name, annotations=ToolAnnotations(**said))(body)

    async def talk() -> None:
        async with mcp.Client(server) as client:
            await client.list_tools()
            with toolfault.conversation("c"):
                for name in ("pay", "look", "other") * 2:
                    await client.call_tool(name, {"n": 1})
                with Call(lambda: Seen("langchain", "pay", arguments={"n": 1})) as call:
                    await client.call_tool("pay", {"n": 1})
                    call.ended()

    asyncio.run(talk())
    toolfault.flush()
    sys.stdout.write(str({each["tool"]: each.get("repeated") for each in transport.events}))


def test_repeats_of_a_server_that_declares_its_tools_are_counted() -> None:
    """Of the one that is not idempotent, also where a framework calls it for the model."""
    printed, errors = _in_own_process(marked_calls)
    assert printed == "{'pay': 2, 'look': None, 'other': None}", errors


def calls_inside_others() -> None:
    """Call a tool of a server within another one, and one whose failure becomes control flow."""
    transport = MemoryTransport()
    toolfault.init(transport=transport, successes="all", integrations=["mcp"])
    server = MCPServer("stub")

    @server.tool()
    def look(n: int) -> str:
        if n == 0:
            raise ValueError("nothing there")
        return "ok"

    again = type("ModelRetry", (Exception,), {"__module__": "pydantic_ai.exceptions"})

    async def talk() -> None:
        async with mcp.Client(server) as client:

            @toolfault.tool
            async def plan() -> str:
                await client.call_tool("look", {"n": 1})
                await client.call_tool("look", {"n": 0})
                return "planned"

            await plan()
            for name in ("look", "stub_look"):
                with suppress(again), Call(partial(Seen, "pydantic_ai", name)):
                    await client.call_tool("look", {"n": 0})
                    raise again("try again")

    asyncio.run(talk())
    toolfault.flush()
    seen = Counter((each["tool"], each["success"]) for each in transport.events)
    sys.stdout.write(str(sorted(seen.items())))


def test_a_request_inside_another_call_is_reported_by_somebody() -> None:
    """By the server where the call around is another tool, and also if a framework tries again."""
    printed, errors = _in_own_process(calls_inside_others)
    expected = {("look", False): 2, ("look", True): 1, ("plan", True): 1, ("stub_look", False): 1}
    assert printed == str(sorted(expected.items())), errors


def sixty_clients() -> None:
    """Write where the calls of sixty clients are counted, and those of the first once more."""
    asked = SimpleNamespace(name="look", arguments={})
    told = [f"{client:016x}" for client in (*range(60), 0)]
    seen = [requested(asked, {"toolfault": {"sink": each}}).counted_by for each in told]
    sys.stdout.write(str([seen[:50] == told[:50], seen[50:60] == [None] * 10, seen[60] == told[0]]))


def test_what_a_client_says_of_the_conversation_names_it() -> None:
    """Its own metadata first, then the session that OpenAI's hosts send; no id of any length."""
    asked = SimpleNamespace(name="t", arguments={})
    by_host = {"openai/session": "s-1"}
    for meta, name in (
        (by_host, "s-1"),
        ({**by_host, "toolfault": {"conversation": "c-1"}}, "c-1"),
        ({"openai/session": "x" * 1_000}, None),
        ({"openai/session": 7}, None),
        (None, None),
    ):
        found = requested(asked, meta)
        assert (found.conversation, found.rung) == (name, "meta")


def handles_sent_back() -> None:
    """Answer three requests, of which the latter two send back what came with the one before."""
    transport = MemoryTransport()
    toolfault.init(transport=transport, successes="all", integrations=False)
    asked = SimpleNamespace(name="look", arguments={})
    answers: list[Any] = []

    async def look() -> CallToolResult:
        return CallToolResult(content=[TextContent(text="no")], is_error=True)

    async def talk(*metas: Any) -> None:
        for meta in metas:
            given = answers[-1] if meta == "back" else meta
            result = await served(partial(requested, asked, given), look)
            answers.append(result.meta)

    asyncio.run(talk(None))
    toolfault.instrument("mcp", handles=True)
    asyncio.run(talk(None, "back", "back", {"openai/session": "s-1"}))
    toolfault.flush()
    failed = [each for each in transport.events if each["type"] == "tool_call"]
    first = answers[1]["toolfault"]["handle"]
    named = [each.get("session_id") == first for each in failed]
    rungs = [each.get("conversation_rung") for each in failed]
    kept = answers[2] == answers[3] == answers[1]
    sys.stdout.write(str([answers[0], kept, named, rungs, answers[4]]))


def test_a_handle_that_is_sent_back_names_the_conversation() -> None:
    """Only where it is wanted, and not where the client names one; the first call has no name."""
    printed, errors = _in_own_process(handles_sent_back)
    named = [False, False, True, True, False]
    rungs = [None, None, "handle", "handle", "meta"]
    assert printed == str([None, True, named, rungs, None]), errors


def test_a_server_believes_fifty_clients_where_they_report() -> None:
    """Whoever says something else each time makes no endless number of counters."""
    printed, errors = _in_own_process(sixty_clients)
    assert printed == "[True, True, True]", errors
