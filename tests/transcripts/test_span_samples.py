"""Real dumps of spans of ten frameworks, through the core, counted by their truth.json."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolfault_collector.otlp.calls.calls import SeenCall, calls_of
from toolfault_collector.otlp.calls.spans import Span
from toolfault_collector.otlp.encoding.dumps import read_dump


@pytest.fixture
def samples(shared_data: Path) -> Path:
    """The folder of span dumps."""
    return shared_data / "otel_format_samples"


def _calls(folder: Path) -> Iterator[tuple[str, SeenCall]]:
    for path in sorted(folder.glob("*/*.json")):
        found = list(read_dump(json.loads(path.read_text(encoding="utf-8"))))
        spans = [each for each in found if isinstance(each, Span)]
        assert calls_of(spans[::-1], []) == calls_of(spans, [])
        for call in calls_of(spans, []).calls:
            yield str(path.relative_to(folder)), call


def test_span_samples_have_the_counts_of_truth(samples: Path) -> None:
    """Calls and failures of each conversation and tool; nothing that works looks like a failure."""
    truth = json.loads((samples / "truth.json").read_text(encoding="utf-8"))
    found = list(_calls(samples))
    assert len(found) == truth["tool_calls"]
    assert {tool: counts["calls"] for tool, counts in truth["per_tool"].items()} == Counter(
        call.tool for _, call in found
    )
    assert sum(call.failed for _, call in found) == truth["failed_calls"]
    assert {call.detection for _, call in found} == {"explicit"}
    of_trace = Counter((name, call.trace_id) for name, call in found)
    assert of_trace == {
        (each["id"].rpartition(":")[0], each["id"].rpartition(":")[2].removeprefix("0x")): each[
            "calls"
        ]
        for each in truth["per_conversation"]
    }
    # Each of them ran, has its arguments and its result.
    assert all(call.reached and call.result and call.arguments for _, call in found)
