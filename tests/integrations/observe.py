"""Run the table under another observer: ``python -m tests.integrations.observe DRIVER OBSERVER``.

Prints one JSON object: by scenario, what the model read, and what the observer recorded of tool
calls (``seen.Seen``). Runs in ``<framework>-observed``. Every observer is set up as its
documentation says, with the content of messages and arguments switched on, so that it sees as much
as it can. ``toolfault`` is one of them and is judged by the same rule.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import importlib
import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from tests.integrations.scenarios import SCENARIOS, Outcome, Scenario
from tests.integrations.seen import Record


class Observer(NamedTuple):
    """An observer that was started.

    Attributes:
        read: Returns what was recorded since it was called last.
        around: Made and entered around each run.
    """

    read: Callable[[], list[Record]]
    around: Callable[[], AbstractContextManager[object]] = nullcontext


OBSERVERS = {
    "langchain": ("OpenTelemetry", "OpenInference", "Sentry"),
    "openai_agents": ("OpenTelemetry", "OpenInference", "Sentry"),
    "pydantic_ai": ("Logfire", "OpenInference", "Sentry"),
    "mcp": ("OpenTelemetry", "Sentry"),
    "fastmcp": ("OpenTelemetry", "Sentry"),
}
"""What is run beside toolfault, by driver."""
ITS_OWN = "its own tracing"
OWN = {
    "agent_framework": "OpenTelemetry spans",
    "crewai": "spans of `crewai.telemetry.tracing`, a session for each run",
    "google_adk": "OpenTelemetry spans",
    "llama_index": "`SimpleSpanHandler` and events",
    "strands": "OpenTelemetry spans",
}
"""The tracing that frameworks of ``more`` bring themselves, by driver."""
WITHOUT = {
    "smolagents": "has none",
}
"""Those of ``more`` that bring none, with the reason."""
_PACKAGES = {
    ("langchain", "OpenTelemetry"): "opentelemetry.instrumentation.genai.langchain",
    ("openai_agents", "OpenTelemetry"): "opentelemetry.instrumentation.genai.openai_agents",
    ("langchain", "OpenInference"): "openinference.instrumentation.langchain",
    ("openai_agents", "OpenInference"): "openinference.instrumentation.openai_agents",
}
# Attributes that repeat the question; what they name is not what the record found wrong.
_INPUT = re.compile(r"argument|parameter|input|schema|definition|description|metadata|attributes")
_CONTENT = {
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
    "OPENAI_API_KEY": "none",
}


def main() -> None:
    """Run the table once and print the answer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("observer")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    driver = importlib.import_module(f"tests.integrations.drivers.{given.driver}")
    observer = started(given.driver, given.observer, everything=True)
    answer = {}
    for scenario in SCENARIOS:
        if scenario.name not in driver.LACKS and not scenario.decorated:
            observer.read()
            with observer.around():
                outcome = driver.run(scenario, mode="async")
            answer[scenario.name] = _answer(driver, scenario, outcome, observer.read())
    sys.stdout.write(json.dumps({"scenarios": answer, "lacks": driver.LACKS}))


def started(driver: str, observer: str, *, everything: bool = False) -> Observer:
    """Start an observer in this process.

    Args:
        driver: Name of the driver, which is imported already.
        observer: ``toolfault``, one of ``OBSERVERS``, or ``ITS_OWN`` for those in ``OWN``.
        everything: Whether it is told to keep arguments and messages; else it does as by default.
    """
    if everything:
        os.environ.update(_CONTENT)
    start = {"Sentry": _sentry, "toolfault": _toolfault}.get(observer, _spans)
    if observer == ITS_OWN:
        start = {"crewai": _sessions, "llama_index": _handlers}.get(driver, _spans)
    return start(driver, observer, everything)


def _answer(
    driver: Any, scenario: Scenario, outcome: Outcome, records: list[Record]
) -> dict[str, Any]:
    expected = driver.EXPECTED.get(scenario.name, scenario.events)
    return {
        "told": outcome.told,
        "records": [dataclasses.asdict(record) for record in records],
        "expected": [dataclasses.asdict(each) for each in expected],
        "secret": scenario.secret,
    }


def _toolfault(driver: str, observer: str, everything: bool) -> Observer:
    import toolfault
    from toolfault.testing import MemoryTransport

    transport = MemoryTransport()
    more: dict[str, Any] = {"successes": "all", "capture_values": True} if everything else {}
    toolfault.init(transport=transport, agent="travel", **more)
    taken = 0

    def read() -> list[Record]:
        nonlocal taken
        toolfault.flush()
        events = transport.events[taken:]
        taken += len(events)
        calls = [event for event in events if event["type"] == "tool_call"]
        return [Record(each["tool"], not each["success"], _json(each)) for each in calls]

    return Observer(read)


# -- spans -------------------------------------------------------------------------------------


def _spans(driver: str, observer: str, everything: bool) -> Observer:
    """Start an instrumentation that makes spans."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    processors = [*_translators(driver, observer), SimpleSpanProcessor(exporter)]
    if observer == "Logfire":
        import logfire

        logfire.configure(
            send_to_logfire=False, console=False, additional_span_processors=processors
        )
        logfire.instrument_pydantic_ai()
    else:
        provider = TracerProvider()
        for processor in processors:
            provider.add_span_processor(processor)
        trace.set_tracer_provider(provider)
        _instrument(driver, observer, provider)

    def read() -> list[Record]:
        spans = sorted(exporter.get_finished_spans(), key=lambda span: span.start_time or 0)
        exporter.clear()
        return _records(spans)

    return Observer(read)


def _translators(driver: str, observer: str) -> list[Any]:
    """Return what rewrites spans before they are kept."""
    if (driver, observer) != ("pydantic_ai", "OpenInference"):
        return []
    from openinference.instrumentation.pydantic_ai import OpenInferenceSpanProcessor
    from pydantic_ai import Agent

    Agent.instrument_all()
    return [OpenInferenceSpanProcessor()]


def _instrument(driver: str, observer: str, provider: Any) -> None:
    """Start what makes spans of the framework's calls; others than these make their own."""
    package = _PACKAGES.get((driver, observer))
    if package is not None:
        name = "LangChainInstrumentor" if driver == "langchain" else "OpenAIAgentsInstrumentor"
        instrumentor = getattr(importlib.import_module(package), name)
        instrumentor().instrument(tracer_provider=provider)


def _sessions(driver: str, observer: str, everything: bool) -> Observer:
    """Start CrewAI's tracing, which has a provider and exporters for each run."""
    from crewai.telemetry.tracing import telemetry_session
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporters: list[InMemorySpanExporter] = []

    def around() -> AbstractContextManager[object]:
        exporters.append(InMemorySpanExporter())
        session: AbstractContextManager[object] = telemetry_session("run", "crew", exporters[-1:])
        return session

    def read() -> list[Record]:
        spans = [span for exporter in exporters for span in exporter.get_finished_spans()]
        exporters.clear()
        return _records(spans)

    return Observer(read, around)


def _handlers(driver: str, observer: str, everything: bool) -> Observer:
    """Start LlamaIndex' tracing, which hands spans and events to handlers."""
    from llama_index.core.instrumentation import get_dispatcher
    from llama_index.core.instrumentation.event_handlers import BaseEventHandler
    from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler

    events: list[Any] = []

    class Kept(BaseEventHandler):  # type: ignore[misc]
        def handle(self, event: Any, **_: Any) -> None:
            events.append(event)

    handler = SimpleSpanHandler()
    get_dispatcher().add_span_handler(handler)
    get_dispatcher().add_event_handler(Kept())

    def read() -> list[Record]:
        spans = [*handler.completed_spans, *handler.dropped_spans]
        handler.completed_spans.clear()
        handler.dropped_spans.clear()
        events.clear()
        return [Record(None, False, span.id_) for span in spans if ".call_tool" in span.id_]

    return Observer(read)


def _records(spans: list[Any]) -> list[Record]:
    """Return one record per call: the outermost span of a tool, with what those inside it say."""
    made: dict[int, Record] = {}
    parents = {span.context.span_id: span.parent.span_id if span.parent else 0 for span in spans}
    for span in spans:
        tool = _tool_of(span)
        if tool is None:
            continue
        failed = span.status.status_code.name == "ERROR"
        within = _nearest(span.context.span_id, parents, made)
        if within is None:
            made[span.context.span_id] = Record(
                tool, failed, _text_of(span), _asked(span.attributes)
            )
        else:
            within.failed = within.failed or failed
            within.text += _text_of(span)
            within.asked += _asked(span.attributes)
    return list(made.values())


def _nearest(span: int, parents: dict[int, int], made: dict[int, Record]) -> Record | None:
    above = parents.get(span, 0)
    while above:
        if above in made:
            return made[above]
        above = parents.get(above, 0)
    return None


def _tool_of(span: Any) -> str | None:
    """Return the tool whose call a span is about, or None."""
    said = dict(span.attributes or {})
    if said.get("gen_ai.operation.name") == "execute_tool":
        return str(said.get("gen_ai.tool.name") or span.name.partition(" ")[2])
    if said.get("openinference.span.kind") == "TOOL":
        return str(said.get("tool.name") or span.name)
    if span.name.startswith("tools/call "):
        return str(said.get("gen_ai.tool.name") or span.name.partition(" ")[2])
    return None


def _text_of(span: Any) -> str:
    """Return what a span says of the outcome."""
    events = [[event.name, dict(event.attributes or {})] for event in span.events]
    return _json([_without_input(span.attributes), span.status.description, events])


def _asked(said: Any) -> str:
    """Return what the attributes of a span say of the question: arguments and schema."""
    return _json({name: value for name, value in dict(said or {}).items() if _INPUT.search(name)})


def _without_input(said: Any) -> dict[str, Any]:
    return {name: value for name, value in dict(said or {}).items() if not _INPUT.search(name)}


def _json(value: Any) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)


# -- Sentry ------------------------------------------------------------------------------------


def _sentry(driver: str, observer: str, everything: bool) -> Observer:
    import sentry_sdk
    from sentry_sdk.transport import Transport

    items: list[dict[str, Any]] = []

    class Kept(Transport):  # type: ignore[misc]
        def capture_envelope(self, envelope: Any) -> None:
            items.extend(item.payload.json for item in envelope.items if item.payload.json)

    sentry_sdk.init(
        "http://key@127.0.0.1:9/1",
        transport=Kept,
        traces_sample_rate=1.0,
        send_default_pii=everything,
        stream_gen_ai_spans=False,  # the same spans, inside their transaction
    )

    def read() -> list[Record]:
        sentry_sdk.flush()
        found = _of_sentry(items)
        items.clear()
        return found

    around = functools.partial(sentry_sdk.start_transaction, op="agent", name="run")
    return Observer(read, around)


def _of_sentry(items: list[dict[str, Any]]) -> list[Record]:
    """Return the calls in transactions and the errors that belong to them, or to no span."""
    spans = []
    for item in items:
        if item.get("type") == "transaction":
            own = item.get("contexts", {}).get("trace", {})
            spans += [{**own, "start_timestamp": item["start_timestamp"]}, *item["spans"]]
    made: dict[str, Record] = {}
    for span in sorted(spans, key=lambda each: str(each["start_timestamp"])):
        data = span.get("data") or {}
        tool = data.get("gen_ai.tool.name") or data.get("mcp.tool.name")
        if tool is None or span.get("op") not in ("gen_ai.execute_tool", "mcp.server"):
            continue
        failed = span.get("status") not in (None, "ok")
        text = _json({**span, "data": _without_input(data)})
        made[span["span_id"]] = Record(str(tool), failed, text, _asked(data))
    for item in items:
        values = (item.get("exception") or {}).get("values") or []
        if not values:
            continue
        text = _json([[each.get("type"), each.get("value")] for each in values])
        within = made.get(item.get("contexts", {}).get("trace", {}).get("span_id", ""))
        if within is None or not within.failed:  # the span that was open need not be the call's
            made[item["event_id"]] = Record(None, True, text)
        else:
            within.text += text
    return list(made.values())


if __name__ == "__main__":
    main()
