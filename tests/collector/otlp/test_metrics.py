"""Metrics that count tool calls: exact denominators, whatever the temporality."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from sqlalchemy import Engine, func, select
from tests.collector.otlp.spans import BEGAN, attributes_of, send
from tests.running import RunningCollector

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import MINUTE_US
from toolfault_collector.otlp.request import read_request
from toolfault_collector.otlp.traces import resolve
from toolfault_collector.protocol.steps import finish
from toolfault_collector.storage.database.engine import open_engine, write_transaction
from toolfault_collector.storage.tables import metric_calls

_projects = itertools.count()
ENGINES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


def _point(count: int, *, start: int, end: int, **attributes: str) -> dict[str, Any]:
    named = {"gen_ai.tool.name": "search"}
    named |= {key.replace("__", "."): value for key, value in attributes.items()}
    return {
        "count": str(count),
        "startTimeUnixNano": str((BEGAN + start * MINUTE_US) * 1_000),
        "timeUnixNano": str((BEGAN + end * MINUTE_US) * 1_000),
        "attributes": attributes_of(named),
    }


def _body(
    *points: dict[str, Any],
    cumulative: bool = True,
    name: str = "gen_ai.execute_tool.duration",
    pod: str = "1",
) -> bytes:
    histogram = {"aggregationTemporality": 2 if cumulative else 1, "dataPoints": list(points)}
    scope = {"scope": {"name": "x"}, "metrics": [{"name": name, "histogram": histogram}]}
    resource = {"attributes": attributes_of({"service.instance.id": pod})}
    return json.dumps(
        {"resourceMetrics": [{"resource": resource, "scopeMetrics": [scope]}]}
    ).encode()


def _counted(engine: Engine, *bodies: bytes) -> dict[tuple[str, str, str], int]:
    """Store *bodies* in a project of their own; return calls by metric, tool and error type."""
    row = metric_calls.c
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, f"metrics {next(_projects)}")
        for body in bodies:
            read = read_request(body, "metrics", "json", project_id=project_id, received_at=BEGAN)
            resolve(conn, [finish(read)])
        query = select(row.source, row.tool, row.error_type, func.sum(row.calls))
        query = query.where(row.project_id == project_id).group_by(*query.selected_columns[:3])
        return {(each[0], each[1], each[2]): int(each[3]) for each in conn.execute(query)}


@pytest.mark.parametrize("database_url", ENGINES, indirect=True)
def test_cumulative_and_delta_points_count_alike(engine: Engine) -> None:
    """Either way a call counts once: resends add nothing, a sender may start again."""
    key = ("execute_tool", "search", "")
    first, second = _body(_point(5, start=0, end=1)), _body(_point(8, start=0, end=2))
    assert _counted(engine, first, second, first, second) == {key: 8}
    again = _body(_point(2, start=3, end=4))
    assert _counted(engine, first, second, again) == {key: 10}
    smaller = _body(_point(2, start=0, end=3))  # started again, and says nothing of it
    assert _counted(engine, second, smaller) == {key: 10}
    assert _counted(engine, first, _body(_point(5, start=0, end=1), pod="2")) == {key: 10}
    deltas = [_body(_point(5, start=n, end=n + 1), cumulative=False) for n in range(3)]
    assert _counted(engine, *deltas, deltas[-1]) == {key: 15}


def test_only_points_of_tool_calls_count(sqlite_engine: Engine) -> None:
    """Errors are counted by type; of MCP only ``tools/call``; other metrics not at all."""
    failed = _point(2, start=0, end=1, error__type="timeout")
    mcp = [
        _point(3, start=0, end=1, mcp__method__name="tools/call"),
        _point(9, start=0, end=1, mcp__method__name="tools/list"),
    ]
    assert _counted(
        sqlite_engine,
        _body(_point(5, start=0, end=1), failed),
        _body(*mcp, name="mcp.server.operation.duration"),
        _body(_point(7, start=0, end=1), name="http.server.request.duration"),
    ) == {
        ("execute_tool", "search", ""): 5,
        ("execute_tool", "search", "timeout"): 2,
        ("mcp.server", "search", ""): 3,
    }


def test_the_official_exporter_of_metrics(sqlite_server: RunningCollector) -> None:
    """A histogram of the official SDK is counted, sent twice as it grows."""
    exporter = OTLPMetricExporter(
        endpoint=f"{sqlite_server.url}/v1/metrics",
        headers={"Authorization": f"Bearer {sqlite_server.key}"},
    )
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=3_600_000)
    provider = MeterProvider(metric_readers=[reader])
    histogram = provider.get_meter("tests").create_histogram("gen_ai.execute_tool.duration")
    for _ in range(2):
        histogram.record(0.2, {"gen_ai.tool.name": "search"})
        assert provider.force_flush()
    provider.shutdown()
    engine = open_engine(sqlite_server.database_url)
    with engine.connect() as conn:
        assert conn.execute(select(metric_calls.c.tool, metric_calls.c.calls)).all() == [
            ("search", 2)
        ]
    engine.dispose()


def test_a_point_that_cannot_be_read_is_left_out(collector: RunningCollector) -> None:
    """A metric of another shape is passed over or left out, never an error of the server."""
    odd = [{"name": 5}, 7, {"name": "gen_ai.execute_tool.duration", "histogram": [1]}]
    body = {"resourceMetrics": [{"scopeMetrics": [{"metrics": odd}]}]}
    answer = send(collector, json.dumps(body).encode(), signal="metrics")
    assert answer.json()["partialSuccess"]["rejectedDataPoints"] == "1"
