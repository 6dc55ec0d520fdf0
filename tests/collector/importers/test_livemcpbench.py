"""LiveMCPBench: resolved tool names and three ways to say that a call failed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.collector.importers.counting import parsed


def _repr(text: str, *, outer: bool = False) -> str:
    """Write a CallToolResult as Python's repr does."""
    block = f"TextContent(type='text', text={text!r}, annotations=None)"
    return f"meta=None content=[{block}] isError={outer}"


def _inner(text: str, *, failed: bool) -> str:
    return json.dumps(
        {"_meta": None, "content": [{"type": "text", "text": text}], "isError": failed}, indent=2
    )


def _run(content: str, arguments: Any = None) -> list[dict[str, Any]]:
    wire = {"server_name": "fetch", "tool_name": "get", "params": {"url": "u"}}
    function = {
        "name": "execute-tool",
        "arguments": json.dumps(wire if arguments is None else arguments),
    }
    call = {"id": "toolu_1", "type": "function", "function": function}
    route = {"id": "toolu_2", "type": "function", "function": {"name": "route", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "toolu_1", "content": content},
        {"role": "assistant", "content": "", "tool_calls": [route]},
        {"role": "tool", "tool_call_id": "toolu_2", "content": _repr("servers: []")},
    ]


def _first(tmp_path: Path, content: str, arguments: Any = None) -> Any:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"task_id": "x", "messages": _run(content, arguments)}]))
    (found,) = parsed(path)
    assert found.format == "livemcpbench"
    return found.calls[0]


@pytest.mark.parametrize(
    ("content", "status", "text"),
    [
        (_repr("fine"), "ok", ""),
        (_repr(_inner("fine", failed=False)), "ok", ""),
        (_repr("Unknown tool: x", outer=True), "failed", "Unknown tool: x"),
        (_repr(_inner('It\'s "broken"\nhere', failed=True)), "failed", 'It\'s "broken"\nhere'),
        ("Tool call timed out.", "failed", "Tool call timed out."),
        ("Tool call timed out. Or did it", "ok", ""),
        (_repr(_inner("x" * 20_000, failed=False))[:10_000], "ok", ""),
        (_repr(_inner('{"isError": true} is how it looks', failed=False)), "ok", ""),
    ],
)
def test_the_three_marks_of_a_failure(tmp_path: Path, content: str, status: str, text: str) -> None:
    """Outer flag, flag of the proxied server, timeout; text about errors is none of them."""
    call = _first(tmp_path, content)
    assert (call.tool, call.status, call.text) == ("fetch/get", status, text)


def test_in_band_errors_are_marked(tmp_path: Path) -> None:
    """An error in the text of a successful result is soft."""
    call = _first(tmp_path, _repr(_inner('{"error": "nothing loaded"}', failed=False)))
    assert (call.status, call.soft) == ("ok", "json_error")


@pytest.mark.parametrize("arguments", [{}, {"server_name": 5, "tool_name": "x"}, [], "text"])
def test_a_wire_call_that_names_no_tool_keeps_the_wire_name(tmp_path: Path, arguments: Any) -> None:
    """What the model called is still a call."""
    assert _first(tmp_path, _repr("fine"), arguments).tool == "execute-tool"
