"""Points of the metrics that count tool calls: exact denominators beside sampled traces.

``gen_ai.execute_tool.duration`` (OpenTelemetry GenAI conventions) and its MCP relatives
``mcp.client.operation.duration`` and ``mcp.server.operation.duration``, of which those of
``tools/call`` count, are histograms of one observation per call. Others are passed over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

__all__ = ["Point", "points_of"]

_SOURCES: Final = {
    "gen_ai.execute_tool.duration": "execute_tool",
    "mcp.client.operation.duration": "mcp.client",
    "mcp.server.operation.duration": "mcp.server",
}


class Point(NamedTuple):
    """One point; times are in microseconds since the epoch.

    Args:
        source: Which metric.
        tool: Name of the tool.
        error_type: Empty for calls that did not fail.
        calls: From ``started_at`` to ``ended_at``.
        cumulative: Whether they are counted from the start of the sender on.
        series: What tells the points of one series.
    """

    source: str
    tool: str
    error_type: str
    calls: int
    started_at: int
    ended_at: int
    cumulative: bool
    series: str


def points_of(
    metric: str,
    counted: Sequence[tuple[int, int, int, Mapping[str, Any]]],
    *,
    cumulative: bool,
    resource: Mapping[str, Any],
) -> list[Point]:
    """Return the points of a histogram that count tool calls.

    Args:
        metric: Its name.
        counted: Observations, start and end in microseconds, and attributes, of each point.
        cumulative: The temporality.
        resource: What sent it.
    """
    source = _SOURCES.get(metric)
    found: list[Point] = []
    for calls, started_at, ended_at, attributes in counted if source else ():
        tool, error = attributes.get("gen_ai.tool.name"), attributes.get("error.type")
        method = attributes.get("mcp.method.name", "tools/call")
        if not isinstance(tool, str) or not tool or method != "tools/call":
            continue
        if not ended_at or calls <= 0:
            continue
        named = msgspec.json.encode([metric, resource, attributes], order="sorted")
        series = blake2b(named, digest_size=16).hexdigest()
        error_type = error[:256] if isinstance(error, str) else ""
        found.append(
            Point(
                *(source or "", tool[:256], error_type, min(calls, 2**62), started_at, ended_at),
                cumulative,
                series,
            )
        )
    return found
