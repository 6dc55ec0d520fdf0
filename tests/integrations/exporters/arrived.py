"""What arrives of each exporter; ``python -m`` of this module writes ``docs/dialects.md``.

Each sender is a program of its own with a real framework, its real instrumentation and the official
exporter, a scripted model and no network; it sends to a collector of this machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sqlalchemy import select
from tests.integrations.exporters.environments import (
    NODE_FOLDER,
    SHARED,
    node_modules,
    node_of,
    python_of,
    requirements_of,
)
from tests.running import RunningCollector

from toolfault_collector.storage.database.engine import open_engine
from toolfault_collector.storage.database.schema import prepare
from toolfault_collector.storage.tables import project, tool_call

__all__ = [
    "CODES",
    "CONVERSATION",
    "SENDERS",
    "Case",
    "Sender",
    "arrived",
    "by_case",
    "collector",
    "is_made",
]

ROOT: Final = Path(__file__).resolve().parents[3]
PAGE: Final = ROOT / "docs" / "dialects.md"
CONVERSATION: Final = "trip-7"
SHOWN: Final = 90  # characters of a text
_INTRODUCTION: Final = """\
# What each exporter sends

<!-- Written by python -m tests.integrations.exporters.arrived -->

Real frameworks with their own instrumentations and exporters sent five calls each to a collector,
with a scripted model and without a network. Each table is what arrived. `make test-integrations`
runs them again and compares. A failure that arrives is there once, however many spans tell of it.

Beside the lines that a section shows, each needs the three variables of [OpenTelemetry](otlp.md).
Where an instrumentation leaves out contents by default, let it send them
(`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY`): only the messages of the model
tell of calls that were rejected before they ran.

*By* is the sign by which a call counts as failed; `soft:` stands before the name of a
[rule](otlp.md#results-that-read-like-a-failure). *Conversation* says whether the id that the agent
used arrived, else what stands for it: the trace, or a session of MCP.
"""

_NO_ID = "its spans hold no call id"
_OF_TRACE = "its spans name no conversation, so the trace stands for it"
_HIDDEN = "its spans hold nothing of a call to a tool that does not exist"


@dataclass(frozen=True)
class Sender:
    """One exporter.

    Attributes:
        name: Names it in tests and projects.
        title: As people call it.
        program: Module with its arguments, or a file for node.
        packages: Those whose versions are shown.
        setup: The lines that a user adds to an agent.
        lacks: What its spans do not hold, with the reason: ``call_id``, ``conversation``, or a
            case that leaves nothing.
        codes: By case, the code where it is another than `CODES` says.
        environment: Where its packages are.
    """

    name: str
    title: str
    program: tuple[str, ...]
    packages: tuple[str, ...]
    setup: str
    lacks: Mapping[str, str] = field(default_factory=dict)
    codes: Mapping[str, str] = field(default_factory=dict)
    environment: str = SHARED

    @property
    def is_node(self) -> bool:
        """Whether it is JavaScript."""
        return self.program[0].endswith(".mjs")


CODES: Final[Mapping[str, str | None]] = {
    "arguments": "missing_field",
    "raises": "external_service_error",
    "unknown": "not_available",
    "told": "unclassified",
    "works": None,
}
"""By case, the code of its failure; None for the call that works."""

_PROVIDER: Final = """\
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
"""
_REDACTED: Final = {"arguments": "unclassified", "raises": "unclassified"}
SENDERS: Final = (
    Sender(
        "opentelemetry-sdk",
        "OpenTelemetry SDK, spans by hand",
        ("opentelemetry_sdk",),
        ("opentelemetry-sdk",),
        _PROVIDER
        + 'with provider.get_tracer("agent").start_as_current_span("execute_tool book"): ...',
    ),
    Sender(
        "langchain-opentelemetry",
        "LangChain, instrumented by OpenTelemetry",
        ("langchain", "opentelemetry"),
        ("langchain", "opentelemetry-instrumentation-genai-langchain"),
        _PROVIDER + "LangChainInstrumentor().instrument(tracer_provider=provider)",
        {"unknown": _HIDDEN},
    ),
    Sender(
        "langchain-openinference",
        "LangChain, instrumented by OpenInference",
        ("langchain", "openinference"),
        ("langchain", "openinference-instrumentation-langchain"),
        _PROVIDER + "LangChainInstrumentor().instrument(tracer_provider=provider)",
    ),
    Sender(
        "langchain-traceloop",
        "LangChain, instrumented by Traceloop (OpenLLMetry)",
        ("langchain", "traceloop"),
        ("langchain", "opentelemetry-instrumentation-langchain"),
        _PROVIDER + "LangchainInstrumentor().instrument(tracer_provider=provider)",
    ),
    Sender(
        "langchain-langfuse",
        "LangChain, through Langfuse",
        ("langchain", "langfuse"),
        ("langchain", "langfuse"),
        "Langfuse(span_exporter=OTLPSpanExporter())  # instead of Langfuse's own server\n"
        'agent.invoke(given, {"callbacks": [CallbackHandler()]})',
        codes={"raises": "unclassified"},
    ),
    Sender(
        "openai-agents-opentelemetry",
        "OpenAI Agents, instrumented by OpenTelemetry",
        ("openai_agents", "opentelemetry"),
        ("openai-agents", "opentelemetry-instrumentation-genai-openai-agents"),
        _PROVIDER + "OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)",
        {"call_id": _NO_ID, "unknown": _HIDDEN},
        _REDACTED,
    ),
    Sender(
        "openai-agents-openinference",
        "OpenAI Agents, instrumented by OpenInference",
        ("openai_agents", "openinference"),
        ("openai-agents", "openinference-instrumentation-openai-agents"),
        _PROVIDER + "OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)",
        {"call_id": _NO_ID, "conversation": _OF_TRACE},
        _REDACTED,
    ),
    Sender(
        "openai-agents-logfire",
        "OpenAI Agents, through Logfire",
        ("openai_agents", "logfire"),
        ("openai-agents", "logfire"),
        "logfire.configure(send_to_logfire=False)\nlogfire.instrument_openai_agents()",
        {"call_id": _NO_ID},
        _REDACTED,
    ),
    Sender(
        "pydantic-ai",
        "Pydantic AI",
        ("pydantic_ai", "itself"),
        ("pydantic-ai-slim",),
        _PROVIDER + "Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))",
    ),
    Sender(
        "pydantic-ai-logfire",
        "Pydantic AI, through Logfire",
        ("pydantic_ai", "logfire"),
        ("pydantic-ai-slim", "logfire"),
        "logfire.configure(send_to_logfire=False)\nlogfire.instrument_pydantic_ai()",
    ),
    Sender(
        "fastmcp",
        "FastMCP, client and server",
        ("fastmcp",),
        ("fastmcp",),
        _PROVIDER + "trace.set_tracer_provider(provider)",
        {"call_id": _NO_ID, "conversation": "a session of MCP ends with its connection"},
        {"raises": "internal_error", "told": ""},
    ),
    Sender(
        "google-adk",
        "Google ADK",
        ("google_adk",),
        ("google-adk",),
        _PROVIDER + "trace.set_tracer_provider(provider)",
    ),
    Sender(
        "strands",
        "Strands Agents",
        ("strands",),
        ("strands-agents",),
        _PROVIDER
        + "trace.set_tracer_provider(provider)\n"
        + 'agent = Agent(..., trace_attributes={"session.id": CONVERSATION})',
        environment="strands",
    ),
    Sender(
        "vercel-ai",
        "Vercel AI SDK (JavaScript)",
        ("vercel_ai.mjs",),
        ("ai", "@ai-sdk/otel"),
        "new NodeTracerProvider({\n"
        "  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],\n"
        "}).register();\n"
        "registerTelemetry(new OpenTelemetry());",
        {"conversation": _OF_TRACE},
        {"raises": "unclassified"},
    ),
    Sender(
        "mastra",
        "Mastra (JavaScript)",
        ("mastra.mjs",),
        ("@mastra/core", "@mastra/otel-exporter"),
        "const custom = { endpoint: `${url}/v1/traces`, headers, protocol: 'http/protobuf' };\n"
        "const exporters = [new OtelExporter({ provider: { custom } })];\n"
        "new Observability({ configs: { otel: { serviceName: 'agent', exporters } } });",
        codes={"raises": "internal_error"},
    ),
)


def is_made(sender: Sender) -> bool:
    """Say whether the environment of a sender is there."""
    made = node_modules() if sender.is_node else python_of(sender.environment)
    return made.exists()


def arrived(sender: Sender, collector: RunningCollector) -> list[dict[str, Any]]:
    """Run a sender; return the calls that the collector stored, oldest first."""
    seen = collector.of_project(sender.name)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "PYTHONPATH": str(ROOT),
        "OTEL_EXPORTER_OTLP_ENDPOINT": seen.url,
        "OTEL_EXPORTER_OTLP_HEADERS": f"Authorization=Bearer%20{seen.key}",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
        "OPENAI_API_KEY": "none",
        "OPENAI_AGENTS_DISABLE_TRACING": "0",
        "MASTRA_TELEMETRY_DISABLED": "1",
    }
    if sender.is_node:
        command = [node_of(), str(NODE_FOLDER / sender.program[0])]
        environment["TOOLFAULT_NODE_MODULES"] = str(node_modules())
    else:
        module = f"tests.integrations.exporters.senders.{sender.program[0]}"
        command = [str(python_of(sender.environment)), "-m", module, *sender.program[1:]]
    done = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False
    )
    seen.client.close()
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    engine = open_engine(collector.database_url)
    of = select(tool_call).join(project, project.c.id == tool_call.c.project_id)
    with engine.connect() as conn:
        rows = conn.execute(
            of.where(project.c.name == sender.name).order_by(tool_call.c.occurred_at)
        )
        found = [dict(row) for row in rows.mappings()]
    engine.dispose()
    return found


@contextmanager
def collector() -> Iterator[RunningCollector]:
    """Run a collector with an empty database."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/toolfault.db"
        engine = open_engine(url)
        prepare(engine, migrate=True)
        engine.dispose()
        with RunningCollector(url, folder=Path(folder)) as running:
            yield running


@dataclass(frozen=True)
class Case:
    """What each case asks of which tool; of `CASES` in the senders."""

    tool: str
    says: str


_CASES: Final[Mapping[str, Case]] = {
    "arguments": Case("book", "an argument is missing"),
    "raises": Case("lookup", "the tool raises"),
    "unknown": Case("bok", "there is no such tool"),
    "told": Case("lookup", "the tool answers `Error: ...`"),
    "works": Case("book", "the call works"),
}


def by_case(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Sort calls by the case that they are of: the tool, and what came of it."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in CODES}
    for row in rows:
        names = [name for name, case in _CASES.items() if case.tool == row["tool"]]
        if row["tool"] == "book":
            names = ["works" if row["success"] else "arguments"]
        elif row["tool"] == "lookup":
            # Its first call raises, its second one answers.
            names = ["told" if found["raises"] else "raises"]
        found[names[0]].append(row)
    return found


def _section(sender: Sender, rows: Sequence[dict[str, Any]]) -> str:
    versions = ", ".join(f"{name} {_version(sender, name)}" for name in sender.packages)
    lines = [f"## {sender.title}", "", versions, ""]
    lines += ["```js" if sender.is_node else "```python", sender.setup.strip(), "```", ""]
    lines += ["| what happened | arrived as | by | call id | conversation | text |"]
    lines += ["|---|---|---|---|---|---|"]
    for name, found in by_case(rows).items():
        lines += [_line(_CASES[name].says, row) for row in found]
        if not found:
            lines.append(f"| {_CASES[name].says} | nothing | | | | |")
    lines += ["", *(f"- {_LACKING.get(of, of)}: {why}." for of, why in sender.lacks.items())]
    return "\n".join(lines).rstrip() + "\n"


_LACKING: Final = {
    "call_id": "No call id",
    "conversation": "No conversation",
    "unknown": "A tool that does not exist leaves nothing",
}


def _line(says: str, row: Mapping[str, Any]) -> str:
    text = " ".join(str(row["text_llm"] or "").split())
    text = text if len(text) <= SHOWN else text[:SHOWN] + "…"
    rung = (row["extra"] or {}).get("conversation_rung")
    instead = {"meta": "the session", "trace": "the trace"}
    named = "yes" if row["session_id"] == CONVERSATION else instead[str(rung)]
    code = "success" if row["success"] else f"`{row['code']}`"
    quoted = f"`{text}`" if text else ""
    sign = "" if row["success"] else f"`{row['detection']}`"
    has_id = "yes" if row["call_id"] else "no"
    return f"| {says} | {code} | {sign} | {has_id} | {named} | {quoted.replace('|', '/')} |"


def _version(sender: Sender, package: str) -> str:
    if sender.is_node:
        listed: dict[str, dict[str, str]] = json.loads((NODE_FOLDER / "package.json").read_text())
        return listed["dependencies"][package]
    listed_pins = requirements_of(sender.environment).read_text().splitlines()
    pins = dict(line.split("==") for line in listed_pins)
    return pins[package]


def main() -> None:
    """Run all senders, and write the page."""
    with collector() as running:
        sections = [_section(each, arrived(each, running)) for each in SENDERS]
    PAGE.write_text("\n".join([_INTRODUCTION, *sections]), encoding="utf-8")


if __name__ == "__main__":
    main()
