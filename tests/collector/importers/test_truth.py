"""The real transcripts, conversation by conversation, against ``truth.json`` and a naive recount.

``per_conversation`` and ``per_tool`` of ``truth.json`` are the primary count, which ignores
parallelism. The product's definition is the strict one, of which the file has the totals. So the
recount must give both, and the product must give the recount's strict numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select
from tests.collector.importers import recount
from tests.collector.importers.counting import count_parsed, count_stored, parsed, total

from toolfault_collector.engine import write_transaction
from toolfault_collector.importers import import_paths
from toolfault_collector.importers._events import session_id
from toolfault_collector.importers.classify import classify
from toolfault_collector.projects import ensure_project
from toolfault_collector.tables import tool_call

FILES = {
    "tau_bench_airline": "gpt-4o-airline.open.json",
    "agentrx_tau_retail": "tau_dataset_full.open.json",
    "livemcpbench": "claude-sonnet-4.open.json",
}
RECOUNTS: dict[str, Callable[[Path], list[list[recount.Attempt]]]] = {
    "tau_bench_airline": recount.openai_conversations,
    "agentrx_tau_retail": recount.openai_conversations,
    "livemcpbench": recount.livemcpbench_conversations,
}
SOURCES = (*FILES, "claude_code_sessions")


def _truth(folder: Path) -> dict[str, Any]:
    truth: dict[str, Any] = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    return truth


def _attempts(folder: Path) -> list[tuple[str, list[recount.Attempt]]]:
    """Give (id in truth.json, attempts) of every conversation of a source."""
    ids = [entry["id"] for entry in _truth(folder)["per_conversation"]]
    if folder.name in FILES:
        found = RECOUNTS[folder.name](folder / FILES[folder.name])
        return list(zip(ids, found, strict=True))
    return [(name, recount.claude_code_attempts(folder / name)) for name in ids]


def _sessions(folder: Path) -> list[str]:
    """Give the session id of every conversation of a source, in the order of truth.json."""
    if folder.name in FILES:
        return [session_id(each) for each in parsed(folder / FILES[folder.name])]
    return [session_id(each) for name, _ in _attempts(folder) for each in parsed(folder / name)]


@pytest.mark.parametrize("source", SOURCES)
def test_the_recount_agrees_with_truth(shared_data: Path, source: str) -> None:
    """The naive recount gives truth.json's primary count per conversation and its strict totals."""
    folder, truth = shared_data / source, _truth(shared_data / source)
    attempts = [found for _, found in _attempts(folder)]
    primary = [recount.count(found, strict=False) for found in attempts]
    names = ("calls", "failed", "no_result", "chains", "recovered", "round_trips")
    assert [{name: getattr(found, name) for name in names} for found in primary] == [
        {name: entry[name] for name in names} for entry in truth["per_conversation"]
    ]
    strict = total([recount.count(found) for found in attempts])
    wanted = truth["chains_strict_after_seeing_error"]
    assert (strict.chains, strict.recovered, strict.round_trips) == (
        wanted["failure_chains"],
        wanted["recovered_chains"],
        wanted["round_trips_total"],
    )


@pytest.mark.parametrize("source", SOURCES)
def test_every_conversation_is_parsed_as_counted(shared_data: Path, source: str) -> None:
    """What the parser hands on has the numbers of the recount, per conversation and tool."""
    folder = shared_data / source
    if source in FILES:
        conversations = parsed(folder / FILES[source])
    else:
        conversations = [each for name, _ in _attempts(folder) for each in parsed(folder / name)]
    for (name, attempts), conversation in zip(_attempts(folder), conversations, strict=True):
        assert count_parsed(conversation) == recount.count(attempts), name
    assert len({conversation.key for conversation in conversations}) == len(conversations)


@pytest.mark.parametrize("source", SOURCES)
def test_every_conversation_is_stored_as_counted(
    engine: Engine, shared_data: Path, source: str
) -> None:
    """After an import the database has the strict numbers per conversation, and truth's totals."""
    folder, truth = shared_data / source, _truth(shared_data / source)
    with write_transaction(engine) as conn:
        project = ensure_project(conn, source)
    report = import_paths(engine, project, [folder])
    assert report.errors == []
    assert (report.conversations, report.calls, report.failures) == (
        truth["conversations"],
        truth["tool_calls"],
        truth["failed_calls"],
    )
    stored = count_stored(engine, project)
    for (name, attempts), session in zip(_attempts(folder), _sessions(folder), strict=True):
        wanted = recount.count(attempts)
        assert stored.get(session, recount.Count()) == wanted, name
    everything = total(list(stored.values()))
    wanted_chains = truth["chains_strict_after_seeing_error"]
    assert everything.tools == {
        tool: (counts["calls"], counts["failed"]) for tool, counts in truth["per_tool"].items()
    }
    assert (everything.chains, everything.recovered, everything.round_trips) == (
        wanted_chains["failure_chains"],
        wanted_chains["recovered_chains"],
        wanted_chains["round_trips_total"],
    )
    again = import_paths(engine, project, [folder])
    assert (again.accepted, again.duplicate) == (0, report.accepted)
    assert count_stored(engine, project) == stored


@pytest.mark.parametrize("source", SOURCES)
def test_times_are_the_sources_own_or_marked_as_none(
    engine: Engine, shared_data: Path, source: str
) -> None:
    """Transcripts without times are marked so; those of session files are kept as they are."""
    with write_transaction(engine) as conn:
        project = ensure_project(conn, source)
    import_paths(engine, project, [shared_data / source])
    wanted = "import" if source == "claude_code_sessions" else "none"
    columns = select(tool_call.c.time_source, tool_call.c.occurred_at, tool_call.c.received_at)
    with engine.connect() as conn:
        rows = conn.execute(columns.where(tool_call.c.project_id == project)).all()
    assert {row.time_source for row in rows} == {wanted}
    if wanted == "import":
        assert max(row.occurred_at for row in rows) < min(row.received_at for row in rows)


def test_soft_errors_of_livemcpbench_are_marked_and_not_counted(shared_data: Path) -> None:
    """The in-band errors that truth.json sets apart are successes with a detection of their own."""
    folder = shared_data / "livemcpbench"
    soft = [
        call
        for conversation in parsed(folder / FILES["livemcpbench"])
        for call in conversation.calls
        if call.soft is not None
    ]
    assert len(soft) == _truth(folder)["result_layers"]["soft_error_not_counted"]
    assert {call.status for call in soft} == {"ok"}


@pytest.mark.parametrize(
    ("source", "error_class", "codes"),
    [
        ("tau_bench_airline", "availability", {"resource_unavailable"}),
        ("agentrx_tau_retail", "availability", {"resource_unavailable"}),
        ("agentrx_tau_retail", "not_found", {"not_found"}),
        ("agentrx_tau_retail", "state", {"precondition_failed"}),
        ("livemcpbench", "timeout", {"timeout"}),
        ("livemcpbench", "unknown_tool", {"not_available"}),
        ("livemcpbench", "not_found", {"not_found"}),
        (
            "claude_code_sessions",
            "user_rejected_or_permission",
            {"rejected_by_user", "permission_denied"},
        ),
        ("claude_code_sessions", "unknown_tool", {"not_available"}),
        ("claude_code_sessions", "input_validation", {"missing_field"}),
        ("claude_code_sessions", "http_error", {"external_service_error"}),
    ],
)
def test_codes_agree_with_the_error_classes_of_truth(
    shared_data: Path, source: str, error_class: str, codes: set[str]
) -> None:
    """Where a class of truth.json means the same as our codes, as many failures have them.

    The refusals that are nothing but the user's words are in no class of truth.json.
    """
    folder = shared_data / source
    files = [folder / FILES[source]] if source in FILES else sorted(folder.rglob("*.jsonl"))
    found = [
        classify(call.text, tool=call.tool, rule=call.rule)
        for path in files
        for conversation in parsed(path)
        for call in conversation.calls
        if call.status == "failed"
    ]
    matching = [each for each in found if each.code in codes and each.rule != "words_of_the_user"]
    assert len(matching) == _truth(folder)["error_class_counts"][error_class]
    assert "unclassified" not in {each.code for each in found} or source == "livemcpbench"
