"""One small history in the shape of every format, with what must be read of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tests.collector.importers import sessions

__all__ = ["FIXTURES", "Fixture"]

_Wrap = Callable[[list[Any]], str]


@dataclass(frozen=True)
class Fixture:
    """A history of one conversation.

    Attributes:
        name: What it is, for the test's name.
        format: The format as which it is recognised.
        why: A part of what the import says about why.
        messages: Its messages or lines.
        calls: Tool and status of each call that they hold.
        wrap: Writes messages as a file of that format.
        grows: Whether it is written while it goes on, not only when it is over.
    """

    name: str
    format: str
    why: str
    messages: list[Any]
    calls: list[tuple[str, str]]
    wrap: _Wrap
    grows: bool = True

    @property
    def text(self) -> str:
        """The whole file."""
        return self.wrap(self.messages)

    @property
    def by_line(self) -> bool:
        """Whether a file holds a value on every line."""
        return self.wrap in (_lines, _otlp, _phoenix)


def _lines(values: list[Any]) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


def _within(*path: str, **beside: Any) -> _Wrap:
    """Write the messages as a member of an object, or of objects within it."""

    def wrap(messages: list[Any]) -> str:
        value: Any = messages
        for name in reversed(path):
            value = {name: value}
        return json.dumps({**beside, **value}, indent=1)

    return wrap


def _id(kind: str, number: int) -> str:
    return f"{kind}_{number}aZ4kQ9xW2mB7vL5tR8pY1cD"


def _call(number: int, name: str, arguments: str = '{"city": "Oslo"}') -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": _id("call", number), "type": "function", "function": function}


def _assistant(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def _tool(number: int, content: str, **rest: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": _id("call", number), "content": content, **rest}


_ASK: Final = {"role": "user", "content": "What is the weather in Oslo?"}
_BYE: Final = {"role": "assistant", "content": "It rains."}
_FAILED_THEN_OK: Final = [("get_weather", "failed"), ("get_weather", "ok")]

_OPENAI: Final = [
    _ASK,
    _assistant(_call(1, "get_weather", '{"city": 5}'), _call(2, "get_time")),
    _tool(1, "Error: city must be a string"),
    _tool(2, "12:00"),
    _assistant(_call(3, "get_weather")),
    _tool(3, "rain"),
    _BYE,
]
_OPENAI_CALLS: Final = [("get_weather", "failed"), ("get_time", "ok"), ("get_weather", "ok")]

_LEGACY: Final = [
    _ASK,
    {"role": "assistant", "content": None,
     "function_call": {"name": "get_weather", "arguments": "{}"}},
    {"role": "function", "name": "get_weather", "content": "Error: city is required"},
    {"role": "assistant", "content": None,
     "function_call": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}},
    {"role": "function", "name": "get_weather", "content": "rain"},
]  # fmt: skip

_RESPONSES: Final = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
    {"type": "reasoning", "id": _id("rs", 1), "summary": []},
    {"type": "function_call", "id": _id("fc", 1), "call_id": _id("call", 1), "name": "get_weather",
     "arguments": "{}", "status": "completed"},
    {"type": "function_call_output", "call_id": _id("call", 1), "output": "Error: no city"},
    {"type": "custom_tool_call", "id": _id("ctc", 2), "call_id": _id("call", 2), "name": "run_sql",
     "input": "SELECT 1"},
    {"type": "custom_tool_call_output", "call_id": _id("call", 2),
     "output": [{"type": "input_text", "text": "1"}]},
    {"type": "mcp_call", "id": _id("mcp", 3), "server_label": "deepwiki", "name": "ask",
     "arguments": "{}", "output": None, "status": "failed",
     "error": {"type": "mcp_tool_execution_error", "message": "repository not found"}},
    {"type": "mcp_call", "id": _id("mcp", 4), "server_label": "deepwiki", "name": "ask",
     "arguments": '{"repo": "a/b"}', "output": "an answer", "error": None},
    {"type": "mcp_call", "id": _id("mcp", 5), "server_label": "deepwiki", "name": "ask",
     "arguments": "{}", "output": None, "error": "MCP server timed out"},
    {"type": "web_search_call", "id": _id("ws", 6), "status": "completed",
     "action": {"type": "search", "query": "Oslo"}},
    {"type": "web_search_call", "id": _id("ws", 7), "status": "failed", "action": {}},
    {"type": "shell_call", "call_id": _id("call", 8), "status": "completed",
     "action": {"commands": ["ls"]}},
    {"type": "shell_call_output", "call_id": _id("call", 8),
     "output": [{"stdout": "a.txt", "outcome": {"type": "exit", "exit_code": 0}}]},
    {"type": "apply_patch_call", "call_id": _id("call", 9), "status": "completed",
     "operation": {"type": "update_file", "path": "a.py"}},
    {"type": "apply_patch_call_output", "call_id": _id("call", 9), "status": "failed",
     "output": "context not found"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Rain."}]},
]  # fmt: skip
_RESPONSES_CALLS: Final = [
    ("get_weather", "failed"), ("run_sql", "ok"), ("deepwiki/ask", "failed"),
    ("deepwiki/ask", "ok"), ("deepwiki/ask", "failed"), ("web_search", "ok"),
    ("web_search", "failed"), ("shell", "ok"), ("apply_patch", "failed"),
]  # fmt: skip


def _codex(kind: str, second: int, **payload: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-03-01T09:00:{second:02}.000Z", "type": kind, "payload": payload}


_CODEX: Final = [
    _codex("session_meta", 0, id="019a0000-0000-7000-8000-000000000001", cli_version="0.50.0"),
    _codex("response_item", 1, type="message", role="user", content=[]),
    _codex("event_msg", 1, type="user_message", message="What is the weather?"),
    _codex("response_item", 2, type="function_call", name="shell", arguments='{"command": ["ls"]}',
           call_id=_id("call", 1)),
    _codex("response_item", 3, type="function_call_output", call_id=_id("call", 1),
           output="Error: sandbox denied"),
    _codex("event_msg", 3, type="token_count", info=None),
    _codex("response_item", 4, type="function_call", name="shell", arguments="{}",
           call_id=_id("call", 2)),
    _codex("response_item", 5, type="function_call_output", call_id=_id("call", 2), output="a.txt"),
]  # fmt: skip


def _block(kind: str, number: int, name: str, **rest: Any) -> dict[str, Any]:
    return {"type": kind, "id": _id("toolu", number), "name": name, "input": {}, **rest}


def _result(kind: str, number: int, content: Any, **rest: Any) -> dict[str, Any]:
    return {"type": kind, "tool_use_id": _id("toolu", number), "content": content, **rest}


_ANTHROPIC: Final = [
    _ASK,
    {"role": "assistant", "content": [
        {"type": "text", "text": "Let me see."},
        _block("tool_use", 1, "get_weather"), _block("tool_use", 2, "get_time")]},
    {"role": "user", "content": [
        _result("tool_result", 1, [{"type": "text", "text": "city is required"}], is_error=True),
        _result("tool_result", 2, "Error is a word of this result")]},
    {"role": "assistant", "content": [
        _block("server_tool_use", 3, "web_search"),
        _result("web_search_tool_result", 3,
                {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}),
        _block("server_tool_use", 4, "web_search"),
        _result("web_search_tool_result", 4, [{"type": "web_search_result", "url": "u"}]),
        _block("mcp_tool_use", 5, "echo", server_name="example"),
        _result("mcp_tool_result", 5, [{"type": "text", "text": "no such tool"}], is_error=True),
        _block("tool_use", 6, "get_weather")]},
    {"role": "user", "content": [_result("tool_result", 6, "rain", is_error=False)]},
    {"role": "assistant", "content": [{"type": "text", "text": "It rains."}]},
]  # fmt: skip
_ANTHROPIC_CALLS: Final = [
    ("get_weather", "failed"), ("get_time", "ok"), ("web_search", "failed"), ("web_search", "ok"),
    ("example/echo", "failed"), ("get_weather", "ok"),
]  # fmt: skip


def _langchain_call(number: int, name: str, args: Any, **rest: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": _id("call", number), "type": "tool_call", **rest}


_LANGCHAIN_FIELDS: Final[list[tuple[str, str, dict[str, Any]]]] = [
    ("human", "HumanMessage", {"content": "What is the weather in Oslo?"}),
    ("ai", "AIMessage", {
        "content": "", "tool_calls": [_langchain_call(1, "get_weather", {})],
        "invalid_tool_calls": [_langchain_call(
            2, "get_time", '{"zone": ', error="Function get_time arguments are not valid JSON.")]}),
    ("tool", "ToolMessage", {
        "content": "Error: city is required", "name": "get_weather", "tool_call_id": _id("call", 1),
        "status": "error"}),
    ("ai", "AIMessage", {
        "content": "", "tool_calls": [_langchain_call(3, "get_weather", {"city": "Oslo"})],
        "invalid_tool_calls": []}),
    ("tool", "ToolMessage", {
        "content": "Error is a word of this result", "name": "get_weather",
        "tool_call_id": _id("call", 3), "status": "success"}),
    ("ai", "AIMessage", {"content": "It rains.", "tool_calls": [], "invalid_tool_calls": []}),
]  # fmt: skip
_LANGCHAIN_CALLS: Final = [
    ("get_weather", "failed"), ("get_time", "failed"), ("get_weather", "ok"),
]  # fmt: skip
_LANGCHAIN_DICTS: Final = [
    {"type": kind, "data": {**fields, "type": kind, "additional_kwargs": {}}}
    for kind, _, fields in _LANGCHAIN_FIELDS
]
_LANGCHAIN_DUMPS: Final = [
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name],
     "kwargs": {**fields, "type": kind}}
    for kind, name, fields in _LANGCHAIN_FIELDS
]  # fmt: skip
_LANGCHAIN_MODELS: Final = [{"type": kind, **fields} for kind, _, fields in _LANGCHAIN_FIELDS]


def _inspect_call(number: int, function: str, **rest: Any) -> dict[str, Any]:
    return {"id": _id("call", number), "function": function, "arguments": {"cmd": "ls"},
            "type": "function", **rest}  # fmt: skip


_INSPECT: Final = [
    {"role": "system", "content": "Be brief."},
    {**_ASK, "source": "input"},
    {"role": "assistant", "content": "", "source": "generate", "model": "mockllm/model",
     "tool_calls": [_inspect_call(1, "bash"),
                    _inspect_call(2, "python", parse_error="Error parsing the arguments")]},
    {"role": "tool", "content": "", "tool_call_id": _id("call", 1), "function": "bash",
     "error": {"type": "timeout", "message": "Command timed out before completing."}},
    {"role": "tool", "content": "", "tool_call_id": _id("call", 2), "function": "python",
     "error": {"type": "parsing", "message": "Error parsing the arguments"}},
    {"role": "assistant", "content": "", "source": "generate",
     "tool_calls": [_inspect_call(3, "bash")]},
    {"role": "tool", "content": "Error: is what the file says", "tool_call_id": _id("call", 3),
     "function": "bash"},
    {"role": "assistant", "source": "generate", "content": [
        {"type": "tool_use", "tool_type": "mcp_call", "id": _id("mcp", 4), "name": "ask",
         "context": "deepwiki", "arguments": "{}", "result": "", "error": "no such repository"},
        {"type": "text", "text": "It rains."}]},
]  # fmt: skip
_INSPECT_CALLS: Final = [
    ("bash", "failed"), ("python", "failed"), ("bash", "ok"), ("deepwiki/ask", "failed"),
]  # fmt: skip


def _inspect_log(messages: list[Any]) -> str:
    events = [
        {"event": "tool", "id": _id("mcp" if number == 4 else "call", number),
         "timestamp": f"2026-03-01T09:00:0{number}Z",
         "completed": f"2026-03-01T09:00:0{number + 1}Z"}
        for number in (1, 2, 3, 4)
    ]  # fmt: skip
    sample = {"id": 1, "epoch": 1, "input": "What?", "target": "rain", "messages": messages,
              "uuid": "qLzyXcQbXhZTNyAYDVkmLK", "attachments": {}, "events": events}  # fmt: skip
    eval_ = {"task": "weather", "model": "mockllm/model", "run_id": "Gw2Kz8hVbCq3"}
    return json.dumps({"version": 2, "status": "success", "eval": eval_, "samples": [sample]})


_GEMINI: Final[list[dict[str, Any]]] = [
    {"role": "user", "parts": [{"text": "What is the weather in Oslo?"}]},
    {"role": "model", "parts": [
        {"functionCall": {"id": _id("call", 1), "name": "get_weather", "args": {}}}]},
    {"role": "user", "parts": [
        {"functionResponse": {"id": _id("call", 1), "name": "get_weather",
                              "response": {"error": "city is required"}}}]},
    {"role": "model", "parts": [
        {"functionCall": {"id": _id("call", 2), "name": "get_weather", "args": {"city": "Oslo"}}}]},
    {"role": "user", "parts": [
        {"functionResponse": {"id": _id("call", 2), "name": "get_weather",
                              "response": {"output": "rain"}}}]},
    {"role": "model", "parts": [{"text": "It rains."}]},
]  # fmt: skip
_SNAKE: Final = {"functionCall": "function_call", "functionResponse": "function_response"}
_ADK: Final = [
    {"author": "agent", "timestamp": 1772355600.0 + index, "invocation_id": "e-1", "content": {
        "role": message["role"],
        "parts": [{_SNAKE.get(name, name): value for name, value in part.items()}
                  for part in message["parts"]]}}
    for index, message in enumerate(_GEMINI)
]  # fmt: skip


def _mcp(text: str, *, outer: bool = False) -> str:
    block = f"TextContent(type='text', text={text!r}, annotations=None)"
    return f"meta=None content=[{block}] isError={outer}"


def _wire(number: int, tool: str) -> dict[str, Any]:
    wire = {"server_name": "fetch", "tool_name": tool, "params": {"url": "u"}}
    return _call(number, "execute-tool", json.dumps(wire))


_LIVEMCP: Final = [
    _ASK,
    _assistant(_call(1, "route")),
    _tool(1, _mcp("fetch")),
    _assistant(_wire(2, "get")),
    _tool(2, _mcp("Input validation error", outer=True)),
    _assistant(_wire(3, "get")),
    _tool(3, _mcp(json.dumps({"content": [{"type": "text", "text": "no"}], "isError": True}))),
    _assistant(_wire(4, "get")),
    _tool(4, "Tool call timed out."),
    _assistant(_wire(5, "get")),
    _tool(5, _mcp('{"error": "in-band"}')),
]
_LIVEMCP_CALLS: Final = [
    ("route", "ok"), ("fetch/get", "failed"), ("fetch/get", "failed"), ("fetch/get", "failed"),
    ("fetch/get", "ok"),
]  # fmt: skip

_CLAUDE_CODE: Final = [
    sessions.call(1, "get_weather"),
    sessions.answer(1, "city is required", failed=True),
    sessions.call(2, "get_weather", input={"city": "Oslo"}),
    sessions.answer(2, "rain"),
]

_EVENTS: Final = [
    {"event_id": f"01890000-0000-7000-8000-0000000000{number:02}", "type": "tool_call",
     "occurred_at": f"2024-01-02T03:04:{number:02}Z", "session_id": "s", "tool": "get_weather",
     "success": number == 2,
     **({} if number == 2 else {"error": {"code": "missing_field", "category": "parameter"}})}
    for number in (1, 2)
]  # fmt: skip

_TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
_SPANS: Final[list[dict[str, Any]]] = [
    {"name": "invoke_agent weather", "span_id": "00f067aa0ba902b7", "parent_span_id": None,
     "start_time": 1772355600_000000000, "end_time": 1772355609_000000000,
     "attributes": {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "c-1"},
     "status": "UNSET"},
    *({"name": "execute_tool get_weather", "span_id": f"00f067aa0ba902c{number}",
       "parent_span_id": "00f067aa0ba902b7",
       "start_time": 177235560 * 10**10 + number * 10**9,
       "end_time": 177235560 * 10**10 + number * 10**9 + 5 * 10**8,
       "attributes": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather",
                      "gen_ai.tool.call.id": _id("call", number),
                      "gen_ai.tool.call.arguments": json.dumps({"city": number}),
                      **({"error.type": "ValueError"} if number == 1 else {})},
       "status": "ERROR" if number == 1 else "UNSET",
       "status_message": "city must be a string" if number == 1 else ""}
      for number in (1, 2)),
]  # fmt: skip


def _iso(nanoseconds: int) -> str:
    return f"2026-03-01T09:00:{nanoseconds // 10**6 % 60_000 / 1000:06.3f}000Z"


def _flat_spans(spans: list[Any]) -> str:
    flat = [{**span, "trace_id": _TRACE, "status": {"code": span["status"]}} for span in spans]
    return json.dumps(flat)


def _sdk_dump(spans: list[Any]) -> str:
    """Write spans as ``ReadableSpan.to_json`` does."""
    return json.dumps([
        {"name": span["name"],
         "context": {"trace_id": f"0x{_TRACE}", "span_id": f"0x{span['span_id']}",
                     "trace_state": "[]"},
         "kind": "SpanKind.INTERNAL",
         "parent_id": span["parent_span_id"] and f"0x{span['parent_span_id']}",
         "start_time": _iso(span["start_time"]), "end_time": _iso(span["end_time"]),
         "status": {"status_code": span["status"], "description": span.get("status_message")},
         "attributes": span["attributes"], "events": [], "links": [],
         "resource": {"attributes": {"service.name": "weather"}, "schema_url": ""}}
        for span in spans
    ], indent=4)  # fmt: skip


def _otlp(spans: list[Any]) -> str:
    """Write spans as a request of OTLP/JSON, one a line, as the collector's file exporter does."""
    return "".join(
        json.dumps({"resourceSpans": [{
            "resource": {"attributes": [
                {"key": "service.name", "value": {"stringValue": "weather"}}]},
            "scopeSpans": [{"scope": {"name": "weather"}, "spans": [
                {"traceId": _TRACE, "spanId": span["span_id"],
                 "parentSpanId": span["parent_span_id"] or "", "name": span["name"], "kind": 1,
                 "startTimeUnixNano": str(span["start_time"]),
                 "endTimeUnixNano": str(span["end_time"]),
                 "attributes": [{"key": key, "value": {"stringValue": value}}
                                for key, value in span["attributes"].items()],
                 "status": {"code": 2, "message": span["status_message"]}
                 if span["status"] == "ERROR" else {}}]}]}]}) + "\n"
        for span in spans
    )  # fmt: skip


def _phoenix(spans: list[Any]) -> str:
    """Write the spans that run a tool as Phoenix exports OpenInference's, one a line."""
    return _lines([
        {"name": "get_weather", "context": {"trace_id": _TRACE, "span_id": span["span_id"]},
         "span_kind": "TOOL", "parent_id": span["parent_span_id"],
         "start_time": _iso(span["start_time"]), "end_time": _iso(span["end_time"]),
         "status_code": "ERROR" if span["status"] == "ERROR" else "OK",
         "status_message": span["status_message"], "events": [],
         "attributes": {"openinference": {"span": {"kind": "TOOL"}}, "session": {"id": "c-1"},
                        "tool": {"name": "get_weather"},
                        "input": {"value": span["attributes"]["gen_ai.tool.call.arguments"]}}}
        for span in spans[1:]
    ])  # fmt: skip


FIXTURES: Final = (
    Fixture("openai lines", "openai", '"role"', _OPENAI, _OPENAI_CALLS, _lines),
    Fixture("openai wrapped", "openai", '"role"', _OPENAI, _OPENAI_CALLS, _within("messages")),
    Fixture(
        "openai legacy", "openai", '"role"', _LEGACY, _FAILED_THEN_OK,
        _within("messages", conversation_id="c-1"),
    ),
    Fixture(
        "responses items", "openai-responses", '"type": "reasoning" in line 2', _RESPONSES,
        _RESPONSES_CALLS, _lines,
    ),
    Fixture(
        "responses input", "openai-responses", '"type": "reasoning" at /input/1', _RESPONSES,
        _RESPONSES_CALLS, _within("input", model="gpt-5"),
    ),
    Fixture(
        "codex session", "openai-responses", '"type": "session_meta" in line 1', _CODEX,
        [("shell", "failed"), ("shell", "ok")], _lines,
    ),
    Fixture(
        "anthropic", "anthropic", '"type": "tool_use" at /messages/1', _ANTHROPIC,
        _ANTHROPIC_CALLS, _within("messages", model="claude-x"),
    ),
    Fixture(
        "langchain dicts", "langchain", '"type": "human"', _LANGCHAIN_DICTS, _LANGCHAIN_CALLS,
        _within("messages"),
    ),
    Fixture(
        "langchain dumps", "langchain", "HumanMessage", _LANGCHAIN_DUMPS, _LANGCHAIN_CALLS, _lines
    ),
    Fixture(
        "langchain models", "langchain", '"type": "human"', _LANGCHAIN_MODELS, _LANGCHAIN_CALLS,
        _within("values", "messages"),
    ),
    Fixture(
        "inspect log", "inspect", "/samples/0/messages/2", _INSPECT, _INSPECT_CALLS, _inspect_log,
        grows=False,
    ),
    Fixture("gemini", "gemini", '"functionCall"', _GEMINI, _FAILED_THEN_OK, _within("contents")),
    Fixture("adk session", "gemini", '"function_call"', _ADK, _FAILED_THEN_OK, _within("events")),
    Fixture(
        "livemcpbench", "livemcpbench", "meta=None", _LIVEMCP, _LIVEMCP_CALLS, _within("messages")
    ),
    Fixture("claude code", "claude-code", "sessionId", _CLAUDE_CODE, _FAILED_THEN_OK, _lines),
    Fixture("otlp requests", "spans", '"resourceSpans" in line 1', _SPANS, _FAILED_THEN_OK, _otlp),
    Fixture("sdk spans", "spans", '"context" at /0', _SPANS, _FAILED_THEN_OK, _sdk_dump),
    Fixture("flat spans", "spans", '"span_id" at /0', _SPANS, _FAILED_THEN_OK, _flat_spans),
    Fixture(
        "phoenix export", "spans", '"context" in line 1', _SPANS, _FAILED_THEN_OK, _phoenix,
    ),
    Fixture("toolfault events", "toolfault", "event_id", _EVENTS, _FAILED_THEN_OK, _lines),
)  # fmt: skip
