"""Where each instrumentation writes what: one ordered table, the first match wins per field.

A span is read by every row that recognises it; for each field the first place of these rows that
holds a value gives it. So a value at the standard's own place is taken before a vendor's, and a row
need say only where it differs. The span's dialect is the first of these rows that says who
``emits`` it, else the first that recognises it.

**Conditions** are texts: ``key`` (the attribute is there), ``key=a|b`` (it is one of these),
``key^a|b`` (it begins with one of these); ``@name``, ``@scope`` and ``@text`` (of its status)
stand for the span's own; ``a & b`` asks for both. A row recognises a span by any of its conditions.

**Places** are texts too: ``key`` (an attribute), ``key > member > ...`` (a member of the JSON in
it), ``key beside OTHER`` (an attribute of a span that has the other one too),
``event NAME > key`` (an attribute of the span's first event of that name), ``@name`` (the span's
name), ``@name ^PREFIX`` or ``@name $SUFFIX`` (the name without it, where it has it), and ``@text
PREFIX`` (what its status says after it, in quotes).

Sources: OpenTelemetry semantic conventions for generative AI v0.1.0 and for MCP (status
Development), OpenInference semantic conventions 0.1, and the documentation or code of each vendor;
``since`` says which version was read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, reduce
from typing import Final, Literal, TypeAlias

import msgspec

from toolfault_collector.otlp.calls.spans import (
    JSON,
    MAX_NESTING,
    LogRecord,
    Span,
    is_too_deep,
)

__all__ = [
    "DIALECTS",
    "Dialect",
    "Field",
    "Reading",
    "Role",
    "as_span",
    "decoded",
    "event_name",
    "text_at",
    "values_at",
]

Role: TypeAlias = Literal["tool", "part", "agent", "model", "other"]
Field: TypeAlias = Literal[
    "tool",
    "call_id",
    "arguments",
    "result",
    "error_type",
    "error_text",
    "conversation",
    "thread",
    "baggage",
    "meta",
    "mcp_session",
    "run_id",
    "agent",
    "model",
    "provider",
    "user",
    "attempt",
    "asked",
    "told",
    "tools",
]


@dataclass(frozen=True, slots=True)
class Dialect:
    """One row of the table.

    Args:
        name: As stored with each call.
        title: For people.
        since: Versions that were read.
        tool: Conditions by which a span is a tool call.
        part: Conditions by which a span is part of the tool call above it.
        agent: Conditions by which a span is the run of an agent.
        model: Conditions by which a span is a request to a model.
        emits: Conditions by which a span of any role is this vendor's.
        failed: Conditions by which a tool span says that it failed, beside its status.
        places: Where each field stands, in order. ``asked`` are messages in which a model asks for
            calls, ``told`` those that hold their answers,
            ``tools`` the tools that a model was offered.
        event: Name of the log event that is a tool call by itself.
    """

    name: str
    title: str
    since: str
    tool: tuple[str, ...] = ()
    part: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    emits: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    places: Mapping[Field, tuple[str, ...]] = field(default_factory=dict)
    event: str | None = None


DIALECTS: Final[tuple[Dialect, ...]] = (
    Dialect(
        "otel-genai",
        "OpenTelemetry GenAI",
        "semantic conventions for generative AI v0.1.0, and 1.28 to 1.41 before it",
        tool=("gen_ai.operation.name=execute_tool", "@name^execute_tool "),
        agent=("gen_ai.operation.name=invoke_agent|invoke_workflow|create_agent",),
        model=("gen_ai.operation.name=chat|generate_content|text_completion|response",),
        failed=("error.type",),
        places={
            "tool": ("gen_ai.tool.name", "@name ^execute_tool "),
            "call_id": ("gen_ai.tool.call.id",),
            "arguments": ("gen_ai.tool.call.arguments",),
            "result": ("gen_ai.tool.call.result",),
            "error_type": ("error.type",),
            "error_text": ("error.message", "exception.message"),
            "conversation": ("gen_ai.conversation.id",),
            "baggage": ("baggage.gen_ai.conversation.id", "baggage.session.id"),
            "agent": ("gen_ai.agent.name",),
            "model": ("gen_ai.response.model", "gen_ai.request.model"),
            "provider": ("gen_ai.provider.name", "gen_ai.system"),
            "user": ("user.id", "enduser.id"),
            "asked": (
                "gen_ai.output.messages",
                "event gen_ai.client.inference.operation.details > gen_ai.output.messages",
                "event gen_ai.choice > *",
            ),
            "told": (
                "gen_ai.input.messages",
                "event gen_ai.client.inference.operation.details > gen_ai.input.messages",
                "event gen_ai.tool.message > *",
                "event gen_ai.assistant.message > *",
            ),
            "tools": ("gen_ai.tool.definitions", "gen_ai.request.available_tools"),
        },
    ),
    Dialect(
        "mcp",
        "Model Context Protocol",
        "semantic conventions for MCP v0.1.0, mcp 2.3, FastMCP 4.1",
        tool=("mcp.method.name=tools/call", "@name^tools/call "),
        part=("@name^MCP send tools/call",),
        emits=("mcp.method.name=tools/call", "@name^MCP send tools/call"),
        failed=("error.type", "rpc.response.status_code^-"),
        places={
            "tool": (
                "gen_ai.tool.name",
                "mcp.tool.name",
                "@name ^tools/call ",
                "@name ^MCP send tools/call ",
            ),
            "arguments": ("mcp.request.argument", "mcp.tool.arguments"),
            "result": ("mcp.tool.result",),
            "error_type": ("error.type", "rpc.response.status_code", "rpc.jsonrpc.error_code"),
            "error_text": ("rpc.jsonrpc.error_message",),
            "meta": (
                "mcp.request.meta.openai/session",
                "openai/session",
                "mcp.request.meta.conversation_id",
            ),
            "mcp_session": ("mcp.session.id",),
        },
    ),
    Dialect(
        "openai-agents",
        "OpenAI Agents, through OpenInference",
        "openinference-instrumentation-openai-agents 2.6",
        # The turn that ended over a call: it has no span of its own.
        tool=("@name=turn & @text^Tool not found: {",),
        places={"tool": ("@text Tool not found: {'tool_name': ",)},
    ),
    Dialect(
        "openinference",
        "OpenInference (Phoenix, Arize)",
        "openinference-semantic-conventions 0.1.42; langchain 0.1.80, openai-agents 2.6",
        tool=("openinference.span.kind=TOOL",),
        agent=("openinference.span.kind=AGENT",),
        model=("openinference.span.kind=LLM",),
        emits=("openinference.span.kind",),
        places={
            "tool": ("tool.name", "@name"),
            "call_id": ("tool.id", "tool_call.id"),
            "arguments": ("input.value",),
            "result": ("output.value",),
            "conversation": ("session.id",),
            "thread": (
                "metadata > session_id",
                "metadata > thread_id",
                "metadata > conversation_id",
            ),
            "run_id": ("metadata > run_id",),
            "agent": ("agent.name", "graph.node.id"),
            "model": ("llm.model_name",),
            "provider": ("llm.provider", "llm.system"),
            "user": ("user.id",),
            "asked": ("llm.output_messages.*", "output.value"),
            "told": ("llm.input_messages.*", "output.value", "input.value"),
            "tools": ("llm.tools.*",),
        },
    ),
    Dialect(
        "traceloop",
        "Traceloop OpenLLMetry",
        "0.62; langchain, openai-agents and the decorators",
        tool=("traceloop.span.kind=tool",),
        agent=("traceloop.span.kind=agent|workflow",),
        model=("llm.request.type=chat|completion",),
        emits=("traceloop.span.kind", "@scope^opentelemetry.instrumentation.langchain"),
        failed=("gen_ai.task.status=failure",),
        places={
            "tool": ("traceloop.entity.name", "@name $.tool"),
            "call_id": ("traceloop.entity.id",),
            "arguments": ("traceloop.entity.input",),
            "result": ("traceloop.entity.output",),
            "conversation": (
                "traceloop.association.properties.session_id",
                "traceloop.association.properties.conversation_id",
            ),
            "thread": (
                "traceloop.association.properties.thread_id",
                "traceloop.association.properties.chat_id",
            ),
            "user": ("traceloop.association.properties.user_id",),
            "agent": ("traceloop.agent.name", "traceloop.workflow.name"),
            "asked": ("gen_ai.completion.*",),
            "told": ("gen_ai.prompt.*", "traceloop.entity.output"),
        },
    ),
    Dialect(
        "langfuse",
        "Langfuse",
        "5.0",
        tool=("langfuse.observation.type=tool",),
        agent=("langfuse.observation.type=agent",),
        model=("langfuse.observation.type=generation",),
        emits=("langfuse.observation.type", "@scope^langfuse-sdk"),
        failed=("langfuse.observation.level=ERROR",),
        places={
            "tool": ("@name",),
            "call_id": ("langfuse.observation.metadata.tool_call_id",),
            "arguments": ("langfuse.observation.input",),
            "result": ("langfuse.observation.output",),
            "error_text": ("langfuse.observation.status_message",),
            "conversation": ("session.id", "langfuse.session.id"),
            "thread": (
                "langfuse.trace.metadata.thread_id",
                "langfuse.observation.metadata.thread_id",
            ),
            "model": ("langfuse.observation.model.name",),
            "user": ("user.id", "langfuse.user.id"),
            "asked": ("langfuse.observation.output",),
            "told": ("langfuse.observation.input", "langfuse.observation.output"),
        },
    ),
    Dialect(
        "openai-agents-logfire",
        "OpenAI Agents, through Logfire",
        "Logfire 5.4, OpenAI Agents 0.24",
        tool=(
            "logfire.msg_template=Function: {name}",
            # The turn that ended over a call: it has no span of its own.
            'logfire.msg_template^Turn {turn} & error^{"message":"Tool not found"',
        ),
        agent=("logfire.msg_template=Agent run: {name!r}",),
        emits=(
            "logfire.msg_template=Function: {name}",
            'logfire.msg_template^Turn {turn} & error^{"message":"Tool not found"',
        ),
        places={
            "tool": ("error > data > tool_name", "name"),
            "arguments": ("input",),
            "result": ("output",),
            "error_text": ("error > data > error", "error > message"),
            "thread": ("group_id beside agent_trace_id",),
        },
    ),
    Dialect(
        "pydantic-ai",
        "Pydantic AI and Logfire",
        "Pydantic AI 2.68 (format 3), format 1 and 2 before it; Logfire 5.4",
        tool=(
            "@scope^pydantic-ai & @name^running tool: ",
            "@scope^pydantic-ai & @name=running tool",
            "tool_response & gen_ai.tool.name",
            "tool_arguments & gen_ai.tool.name",
        ),
        agent=("@scope^pydantic-ai & @name^agent run|invoke_agent",),
        emits=("@scope^pydantic-ai", "pydantic_ai.tool.failure_stage", "logfire.msg_template"),
        failed=("pydantic_ai.tool.failure_stage", "logfire.level_num=17|18|19|20|21"),
        places={
            "tool": ("@name ^running tool: ",),
            "arguments": ("tool_arguments",),
            "result": ("tool_response",),
            "error_text": ("pydantic_ai.tool.retry.cause",),
            "attempt": ("pydantic_ai.tool.retry.attempt",),
            "run_id": ("gen_ai.agent.call.id",),
            "agent": ("agent_name",),
            "model": ("model_name",),
            "told": ("pydantic_ai.all_messages", "all_messages_json"),
        },
    ),
    Dialect(
        "google-adk",
        "Google Agent Development Kit",
        "2.13 (schema 2), schema 1 before it",
        emits=("@scope^gcp.vertex.agent",),
        places={
            "arguments": ("gcp.vertex.agent.tool_call_args",),
            "result": ("gcp.vertex.agent.tool_response",),
            "thread": ("gcp.vertex.agent.session_id",),
            "run_id": ("gcp.vertex.agent.invocation_id",),
            "asked": ("gcp.vertex.agent.llm_response",),
            "told": ("gcp.vertex.agent.llm_request",),
        },
    ),
    Dialect(
        "anthropic-sdk",
        "Anthropic SDK",
        "2.12, its tool runner",
        tool=("@name^anthropic.tool_use |anthropic.mcp_tool_use |anthropic.custom_tool_use ",),
        emits=("@scope^com.anthropic.sdk|anthropic",),
        places={
            "tool": (
                "@name ^anthropic.tool_use ",
                "@name ^anthropic.mcp_tool_use ",
                "@name ^anthropic.custom_tool_use ",
            ),
            "result": ("anthropic.tool_result.content",),
            "error_text": ("anthropic.tool_result.content",),
            "thread": ("anthropic.session.id",),
        },
    ),
    Dialect(
        "claude-code",
        "Claude Code and the Claude Agent SDK",
        "2.1.330: spans, and log events",
        tool=("@name=claude_code.tool", "span.type=tool & tool_name"),
        part=("@name^claude_code.tool.|claude_code.mcp.",),
        agent=("@name=claude_code.interaction",),
        model=("@name=claude_code.llm_request",),
        emits=("@name^claude_code.", "@scope^com.anthropic.claude_code"),
        failed=("success=false",),
        event="tool_result",
        places={
            "tool": ("tool_name",),
            "call_id": ("tool_use_id",),
            "arguments": ("tool_input", "tool_parameters", "event tool.input > input"),
            "result": ("event tool.output > output", "event tool.output > content"),
            "error_type": ("error_type",),
            "error_text": ("error", "error_message"),
            "conversation": ("session.id",),
            "run_id": ("prompt.id",),
            "agent": ("agent.name", "agent_type"),
            "user": ("user.account_uuid", "user.id"),
        },
    ),
    Dialect(
        "strands",
        "Strands Agents",
        "1.62",
        emits=("@scope^strands",),
        failed=("gen_ai.tool.status=error",),
        places={
            "arguments": ("event gen_ai.tool.message > content",),
            "result": ("event gen_ai.choice > message",),
            "conversation": ("session.id",),
        },
    ),
    Dialect(
        "sentry",
        "Sentry",
        "2.75",
        tool=("sentry.op=gen_ai.execute_tool", "op=gen_ai.execute_tool"),
        agent=("sentry.op=gen_ai.invoke_agent",),
        model=("sentry.op=gen_ai.chat",),
        emits=("sentry.op",),
        places={
            "arguments": ("gen_ai.tool.input",),
            "result": ("gen_ai.tool.output",),
            "asked": ("gen_ai.response.tool_calls",),
            "told": ("gen_ai.request.messages",),
        },
    ),
    Dialect(
        "vercel-ai",
        "Vercel AI SDK",
        "7.0 (@ai-sdk/otel 1.0), 3 to 6 before it",
        tool=("ai.operationId=ai.toolCall", "@name=ai.toolCall"),
        agent=("ai.operationId=ai.generateText|ai.streamText|ai.generateObject|ai.streamObject",),
        model=("ai.operationId=ai.generateText.doGenerate|ai.streamText.doStream",),
        emits=("ai.operationId", "@scope=ai|gen_ai", "@scope^@ai-sdk/"),
        places={
            "tool": ("ai.toolCall.name",),
            "call_id": ("ai.toolCall.id",),
            "arguments": ("ai.toolCall.args", "ai.toolCall.input"),
            "result": ("ai.toolCall.result", "ai.toolCall.output"),
            "conversation": (
                "ai.telemetry.metadata.sessionId",
                "ai.telemetry.metadata.conversationId",
            ),
            "thread": ("ai.telemetry.metadata.threadId", "ai.telemetry.metadata.chatId"),
            "agent": ("ai.telemetry.functionId",),
            "model": ("ai.response.model", "ai.model.id"),
            "provider": ("ai.model.provider",),
            "user": ("ai.telemetry.metadata.userId",),
            "asked": ("ai.response.toolCalls",),
            "told": ("ai.prompt.messages", "ai.prompt"),
            "tools": ("ai.prompt.tools",),
        },
    ),
    Dialect(
        "mastra",
        "Mastra",
        "@mastra/otel-exporter 1.4, and 0.3 before it",
        tool=("mastra.span.type=tool_call|mcp_tool_call|provider_tool_call",),
        agent=("mastra.span.type=agent_run|workflow_run",),
        model=("mastra.span.type=model_generation|model_step|model_inference|llm_generation",),
        emits=("mastra.span.type", "@scope^mastra|@mastra/"),
        failed=("gen_ai.tool.success=false",),
        places={
            "arguments": ("gen_ai.tool.input", "mastra.tool_call.input", "mastra.input", "input"),
            "result": ("gen_ai.tool.output", "mastra.tool_call.output", "mastra.output", "output"),
            "error_text": ("mastra.error.message",),
            "thread": ("mastra.metadata.threadId", "mastra.thread.id"),
            "run_id": ("mastra.metadata.runId",),
            "user": ("mastra.metadata.resourceId",),
            "asked": ("mastra.model_generation.output", "mastra.model_step.output"),
            "told": ("mastra.model_generation.input", "mastra.model_step.input"),
        },
    ),
    Dialect(
        "mlflow",
        "MLflow",
        "3.17",
        tool=("mlflow.spanType=TOOL",),
        agent=("mlflow.spanType=AGENT",),
        model=("mlflow.spanType=CHAT_MODEL|LLM",),
        emits=("mlflow.spanType",),
        places={
            "tool": ("@name",),
            "call_id": ("mlflow.spanInputs > tool_call_id", "mlflow.spanInputs > id"),
            "arguments": ("mlflow.spanInputs",),
            "result": ("mlflow.spanOutputs",),
            "conversation": ("mlflow.trace.session",),
            "user": ("mlflow.trace.user",),
            "asked": ("mlflow.spanOutputs",),
            "told": ("mlflow.spanInputs",),
        },
    ),
    Dialect(
        "langsmith",
        "LangSmith",
        "0.3 and later, its OpenTelemetry exporter",
        tool=("langsmith.span.kind=tool",),
        agent=(),
        model=("langsmith.span.kind=llm",),
        emits=("langsmith.span.kind", "@scope^langsmith"),
        places={
            "tool": ("@name",),
            "call_id": ("langsmith.metadata.tool_call_id",),
            "arguments": ("gen_ai.prompt", "inputs"),
            "result": ("gen_ai.completion", "outputs"),
            "conversation": ("langsmith.metadata.session_id", "langsmith.metadata.conversation_id"),
            "thread": ("langsmith.metadata.thread_id", "langsmith.trace.session_id"),
            "model": ("langsmith.metadata.ls_model_name",),
            "provider": ("langsmith.metadata.ls_provider",),
            "asked": ("gen_ai.completion",),
            "told": ("gen_ai.prompt", "gen_ai.completion"),
        },
    ),
    Dialect(
        "livekit",
        "LiveKit Agents",
        "1.2 and later",
        tool=("lk.function_tool.name", "@name=function_tool"),
        agent=("@name=agent_session|agent_turn",),
        model=("@name=llm_node|llm_request",),
        emits=("lk.function_tool.name", "@scope^livekit"),
        failed=("lk.function_tool.is_error=true",),
        places={
            "tool": ("lk.function_tool.name",),
            "call_id": ("lk.function_tool.id",),
            "arguments": ("lk.function_tool.arguments",),
            "result": ("lk.function_tool.output",),
            "error_text": ("lk.function_tool.output",),
            "thread": ("lk.room_name",),
            "run_id": ("lk.job_id",),
            "agent": ("lk.agent_name", "lk.agent_label"),
            "asked": ("lk.response.function_calls",),
            "told": ("lk.chat_ctx",),
        },
    ),
    Dialect(
        "monocle",
        "Monocle",
        "0.5 to 0.7",
        tool=("span.type=agentic.tool.invocation", "span.type=agentic.mcp.invocation"),
        agent=("span.type=agentic.invocation|agentic.turn|agentic.request",),
        model=("span.type=inference|inference.framework|inference.modelapi",),
        emits=("monocle_apptrace.version",),
        places={
            "tool": ("entity.1.name",),
            "arguments": ("event data.input > input",),
            "result": ("event data.output > response", "event data.output > output"),
            "error_type": ("event metadata > error_code",),
            "conversation": ("scope.agentic.session",),
            "agent": ("entity.2.name",),
        },
    ),
)

# Attributes that say "nothing here", or that something was held back.
_NOTHING: Final = frozenset({"", "<not specified>", "<REDACTED>", "__REDACTED__", "[REDACTED]"})

_Test: TypeAlias = Callable[[JSON], bool]
_Place: TypeAlias = Callable[[Span], JSON]


class Reading:
    """One span as the table reads it.

    Args:
        span: The span, or a log record in its shape (see :func:`as_span`).

    Attributes:
        role: What it stands for, whatever dialect it is written in.
        dialect: Name of its dialect; empty where no row knows it.
        says_failed: Whether it says that it failed, beside its status.
    """

    __slots__ = ("_fields", "_rows", "dialect", "role", "says_failed", "span")

    def __init__(self, span: Span) -> None:
        self.span = span
        meaning = _meaning(_holding(span))
        self.role, self.dialect, self.says_failed, self._rows = meaning
        self._fields: dict[Field, JSON] = {}

    def field(self, name: Field) -> JSON:
        """Return the value of a field, or None; see the module for the rule."""
        if name not in self._fields:
            values = _values(_places(name, self._rows), self.span)
            self._fields[name] = next(iter(values), None)
        return self._fields[name]


def values_at(name: Field, span: Span) -> Iterator[JSON]:
    """Yield the values at all places of a field, of every row: what any span may carry."""
    where, attributes = _where(name), span.attributes
    if (
        where.elsewhere
        or not where.keys.isdisjoint(attributes)
        or (where.events and span.events)
        or (where.prefixes and any(key.startswith(where.prefixes) for key in attributes))
    ):
        yield from _values(_places(name, None), span)


def text_at(name: Field, span: Span) -> str | None:
    """Return the first value at any place of a field as a text, or None."""
    for value in values_at(name, span):
        if isinstance(value, str | int) and not isinstance(value, bool):
            return str(value)
    return None


def decoded(value: JSON) -> JSON:
    """Return the JSON that a text holds, else the value itself."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
        return value
    try:
        found = msgspec.json.decode(value)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return value
    brackets = value.count("[") + value.count("{")  # few say at once that it is not deep
    return value if brackets > MAX_NESTING and is_too_deep(found) else found


def as_span(record: LogRecord) -> Span:
    """Return a log record in the shape of a span, so that the table reads both."""
    attributes = dict(record.attributes)
    if isinstance(record.body, Mapping):
        attributes = {**record.body, **attributes}
    return Span(
        trace_id=record.trace_id or "",
        span_id=record.span_id or "",
        parent_id=None,
        name=event_name(record),
        start_us=record.time_us,
        end_us=record.time_us,
        attributes=attributes,
        resource=record.resource,
        scope=record.scope,
    )


def event_name(record: LogRecord) -> str:
    """Name the event of a log record, wherever its sender wrote that."""
    named = record.event_name or record.attributes.get("event.name")
    if not named and isinstance(record.body, str) and " " not in record.body[:64]:
        named = record.body
    return str(named or "")


def _values(places: Sequence[_Place], span: Span) -> Iterator[JSON]:
    for place in places:
        value = place(span)
        if isinstance(value, str):
            # Langfuse and MLflow write texts in JSON's own quotes.
            value = decoded(value) if value[:1] == '"' else value
            if isinstance(value, str) and value in _NOTHING:
                continue
        if value is not None:
            yield value


@dataclass(frozen=True, slots=True)
class _Where:
    """Where a field may stand at all: most spans hold nothing of most fields.

    To ask that first makes 71 microseconds for a span of 77, on small traces of every dialect.
    """

    keys: frozenset[str]
    prefixes: tuple[str, ...]
    events: bool
    elsewhere: bool


@cache
def _where(name: Field) -> _Where:
    places = [place for row in DIALECTS for place in row.places.get(name, ())]
    return _Where(
        keys=frozenset(place.partition(" > ")[0].partition(" beside ")[0] for place in places),
        prefixes=tuple(place[:-1] for place in places if place.endswith(".*")),
        events=any(place.startswith("event ") for place in places),
        elsewhere=any(place.startswith("@") for place in places),
    )


@cache
def _places(name: Field, rows: tuple[str, ...] | None) -> tuple[_Place, ...]:
    texts: dict[str, None] = {}
    for row in DIALECTS:
        if rows is None or row.name in rows:
            texts.update(dict.fromkeys(row.places.get(name, ())))
    return tuple(_place(text) for text in texts)


@cache
def _place(text: str) -> _Place:
    if text.startswith("event "):
        event, _, key = text.removeprefix("event ").partition(" > ")
        return lambda span: _of_event(span, event, key)
    if text.startswith("@name"):
        return _name_place(text.removeprefix("@name").strip(), " " if text.endswith(" ") else "")
    if text.endswith(".*"):
        prefix = text[:-1]
        return lambda span: _flat(span, prefix)
    if text.startswith("@text "):
        prefix = text.removeprefix("@text ")
        return lambda span: _quoted(span.status_text, prefix)
    key, _, other = text.partition(" beside ")
    if other:
        return lambda span: span.attributes.get(key) if other in span.attributes else None
    key, *members = text.split(" > ")
    if not members:
        return lambda span: span.attributes.get(key)
    return lambda span: reduce(_member, members, span.attributes.get(key))


def _name_place(rest: str, end: str) -> _Place:
    if rest.startswith("^"):
        prefix = rest[1:] + end
        return lambda span: span.name.removeprefix(prefix) if span.name.startswith(prefix) else None
    if rest.startswith("$"):
        suffix = rest[1:]
        return lambda span: span.name.removesuffix(suffix) if span.name.endswith(suffix) else None
    return lambda span: span.name


def _quoted(text: str, prefix: str) -> str | None:
    """Return what stands in quotes behind *prefix*."""
    rest = text.removeprefix(prefix)
    quote = rest[:1]
    if rest == text or quote not in ("'", '"'):
        return None
    return rest[1:].partition(quote)[0]


def _of_event(span: Span, name: str, key: str) -> JSON:
    for event in span.events:
        if event.name == name:
            if key == "*":
                continue
            if (value := event.attributes.get(key)) is not None:
                return value
    if key == "*":
        found = [dict(event.attributes) for event in span.events if event.name == name]
        return found or None
    return None


def _member(value: JSON, member: str) -> JSON:
    value = decoded(value) if value is not None else None
    return value.get(member) if isinstance(value, Mapping) else None


def _flat(span: Span, prefix: str) -> JSON:
    """Return the JSON that attributes such as ``llm.input_messages.0.message.role`` spell out."""
    tree: dict[str, JSON] = {}
    for key, value in span.attributes.items():
        if not key.startswith(prefix):
            continue
        *above, last = key[len(prefix) :].split(".")
        node = tree
        for part in above:
            inner = node.get(part)
            if not isinstance(inner, dict):
                inner = node[part] = {}
            node = inner
        if not isinstance(node.get(last), dict):
            node[last] = value
    return _listed(tree) if tree else None


def _listed(node: JSON) -> JSON:
    """Turn objects whose members are all numbered into lists."""
    if not isinstance(node, dict):
        return node
    members = {key: _listed(value) for key, value in node.items()}
    if members and all(key.isdecimal() for key in members):
        return [members[key] for key in sorted(members, key=int)]
    return members


# Conditions. Each span is asked for all of them at once: those of its attributes by its keys, those
# of its name and scope from what earlier spans of these were found to be.


def _holding(span: Span) -> frozenset[str]:
    """Return all conditions of the table that hold for a span."""
    found = _holding_for("@name", span.name) | _holding_for("@scope", span.scope)
    if span.status_text:
        found |= _holding_for("@text", span.status_text[:_TEXT])
    hits = _KEYS.intersection(span.attributes)
    if hits:
        attributes = span.attributes
        found |= {text for key in hits for text, test in _BY_KEY[key] if test(attributes[key])}
    both = [text for text, parts in _COMPOUND if found.issuperset(parts)]
    return found.union(both) if both else found


@lru_cache(maxsize=4_096)
def _holding_for(subject: str, value: str) -> frozenset[str]:
    return frozenset(text for text, test in _BY_KEY.get(subject, ()) if test(value))


@lru_cache(maxsize=4_096)
def _meaning(found: frozenset[str]) -> tuple[Role, str, bool, tuple[str, ...]]:
    """Return what a span is for which these conditions hold: role, dialect, failure and rows."""

    def of(conditions: Sequence[str]) -> bool:
        return not found.isdisjoint(conditions)

    roles: list[tuple[Role, bool]] = [
        ("part", any(of(row.part) for row in DIALECTS)),
        ("tool", any(of(row.tool) for row in DIALECTS)),
        ("model", any(of(row.model) for row in DIALECTS)),
        ("agent", any(of(row.agent) for row in DIALECTS)),
    ]
    role: Role = next((name for name, holding in roles if holding), "other")
    # Vendors with rules of their own still use the standard's attributes for the rest.
    reading = [
        row for row in DIALECTS if row is DIALECTS[0] or of((*row.tool, *row.part, *row.emits))
    ]
    names = [row.name for row in DIALECTS if of(row.emits) and row.name not in _GENERIC]
    names += [row.name for row in reading if row.name != "otel-genai"]
    names += [row.name for row in DIALECTS if of((*row.tool, *row.model, *row.agent))]
    failed = any(of(row.failed) for row in reading)
    return role, names[0] if names else "", failed, tuple(row.name for row in reading)


def _test(sign: str, wanted: tuple[str, ...]) -> _Test:
    if not sign:
        return lambda value: value is not None
    if sign == "^":
        return lambda value: _written(value).startswith(wanted)
    return lambda value: _written(value) in wanted


def _written(value: JSON) -> str:
    """Write a value as conditions write it; MLflow puts every attribute in JSON's own quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.strip('"') if isinstance(value, str) else "" if value is None else str(value)


def _atoms() -> Mapping[str, list[tuple[str, _Test]]]:
    found: defaultdict[str, dict[str, _Test]] = defaultdict(dict)
    for text in _all_conditions():
        for atom in text.split(" & "):
            at = min((atom.index(sign) for sign in "=^" if sign in atom), default=len(atom))
            found[atom[:at]][atom] = _test(atom[at : at + 1], tuple(atom[at + 1 :].split("|")))
    return {key: list(tests.items()) for key, tests in found.items()}


def _all_conditions() -> Iterator[str]:
    for row in DIALECTS:
        yield from (*row.tool, *row.part, *row.agent, *row.model, *row.emits, *row.failed)


_TEXT: Final = 64  # characters of a status that conditions look at
# These emit what others name more exactly.
_GENERIC: Final = frozenset({"otel-genai", "openinference", "mcp"})
_BY_KEY: Final = _atoms()
_KEYS: Final = frozenset(key for key in _BY_KEY if not key.startswith("@"))
_COMPOUND: Final = tuple(
    (text, frozenset(text.split(" & "))) for text in _all_conditions() if " & " in text
)
