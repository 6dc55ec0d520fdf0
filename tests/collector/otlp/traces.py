"""Small traces as each instrumentation writes them, and the calls that they tell of.

Written by hand after the conventions and the vendors' own descriptions; each holds what its dialect
does differently, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolfault_collector.otlp.calls.spans import LogRecord, Span, SpanEvent, SpanStatus

TRACE = "0af7651916cd43dd8448eb211c80319c"
BEGAN = 1_760_000_000_000_000
PYDANTIC = (
    "1 validation error for call[book]\nseats\n  Input should be a valid integer, unable to parse"
    " string as an integer [type=int_parsing, input_value='two', input_type=str]"
)

Attributes = Mapping[str, Any]


@dataclass(frozen=True)
class Fixture:
    """One trace with the calls expected of it: for each, some fields with their values."""

    spans: Sequence[Span]
    calls: Sequence[Attributes]
    logs: Sequence[LogRecord] = ()
    unused: Sequence[tuple[str, str]] = field(default=())


def span(
    name: str,
    attributes: Attributes,
    *,
    id: int,  # noqa: A002 - reads as in a table
    under: int | None = None,
    at: int = 0,
    lasts: int = 10,
    status: SpanStatus = "unset",
    text: str = "",
    scope: str = "",
    kind: str = "internal",
    events: Sequence[SpanEvent] = (),
    trace: str = TRACE,
    resource: Attributes | None = None,
) -> Span:
    """Make a span; times are in milliseconds since the trace began, ids are numbers."""
    return Span(
        trace_id=trace,
        span_id=f"{id:016x}",
        parent_id=None if under is None else f"{under:016x}",
        name=name,
        kind=kind,
        start_us=BEGAN + at * 1_000,
        end_us=BEGAN + (at + lasts) * 1_000,
        status=status,
        status_text=text,
        attributes=attributes,
        events=tuple(events),
        resource=resource or {},
        scope=scope,
    )


def raised(kind: str, message: str) -> SpanEvent:
    """Make the event by which the SDKs record an exception."""
    return SpanEvent("exception", BEGAN, {"exception.type": kind, "exception.message": message})


def tool(**attributes: Any) -> dict[str, Any]:
    """Give the attributes of a tool span of the conventions."""
    named = {"tool": "gen_ai.tool.name", "id": "gen_ai.tool.call.id"}
    named |= {"args": "gen_ai.tool.call.arguments", "result": "gen_ai.tool.call.result"}
    known = {named.get(key, key): value for key, value in attributes.items()}
    return {"gen_ai.operation.name": "execute_tool", **known}


def asking(*calls: tuple[str, str, Any]) -> str:
    """Give a model's answer with tool calls, in the conventions' messages."""
    parts = [{"type": "tool_call", "id": i, "name": n, "arguments": a} for i, n, a in calls]
    return json.dumps([{"role": "assistant", "parts": parts, "finish_reason": "tool_call"}])


def answering(*results: tuple[str, Any]) -> str:
    """Give a request to a model with the results of tool calls."""
    parts = [{"type": "tool_call_response", "id": i, "response": r} for i, r in results]
    return json.dumps([{"role": "tool", "parts": parts}])


def _otel_genai() -> Fixture:
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "travel"}
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"}
    return Fixture(
        [
            span(
                "invoke_agent travel", {**agent, "gen_ai.conversation.id": "conv"}, id=1, lasts=90
            ),
            span(
                "chat m-1",
                {
                    **chat,
                    "gen_ai.provider.name": "acme",
                    "gen_ai.output.messages": asking(("c1", "book", {"seats": "two"})),
                },
                id=2,
                under=1,
                at=1,
            ),
            span(
                "execute_tool book",
                tool(
                    tool="book",
                    id="c1",
                    args='{"seats": "two"}',
                    **{"error.type": "pydantic_core.ValidationError"},
                ),
                id=3,
                under=1,
                at=20,
                status="error",
                text=PYDANTIC,
            ),
            span(
                "execute_tool book",
                tool(tool="book", id="c2", args={"seats": 2}, result={"ok": True}),
                id=4,
                under=1,
                at=40,
            ),
        ],
        [
            {
                "tool": "book",
                "call_id": "c1",
                "conversation": "conv",
                "conversation_rung": "explicit",
                "turn": f"{2:016x}",
                "agent": "travel",
                "model": "m-1",
                "provider": "acme",
                "arguments": {"seats": "two"},
                "failed": True,
                "detection": "status",
                "error_text": PYDANTIC,
            },
            {
                "tool": "book",
                "call_id": "c2",
                "failed": False,
                "arguments": {"seats": 2},
                "result": '{"ok": true}',
            },
        ],
    )


def _mcp() -> Fixture:
    call = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "book", "mcp.session.id": "s-1"}
    failed = {**call, "rpc.response.status_code": "-32602", "error.type": "-32602"}
    text = "MCP error -32602: Invalid arguments for tool book"
    return Fixture(
        [
            span("tools/call book", failed, id=1, kind="server", status="error", text=text),
            span(
                "tools/call book", {**call, "error.type": "tool_error"}, id=2, at=20, kind="server"
            ),
            span("tools/call book", call, id=3, at=40, kind="server"),
        ],
        [
            {
                "tool": "book",
                "failed": True,
                "error_text": text,
                "error_type": "-32602",
                "conversation": "s-1",
                "conversation_rung": "meta",
            },
            {"tool": "book", "failed": True, "detection": "error_type", "error_text": "tool_error"},
            {"tool": "book", "failed": False, "detection": "explicit"},
        ],
    )


def _openinference() -> Fixture:
    kind = "openinference.span.kind"
    asked = "llm.output_messages.0.message.tool_calls.0.tool_call"
    model = {
        kind: "LLM",
        "llm.model_name": "m-1",
        f"{asked}.id": "c1",
        f"{asked}.function.name": "book",
        f"{asked}.function.arguments": '{"seats": "two"}',
    }
    return Fixture(
        [
            span("graph", {kind: "CHAIN", "session.id": "thread-7"}, id=1, lasts=90),
            span("ChatModel", model, id=2, under=1, at=1),
            span(
                "book",
                {kind: "TOOL", "tool.name": "book", "input.value": "two", "output.value": ""},
                id=3,
                under=1,
                at=20,
                status="error",
                text="Traceback (most recent call last): ...",
                events=[raised("pydantic_core.ValidationError", PYDANTIC)],
            ),
            # LangChain's tool that handles its own error: the span is fine, the message is not.
            span(
                "book",
                {
                    kind: "TOOL",
                    "tool.name": "book",
                    "input.value": '{"seats": 9}',
                    "output.mime_type": "application/json",
                    "output.value": json.dumps(
                        {
                            "type": "tool",
                            "data": {
                                "content": "sold out",
                                "tool_call_id": "c2",
                                "status": "error",
                            },
                        }
                    ),
                },
                id=4,
                under=1,
                at=40,
                status="ok",
            ),
        ],
        [
            {
                "tool": "book",
                "call_id": "c1",
                "conversation": "thread-7",
                "arguments": "two",
                "failed": True,
                "detection": "status",
                "error_text": PYDANTIC,
                "exception_type": "pydantic_core.ValidationError",
                "model": "m-1",
            },
            {
                "tool": "book",
                "failed": True,
                "detection": "soft:message_error",
                "error_text": "sold out",
            },
        ],
    )


def _traceloop() -> Fixture:
    envelope = json.dumps(
        {"input_str": "{'seats': 'two'}", "tags": [], "metadata": {}, "inputs": {"seats": "two"}}
    )
    return Fixture(
        [
            span(
                "run.workflow",
                {
                    "traceloop.span.kind": "workflow",
                    "traceloop.association.properties.thread_id": "t-7",
                },
                id=1,
                lasts=90,
            ),
            span(
                "execute_tool book",
                tool(
                    tool="book",
                    args=envelope,
                    **{
                        "traceloop.span.kind": "tool",
                        "error.type": "ValidationError",
                        "gen_ai.task.status": "failure",
                    },
                ),
                id=2,
                under=1,
                at=10,
                events=[raised("ValidationError", PYDANTIC)],
            ),
            span(
                "pay.tool",
                {
                    "traceloop.span.kind": "tool",
                    "traceloop.entity.name": "pay",
                    "traceloop.entity.input": '{"args": [], "kwargs": {"amount": 3}}',
                },
                id=3,
                under=1,
                at=30,
            ),
        ],
        [
            {
                "tool": "book",
                "arguments": {"seats": "two"},
                "failed": True,
                "detection": "error_type",
                "error_text": PYDANTIC,
                "conversation": "t-7",
                "conversation_rung": "framework",
            },
            {"tool": "pay", "arguments": {"amount": 3}, "failed": False},
        ],
    )


def _langfuse() -> Fixture:
    kind = "langfuse.observation.type"
    failed = {
        kind: "tool",
        "langfuse.observation.input": '{"seats": "two"}',
        "langfuse.observation.level": "ERROR",
        "langfuse.observation.status_message": "no seats left",
    }
    return Fixture(
        [
            span("chat", {kind: "agent", "session.id": "conv"}, id=1, lasts=90),
            span("book", failed, id=2, under=1, at=10),
            span(
                "book",
                {kind: "tool", "langfuse.observation.output": '"done"'},
                id=3,
                under=1,
                at=30,
            ),
        ],
        [
            {
                "tool": "book",
                "conversation": "conv",
                "failed": True,
                "detection": "error_type",
                "error_text": "no seats left",
            },
            {"tool": "book", "failed": False, "result": "done"},
        ],
    )


def _pydantic_ai() -> Fixture:
    retry = {"pydantic_ai.tool.failure_stage": "validation", "pydantic_ai.tool.retry.attempt": 1}
    scope = "pydantic-ai"
    return Fixture(
        [
            span(
                "execute_tool book",
                tool(
                    tool="book",
                    id="c1",
                    args='{"seats":"two"}',
                    **{**retry, "gen_ai.conversation.id": "conv"},
                ),
                id=1,
                status="error",
                scope=scope,
                events=[raised("pydantic_ai.exceptions.ToolRetryError", PYDANTIC)],
            ),
            # Format 2 and before.
            span(
                "running tool",
                {
                    "gen_ai.tool.name": "pay",
                    "gen_ai.tool.call.id": "c2",
                    "tool_arguments": '{"amount":3}',
                    "tool_response": "paid",
                },
                id=2,
                at=20,
                scope=scope,
            ),
        ],
        [
            {
                "tool": "book",
                "call_id": "c1",
                "failed": True,
                "attempt": 1,
                "conversation": "conv",
                "error_text": PYDANTIC,
            },
            {
                "tool": "pay",
                "call_id": "c2",
                "failed": False,
                "arguments": {"amount": 3},
                "result": "paid",
            },
        ],
    )


def _openai_agents() -> Fixture:
    """OpenInference writes no span for a tool that is not there; the turn ends over it."""
    kind = {"openinference.span.kind": "CHAIN"}
    text = "Tool not found: {'tool_name': 'bok'}"
    return Fixture(
        spans=[
            span("travel", {"openinference.span.kind": "AGENT", "agent.name": "travel"}, id=1),
            span("turn", kind, id=2, under=1, status="error", text=text),
            span("turn", kind, id=3, under=1, at=20),
        ],
        calls=[{"tool": "bok", "agent": "travel", "detection": "status", "error_text": text}],
    )


def _openai_agents_logfire() -> Fixture:
    """The name of a span is a template; the group of the trace stands on its root."""
    template = "logfire.msg_template"
    function = {template: "Function: {name}", "name": "book", "input": '{"seats": "two"}'}
    redacted = {"tool_name": "book", "error": "Tool execution failed. Error details are redacted."}
    error = json.dumps({"message": "Error running tool (non-fatal)", "data": redacted})
    missing = '{"message":"Tool not found","data":{"tool_name":"bok"}}'
    turn = {template: "Turn {turn} for agent travel", "name": "turn", "agent_name": "travel"}
    root = {template: "OpenAI Agents trace: {name}", "agent_trace_id": "trace_1", "group_id": "g"}
    return Fixture(
        spans=[
            span("OpenAI Agents trace: {name}", root, id=1, lasts=90),
            span("Turn {turn} for agent travel", turn, id=2, under=1),
            span("Function: {name}", {**function, "error": error}, id=3, under=2, status="error"),
            span("Turn {turn}", {**turn, "error": missing}, id=4, under=1, at=20, status="error"),
            span("Function: {name}", {**function, "output": "done"}, id=5, under=2, at=40),
        ],
        calls=[
            {
                "tool": "book",
                "conversation": "g",
                "conversation_rung": "framework",
                "error_text": redacted["error"],
                "arguments": {"seats": "two"},
            },
            {"tool": "bok", "agent": "travel", "error_text": "Tool not found", "failed": True},
            {"tool": "book", "failed": False, "result": "done"},
        ],
    )


def _google_adk() -> Fixture:
    scope = "gcp.vertex.agent"
    return Fixture(
        [
            span(
                "invoke_agent a",
                {
                    "gen_ai.operation.name": "invoke_agent",
                    "gen_ai.agent.name": "a",
                    "gen_ai.conversation.id": "conv",
                },
                id=1,
                lasts=90,
                scope=scope,
            ),
            span(
                "execute_tool book",
                tool(tool="book", id="<not specified>", **{"error.type": "ValueError"}),
                id=2,
                under=1,
                at=10,
                scope=scope,
                status="error",
                text="no seats",
            ),
            span(
                "execute_tool book",
                tool(
                    tool="book",
                    id="c2",
                    **{
                        "gcp.vertex.agent.tool_call_args": '{"seats": 1}',
                        "gcp.vertex.agent.tool_response": json.dumps(
                            {"status": "error", "error_message": "sold out"}
                        ),
                    },
                ),
                id=3,
                under=1,
                at=30,
                scope=scope,
            ),
        ],
        [
            {
                "tool": "book",
                "call_id": None,
                "conversation": "conv",
                "agent": "a",
                "failed": True,
                "error_text": "no seats",
            },
            {
                "tool": "book",
                "call_id": "c2",
                "arguments": {"seats": 1},
                "failed": True,
                "detection": "soft:json_status",
                "error_text": "sold out",
            },
        ],
    )


def _anthropic_sdk() -> Fixture:
    failed = tool(
        tool="book", id="toolu_1", **{"error.type": "tool_error", "gen_ai.conversation.id": "conv"}
    )
    return Fixture(
        [
            span(
                "anthropic.tool_use book",
                {**failed, "anthropic.tool_result.content": "Error: sold out"},
                id=1,
                status="error",
                scope="com.anthropic.sdk.python",
            )
        ],
        [
            {
                "tool": "book",
                "call_id": "toolu_1",
                "conversation": "conv",
                "failed": True,
                "error_type": "tool_error",
                "error_text": "Error: sold out",
            }
        ],
    )


def _claude_code() -> Fixture:
    scope = "com.anthropic.claude_code"
    call = {
        "span.type": "tool",
        "tool_name": "Bash",
        "tool_use_id": "toolu_1",
        "session.id": "conv",
    }
    event = {
        "event.name": "tool_result",
        "tool_name": "Bash",
        "tool_use_id": "toolu_1",
        "success": "false",
        "error": "Exit code 2",
        "session.id": "conv",
    }
    alone = {
        **event,
        "tool_use_id": "toolu_2",
        "tool_name": "Read",
        "success": "true",
        "tool_input": '{"path": "a"}',
    }
    del alone["error"]
    return Fixture(
        [
            span("claude_code.tool", call, id=1, scope=scope),
            span(
                "claude_code.tool.blocked_on_user",
                {"decision": "accept"},
                id=2,
                under=1,
                at=1,
                lasts=2,
                scope=scope,
            ),
            span(
                "claude_code.tool.execution",
                {"success": False, "error": "Exit code 2\nno such file"},
                id=3,
                under=1,
                at=4,
                lasts=2,
                scope=scope,
            ),
        ],
        [
            {
                "tool": "Bash",
                "call_id": "toolu_1",
                "conversation": "conv",
                "failed": True,
                "detection": "error_type",
                "error_text": "Exit code 2\nno such file",
            },
            {
                "tool": "Read",
                "call_id": "toolu_2",
                "conversation": "conv",
                "failed": False,
                "arguments": {"path": "a"},
            },
        ],
        logs=[
            LogRecord(
                TRACE, None, "", BEGAN + 9_000, 9, "claude_code.tool_result", event, {}, scope
            ),
            LogRecord(
                TRACE, None, "", BEGAN + 20_000, 9, "claude_code.tool_result", alone, {}, scope
            ),
        ],
    )


def _strands() -> Fixture:
    content = SpanEvent(
        "gen_ai.tool.message", BEGAN, {"role": "tool", "content": '{"seats": "two"}', "id": "c1"}
    )
    answer = SpanEvent("gen_ai.choice", BEGAN, {"message": '[{"text": "sold out"}]', "id": "c1"})
    return Fixture(
        [
            span(
                "execute_tool book",
                tool(tool="book", id="c1", **{"gen_ai.tool.status": "error", "session.id": "conv"}),
                id=1,
                scope="strands.telemetry.tracer",
                events=[content, answer],
            )
        ],
        [
            {
                "tool": "book",
                "call_id": "c1",
                "arguments": {"seats": "two"},
                "failed": True,
                "detection": "error_type",
                "error_text": "sold out",
                "conversation": "conv",
            }
        ],
    )


def _sentry() -> Fixture:
    return Fixture(
        [
            span(
                "execute_tool book",
                {
                    "sentry.op": "gen_ai.execute_tool",
                    "gen_ai.tool.name": "book",
                    "gen_ai.tool.input": '{"seats": 1}',
                    "gen_ai.conversation.id": "conv",
                },
                id=1,
                status="error",
                text="internal_error",
                events=[raised("RuntimeError", "sold out")],
            )
        ],
        [
            {
                "tool": "book",
                "arguments": {"seats": 1},
                "failed": True,
                "error_text": "sold out",
                "conversation": "conv",
            }
        ],
    )


def _vercel_ai() -> Fixture:
    """Version 6 has names of its own; it makes no span for a call that fits no tool."""
    top = {"ai.operationId": "ai.generateText", "ai.telemetry.metadata.sessionId": "conv"}
    calls = [
        {"toolCallId": "c1", "toolName": "book", "input": {"seats": 1}},
        {"toolCallId": "c2", "toolName": "bok", "input": {}},
    ]
    told = [
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "c1",
                    "toolName": "book",
                    "output": {"type": "error-text", "value": "sold out"},
                },
                {
                    "type": "tool-result",
                    "toolCallId": "c2",
                    "toolName": "bok",
                    "output": {
                        "type": "error-text",
                        "value": "Model tried to call unavailable tool 'bok'. Available tools: b.",
                    },
                },
            ],
        }
    ]
    step = {"ai.operationId": "ai.generateText.doGenerate", "ai.model.id": "m-1"}
    return Fixture(
        [
            span("ai.generateText", top, id=1, lasts=90, scope="ai"),
            span(
                "ai.generateText.doGenerate",
                {**step, "ai.response.toolCalls": json.dumps(calls)},
                id=2,
                under=1,
                at=1,
                scope="ai",
            ),
            span(
                "ai.toolCall",
                {
                    "ai.operationId": "ai.toolCall",
                    "ai.toolCall.name": "book",
                    "ai.toolCall.id": "c1",
                    "ai.toolCall.args": '{"seats":1}',
                },
                id=3,
                under=1,
                at=20,
                status="error",
                text="sold out",
                events=[raised("Error", "sold out")],
                scope="ai",
            ),
            span(
                "ai.generateText.doGenerate",
                {**step, "ai.prompt.messages": json.dumps(told)},
                id=4,
                under=1,
                at=40,
                scope="ai",
            ),
        ],
        [
            {
                "tool": "bok",
                "call_id": "c2",
                "reached": False,
                "failed": True,
                "detection": "soft:message_error",
                "turn": f"{2:016x}",
                "conversation": "conv",
                "model": "m-1",
            },
            {
                "tool": "book",
                "call_id": "c1",
                "reached": True,
                "failed": True,
                "detection": "status",
                "error_text": "sold out",
                "turn": f"{2:016x}",
                "model": "m-1",
            },
        ],
    )


def _vercel_ai_7() -> Fixture:
    """Version 7 follows the conventions, without an id of the conversation or ``error.type``."""
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"}
    denied = "Tool execution denied."
    return Fixture(
        [
            span(
                "invoke_agent",
                {"gen_ai.operation.name": "invoke_agent"},
                id=1,
                lasts=90,
                scope="@ai-sdk/otel",
            ),
            span(
                "chat m-1",
                {**chat, "gen_ai.output.messages": asking(("c1", "book", {}), ("c2", "pay", {}))},
                id=2,
                under=1,
                at=1,
                scope="@ai-sdk/otel",
            ),
            span(
                "execute_tool book",
                tool(tool="book", id="c1"),
                id=3,
                under=1,
                at=20,
                status="error",
                events=[raised("Error", "sold out")],
                scope="@ai-sdk/otel",
            ),
            span(
                "chat m-1",
                {**chat, "gen_ai.input.messages": answering(("c1", "sold out"), ("c2", denied))},
                id=4,
                under=1,
                at=40,
                scope="@ai-sdk/otel",
            ),
        ],
        [
            {
                "tool": "book",
                "call_id": "c1",
                "failed": True,
                "error_text": "sold out",
                "conversation": TRACE,
                "conversation_rung": "trace",
            }
        ],
        unused=[("pay", "control_flow")],
    )


def _mastra() -> Fixture:
    kind = "mastra.span.type"
    return Fixture(
        [
            span(
                "agent",
                {kind: "agent_run", "mastra.metadata.threadId": "t-1"},
                id=1,
                lasts=90,
                scope="@mastra/otel",
            ),
            span(
                "tool: book",
                tool(
                    tool="book",
                    id="c1",
                    **{
                        kind: "tool_call",
                        "gen_ai.tool.input": '{"seats":1}',
                        "gen_ai.tool.success": False,
                        "mastra.error.message": "sold out",
                    },
                ),
                id=2,
                under=1,
                at=10,
                scope="@mastra/otel",
            ),
        ],
        [
            {
                "tool": "book",
                "arguments": {"seats": 1},
                "failed": True,
                "detection": "error_type",
                "error_text": "sold out",
                "conversation": "t-1",
                "conversation_rung": "framework",
            }
        ],
    )


def _mlflow() -> Fixture:
    return Fixture(
        [
            span(
                "book",
                {
                    "mlflow.spanType": '"TOOL"',
                    "mlflow.spanInputs": '{"seats": 1}',
                    "mlflow.trace.session": "conv",
                },
                id=1,
                status="error",
                events=[raised("ValueError", "sold out")],
            )
        ],
        [
            {
                "tool": "book",
                "arguments": {"seats": 1},
                "failed": True,
                "error_text": "sold out",
                "conversation": "conv",
            }
        ],
    )


def _langsmith() -> Fixture:
    return Fixture(
        [
            span(
                "book",
                {
                    "langsmith.span.kind": "tool",
                    "gen_ai.prompt": '{"seats": 1}',
                    "langsmith.trace.session_id": "s-1",
                },
                id=1,
                status="error",
                text="ValueError('sold out')",
            )
        ],
        [
            {
                "tool": "book",
                "arguments": {"seats": 1},
                "failed": True,
                "error_text": "ValueError: sold out",
                "conversation": "s-1",
            }
        ],
    )


def _livekit() -> Fixture:
    lk = "lk.function_tool"
    return Fixture(
        [
            span("agent_session", {"lk.room_name": "room"}, id=1, lasts=90, scope="livekit-agents"),
            span(
                "function_tool",
                {
                    f"{lk}.name": "book",
                    f"{lk}.id": "c1",
                    f"{lk}.arguments": '{"seats": 1}',
                    f"{lk}.is_error": True,
                    f"{lk}.output": "sold out",
                },
                id=2,
                under=1,
                at=10,
                scope="livekit-agents",
            ),
        ],
        [
            {
                "tool": "book",
                "call_id": "c1",
                "arguments": {"seats": 1},
                "failed": True,
                "detection": "error_type",
                "error_text": "sold out",
                "conversation": "room",
            }
        ],
    )


def _monocle() -> Fixture:
    call = {"monocle_apptrace.version": "0.7.0", "entity.1.name": "book"}
    given = SpanEvent("data.input", BEGAN, {"input": '{"seats": 1}'})
    return Fixture(
        [
            span(
                "StructuredTool._arun",
                {
                    **call,
                    "span.type": "agentic.tool.invocation",
                    "entity.2.name": "travel",
                    "scope.agentic.session": "conv",
                },
                id=1,
                status="error",
                text="sold out",
                events=[given],
            ),
            span(
                "send_request",
                {**call, "span.type": "agentic.mcp.invocation"},
                id=2,
                under=1,
                at=2,
                lasts=3,
                status="error",
            ),
        ],
        [
            {
                "tool": "book",
                "arguments": {"seats": 1},
                "agent": "travel",
                "failed": True,
                "error_text": "sold out",
                "conversation": "conv",
                "span_ids": (f"{1:016x}", f"{2:016x}"),
            }
        ],
    )


FIXTURES = {
    "otel-genai": _otel_genai(),
    "mcp": _mcp(),
    "openinference": _openinference(),
    "traceloop": _traceloop(),
    "langfuse": _langfuse(),
    "pydantic-ai": _pydantic_ai(),
    "openai-agents": _openai_agents(),
    "openai-agents-logfire": _openai_agents_logfire(),
    "google-adk": _google_adk(),
    "anthropic-sdk": _anthropic_sdk(),
    "claude-code": _claude_code(),
    "strands": _strands(),
    "sentry": _sentry(),
    "vercel-ai": _vercel_ai(),
    "vercel-ai-7": _vercel_ai_7(),
    "mastra": _mastra(),
    "mlflow": _mlflow(),
    "langsmith": _langsmith(),
    "livekit": _livekit(),
    "monocle": _monocle(),
}
