"""Large files of spans: memory is that of one trace and one conversation."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

from tests.collector.otlp.spans import span

from toolfault_collector.importers.items import Conversation
from toolfault_collector.importers.run import parse_file

TEXT = "x" * 4_000


def _peak(path: Path, traces: int) -> int:
    """Read a file of so many traces, whose spans are far apart; return the most bytes in use."""
    with path.open("w", encoding="utf-8") as file:
        for under in (None, 1):
            for trace in range(1, traces + 1):
                kind = "execute_tool" if under else "invoke_agent"
                members: dict[str, Any] = {"gen_ai__operation__name": kind, "text": TEXT}
                members |= {"gen_ai__tool__name": "t"} if under else {"session__id": f"s{trace}"}
                made = span(trace, 2 if under else 1, kind, parent=under, **members)
                of_scope = [{"spans": [made]}]
                file.write(json.dumps({"resourceSpans": [{"scopeSpans": of_scope}]}) + "\n")
    tracemalloc.start()
    found = 0
    for item in parse_file(path, now=0):
        assert isinstance(item, Conversation)
        assert len(item.calls) == 1
        found += 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == traces
    return peak


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Four times the spans take no more memory, wherever those of a trace stand in the file."""
    _peak(tmp_path / "first.jsonl", 10)  # what is loaded once
    small, large = (_peak(tmp_path / f"{number}.jsonl", number) for number in (150, 600))
    assert large < 1.3 * small
