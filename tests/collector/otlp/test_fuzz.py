"""Damaged bodies of OTLP: whatever the bytes, an answer below 500, and every count adds up."""

from __future__ import annotations

import json
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from tests.collector.mutations import mutated
from tests.collector.otlp.spans import RESOURCE, as_json, as_protobuf, attributes_of, span
from tests.collector.otlp.test_receiver import JSON, PROTOBUF, tool_span
from tests.factories import success
from tests.running import RunningCollector

from toolfault_collector.doctor.recount import recount
from toolfault_collector.storage.engine import open_engine

SENDERS = 4


def _spans() -> list[dict[str, Any]]:
    """A trace that has something of everything the core looks at."""
    answer = [
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "x"}]}
    ]
    asked = [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "t"}]}]
    return [
        span(7, 1, "invoke_agent", gen_ai__conversation__id="conv", n=3, x=0.5, flag=True),
        span(
            *(7, 3, "chat"),
            parent=1,
            gen_ai__operation__name="chat",
            gen_ai__input__messages=json.dumps(answer),
            gen_ai__output__messages=json.dumps(asked),
        ),
        tool_span(
            7, 4, parent=1, status="error", message="1 validation error\nx\n  Field required"
        ),
        span(7, 5, "t", parent=4, openinference__span__kind="TOOL", output__value='{"error": 1}'),
        span(7, 6, "tools/call t", mcp__method__name="tools/call", error__type="tool_error"),
    ]


def _log() -> bytes:
    attributes = attributes_of({"session.id": "s", "tool_name": "Bash", "success": "false"})
    record = {"eventName": "claude_code.tool_result", "attributes": attributes, "timeUnixNano": "9"}
    resource = {"attributes": attributes_of(RESOURCE)}
    scope = {"logRecords": [record, {**record, "traceId": f"{7:032x}", "spanId": f"{4:016x}"}]}
    return json.dumps({"resourceLogs": [{"resource": resource, "scopeLogs": [scope]}]}).encode()


def _metric() -> bytes:
    point = {"count": "3", "timeUnixNano": "9999", "startTimeUnixNano": 1}
    point["attributes"] = attributes_of({"gen_ai.tool.name": "t"})
    histogram = {"aggregationTemporality": 2, "dataPoints": [point]}
    metrics = [{"name": "gen_ai.execute_tool.duration", "histogram": histogram}]
    return json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]}).encode()


def _explore(server: RunningCollector, count: int) -> None:
    kinds = [
        ("traces", JSON, as_json(_spans())),
        ("traces", PROTOBUF, as_protobuf(_spans())),
        ("logs", JSON, _log()),
        ("metrics", JSON, _metric()),
    ]
    statuses: Counter[int] = Counter()
    faults: list[str] = []

    def send(first: int) -> None:
        headers = {"Authorization": f"Bearer {server.key}"}
        with httpx2.Client(headers=headers, timeout=60, trust_env=False) as client:
            for number in range(first, count, SENDERS):
                draw = random.Random(number)
                signal, content_type, body = draw.choice(kinds)
                answer = client.post(
                    f"{server.url}/v1/{signal}",
                    content=mutated(draw, body, is_json=content_type == JSON),
                    headers={"Content-Type": content_type},
                )
                statuses[answer.status_code] += 1
                if answer.status_code >= 500:
                    faults.append(f"{number}: {answer.status_code} {answer.text[:200]}")

    with ThreadPoolExecutor(SENDERS) as pool:
        list(pool.map(send, range(SENDERS)))
    assert faults == []
    assert statuses.total() == count
    assert set(statuses) <= {200, 400, 413}
    assert min(statuses[200], statuses[400]) > count // 10
    assert server.post(success()).json()["accepted"] == 1
    assert '"level":"error"' not in server.output()
    engine = open_engine(server.database_url)
    assert recount(engine).right
    engine.dispose()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database_url", "count"),
    [
        ("sqlite", 500),
        pytest.param("postgresql", 100, marks=pytest.mark.postgres),
        pytest.param("sqlite", 50_000, marks=[pytest.mark.long, pytest.mark.timeout(7_200)]),
    ],
    indirect=["database_url"],
)
def test_damaged_bodies(server: RunningCollector, count: int) -> None:
    """No body makes the server fail, and none that it takes leaves a count wrong."""
    _explore(server, count)
