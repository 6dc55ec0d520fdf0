"""Imported real transcripts: every figure equals the truth beside them."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import now_us
from toolfault_collector.importers import import_paths
from toolfault_collector.storage.database.engine import (
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.store import store_events
from toolfault_dashboard import queries
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.rows import CalledFirst
from toolfault_dashboard.search import parse

SOURCES = (
    "claude_code_sessions",
    pytest.param("tau_bench_airline", marks=pytest.mark.long),
    pytest.param("agentrx_tau_retail", marks=pytest.mark.long),
)


@pytest.fixture(scope="module", params=SOURCES)
def source(request: pytest.FixtureRequest, shared_data: Path) -> Path:
    """A folder of transcripts with its truth."""
    folder = shared_data / str(request.param)
    if not folder.is_dir():
        pytest.skip(f"no transcripts at {folder}")
    return folder


@pytest.fixture(scope="module")
def imported(
    source: Path, sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Engine, Scope]]:
    """The folder, imported; nobody writes to it."""
    path = tmp_path_factory.mktemp(source.name) / "toolfault.db"
    shutil.copyfile(sqlite_template, path)
    engine = open_engine(f"sqlite:///{path}")
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "real")
    report = import_paths(engine, project, [source])
    assert not report.errors
    yield engine, Scope(project, parse(""), now_us())
    engine.dispose()


def test_numbers_equal_the_truth(source: Path, imported: tuple[Engine, Scope]) -> None:
    """Summary and round trips are those of truth.json, in all and per tool."""
    truth = json.loads((source / "truth.json").read_text(encoding="utf-8"))
    chains = truth["chains_strict_after_seeing_error"]
    engine, scope = imported
    with read_connection(engine) as conn:
        found = queries.summary(conn, scope)
        trips = queries.round_trips(conn, scope)
    assert found.calls == truth["tool_calls"]
    assert found.failures == truth["failed_calls"]
    assert found.chains == chains["failure_chains"]
    assert found.recovered == chains["recovered_chains"]
    assert found.round_trips == chains["round_trips_total"]
    mean = chains["mean_failed_attempts_before_recovery"]
    assert found.mean_failures_before_recovery == pytest.approx(mean, abs=5e-5)
    assert {name: (tool.calls, tool.failures) for name, tool in found.tools.items()} == {
        name: (tool["calls"], tool["failed"]) for name, tool in truth["per_tool"].items()
    }
    assert trips.funnel.retried == chains["retried_chains"]
    assert found.abandoned + found.switched == chains["abandoned_chains"]
    assert sum(line.chains for line in trips.distribution) == found.chains


def test_numbers_equal_the_truth_per_conversation(
    source: Path, imported: tuple[Engine, Scope]
) -> None:
    """Conversation by conversation: calls, failures, chains and recoveries are the truth's."""
    truth = json.loads((source / "truth.json").read_text(encoding="utf-8"))
    keys = ("calls", "failed", "chains", "recovered")
    expected = sorted(
        tuple(each[key] for key in keys) for each in truth["per_conversation"] if each["calls"]
    )
    engine, scope = imported
    with read_connection(engine) as conn:
        sessions = conn.exec_driver_sql("SELECT session_id FROM conversation").scalars().all()
        found = []
        for session in sessions:
            one = queries.summary(conn, scope.narrowed(f'conversation:"{session}"'))
            found.append((one.calls, one.failures, one.chains, one.recovered))
    assert sorted(found) == expected


def _intercode(folder: Path, name: str) -> list[dict[str, Any]]:
    """The recorded runs as the events of an agent that has one tool."""
    runs = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    events = []
    for number, (key, run) in enumerate(runs.items()):
        turns = run["turn_history"]
        for index, valid in enumerate(turns["valid_action"]):
            said = str(turns["observations"][index])
            code = "unknown_table" if "Table '" in said else "other"
            event = {
                "type": "tool_call",
                "event_id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{name}-{key}-{index}")),
                "session_id": f"{name}-{key}",
                "seq": index,
                "occurred_at": "2026-11-01T00:00:00Z",
                "time_source": "none",
                "tool": "execute_sql",
                "variant": name,
                "release": f"half-{number % 2}",
                "success": bool(valid),
            }
            if not valid:
                event["error"] = {"code": code, "category": "parameter", "audience": "llm"}
            events.append(event)
    return events


def test_a_real_improvement_is_seen_and_nothing_is_not(
    shared_data: Path, sqlite_engine: Engine
) -> None:
    """InterCode-SQL with the schema in the prompt is improved; half against half is unchanged."""
    folder = shared_data / "intercode_sql"
    if not folder.is_dir():
        pytest.skip(f"no transcripts at {folder}")
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    with write_transaction(sqlite_engine) as conn:
        project = ensure_project(conn, "intercode")
        for name in ("before", "after"):
            events = _intercode(folder, name)
            for start in range(0, len(events), 1_000):
                receipt = store_events(
                    conn,
                    project,
                    events[start : start + 1_000],
                    received_at=now_us(),
                    time_policy="import",
                )
                assert not receipt.rejected
    scope = Scope(project, parse(""), now_us())
    with read_connection(sqlite_engine) as conn:
        found = queries.comparison(
            conn, scope.narrowed("variant:before"), scope.narrowed("variant:after")
        )
        halves = queries.comparison(
            conn,
            scope.narrowed("variant:before release:half-0"),
            scope.narrowed("variant:before release:half-1"),
        )
    metric = found.effect.metrics[0]
    true = truth["change"]["failure_rate_after"] - truth["change"]["failure_rate_before"]
    assert found.effect.verdict == "improved"
    assert metric.difference == pytest.approx(true, abs=1e-5)
    assert metric.low is not None
    assert metric.high is not None
    assert metric.low < true < metric.high
    gone = next(row for row in found.codes if row.code == "unknown_table")
    assert (gone.before.count, gone.after.count, gone.verdict) == (790, 0, "improved")
    assert halves.effect.verdict == "no detectable change"


def test_a_file_is_read_before_it_is_edited(shared_data: Path, sqlite_engine: Engine) -> None:
    """Claude Code refuses to edit what was not read; all chains of that recovered after a Read."""
    folder = shared_data / "claude_code_sessions"
    if not folder.is_dir():
        pytest.skip(f"no transcripts at {folder}")
    with write_transaction(sqlite_engine) as conn:
        project = ensure_project(conn, "real")
    import_paths(sqlite_engine, project, [folder])
    with read_connection(sqlite_engine) as conn:
        found = queries.calls_before_recovery(
            conn, Scope(project, parse(""), now_us()), {"Edit", "Read", "Bash"}
        )
    assert found == {("Edit", "precondition_failed"): CalledFirst("Read", 10, 10)}
