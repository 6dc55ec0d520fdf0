"""What is promised of every format alike, tried on a history in the shape of each."""

from __future__ import annotations

import json
import random
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select
from tests.collector.importers.fixtures import FIXTURES, Fixture
from tests.collector.mutations import VALUES, damaged, places

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import now_us
from toolfault_collector.importers import (
    Conversation,
    EventBatch,
    Problem,
    import_paths,
    parse_file,
)
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_collector.storage.tables import call_counts, chain, tool_call

EACH = pytest.mark.parametrize("fixture", FIXTURES, ids=[each.name for each in FIXTURES])
SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def project(engine: Engine) -> int:
    """A project to import into."""
    with write_transaction(engine) as conn:
        return ensure_project(conn, "imported")


def _write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def _calls(path: Path) -> list[tuple[str, str]]:
    """Give tool and status of the calls in a file."""
    calls: list[tuple[str, str]] = []
    for item in parse_file(path, now=now_us()):
        if isinstance(item, Conversation):
            calls += [(call.tool, call.status) for call in item.calls]
        elif isinstance(item, EventBatch):
            for _, event in item.events:
                calls.append((str(event["tool"]), "ok" if event["success"] else "failed"))
    return calls


def _state(engine: Engine, project: int) -> list[Any]:
    """Give what is stored of calls and chains, without the moment of the import."""
    columns = {
        tool_call: ("event_id", "session_id", "seq", "tool", "success", "code", "turn", "call_id",
                    "args_fingerprint", "args_diff", "text_llm", "attempt"),
        chain: ("session_id", "tool", "failures", "round_trips", "identical_repeats"),
        call_counts: ("tool", "calls"),
    }  # fmt: skip
    rows = []
    with engine.connect() as conn:
        for table, names in columns.items():
            query = select(*(table.c[name] for name in names)).where(table.c.project_id == project)
            rows.append(sorted(map(repr, conn.execute(query))))
    return rows


@SQLITE
@EACH
def test_it_is_recognised_and_read(
    fixture: Fixture, engine: Engine, project: int, tmp_path: Path
) -> None:
    """Auto says as what it reads a file and why; its calls fail by the format's own mark alone."""
    path = _write(tmp_path / "a.json", fixture.text)
    report = import_paths(engine, project, [path])
    assert report.problems == []
    (recognised,) = report.recognised
    assert fixture.why in recognised.why
    assert _calls(path) == fixture.calls
    forced = list(parse_file(path, format_name=fixture.format, now=now_us()))
    assert [item for item in forced if isinstance(item, Problem)] == []


@SQLITE
def test_a_bare_array_is_told_by_all_of_its_beginning(
    engine: Engine, project: int, tmp_path: Path
) -> None:
    """Also where the first messages could be of any chat."""
    words = [{"role": role, "content": "hello"} for role in ("system", "user", "assistant") * 10]
    anthropic = next(each for each in FIXTURES if each.name == "anthropic")
    path = _write(tmp_path / "a.json", json.dumps([*words, *anthropic.messages]))
    (recognised,) = import_paths(engine, project, [path]).recognised
    assert "Anthropic" in recognised.title


@SQLITE
@EACH
def test_a_history_that_grew_adds_what_is_new(
    fixture: Fixture, engine: Engine, tmp_path: Path
) -> None:
    """Imported at any length, again, and then whole from elsewhere, it is stored as the whole."""
    with write_transaction(engine) as conn:
        projects = [ensure_project(conn, name) for name in ("whole", "grown")]
    whole = _write(tmp_path / "whole.json", fixture.text)
    import_paths(engine, projects[0], [whole])
    for length in range(1 if fixture.grows else len(fixture.messages), len(fixture.messages) + 1):
        part = _write(tmp_path / f"{length}.json", fixture.wrap(fixture.messages[:length]))
        import_paths(engine, projects[1], [part])
    again = import_paths(engine, projects[1], [whole])
    assert again.accepted == 0
    assert _state(engine, projects[1]) == _state(engine, projects[0])


@EACH
def test_a_broken_neighbour_loses_nothing_else(fixture: Fixture, tmp_path: Path) -> None:
    """Between two histories anything may stand that is no history: both are read."""
    one_line = json.dumps(json.loads(fixture.text)) if not fixture.by_line else ""
    lines = [one_line] if one_line else fixture.text.splitlines()
    for broken in ('{"messages": [', "nul", '"text"', "[[]]", "{}", '{"role": 5}', "[" * 2_000):
        path = _write(tmp_path / "a.jsonl", "\n".join([*lines, broken, *lines]))
        # A copy within a file is a second conversation, or it is found to be the same one.
        assert Counter(_calls(path)) in (Counter(fixture.calls), Counter(fixture.calls * 2))


@EACH
def test_no_damage_is_an_exception(fixture: Fixture, tmp_path: Path) -> None:
    """Bytes changed at random, and members replaced by odd values: problems, never an exception."""
    draw = random.Random(fixture.name)
    path = tmp_path / "a.json"
    for _ in range(5):
        _write(path, damaged(draw, fixture.text.encode()))
        list(parse_file(path, now=now_us()))
    for _ in range(8):
        lines = fixture.text.splitlines() if fixture.by_line else [fixture.text]
        values = [json.loads(line) for line in lines]
        for _ in range(draw.randint(1, 3)):
            container, key = draw.choice(list(places(values)))
            container[key] = deepcopy(draw.choice(VALUES))
        _write(path, "\n".join(json.dumps(value) for value in values))
        for name in ("auto", fixture.format):
            list(parse_file(path, format_name=name, now=now_us()))
