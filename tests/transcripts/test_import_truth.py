"""Real transcripts, counted three ways: by the product, by a naive recount and by their truth.json.

``per_conversation`` and ``per_tool`` of ``truth.json`` are the primary count, which ignores
parallelism. The product's definition is the strict one, of which the file has the totals. So the
recount must give both, and the product must give the recount's strict numbers.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, func, select
from tests.collector.importers import recount
from tests.collector.importers.counting import count_stored, parsed, total

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.importers import ImportReport, import_paths
from toolfault_collector.importers.classify import classify
from toolfault_collector.storage.database.engine import open_engine, write_transaction
from toolfault_collector.storage.tables import tool_call

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
SOURCES = (
    "tau_bench_airline",
    pytest.param("agentrx_tau_retail", marks=pytest.mark.long),  # in the format of the airline
    "livemcpbench",
    "claude_code_sessions",
)


@dataclass(frozen=True)
class Imported:
    """One source in a database."""

    engine: Engine
    project: int
    folder: Path
    truth: dict[str, Any]
    report: ImportReport


@pytest.fixture(scope="module")
def database(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A database for all sources, each a project of its own."""
    path = tmp_path_factory.mktemp("transcripts") / "toolfault.db"
    shutil.copyfile(sqlite_template, path)
    engine = open_engine(f"sqlite:///{path}")
    yield engine
    engine.dispose()


@pytest.fixture(scope="module", params=SOURCES)
def imported(request: pytest.FixtureRequest, database: Engine, shared_data: Path) -> Imported:
    """Each source after its import."""
    folder = shared_data / str(request.param)
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    with write_transaction(database) as conn:
        project = ensure_project(conn, folder.name)
    return Imported(database, project, folder, truth, import_paths(database, project, [folder]))


def _attempts(source: Imported) -> list[tuple[str, list[recount.Attempt]]]:
    """Give (id in truth.json, attempts) of every conversation of a source."""
    folder = source.folder
    ids = [entry["id"] for entry in source.truth["per_conversation"]]
    if folder.name in FILES:
        found = RECOUNTS[folder.name](folder / FILES[folder.name])
        return list(zip(ids, found, strict=True))
    return [(name, recount.claude_code_attempts(folder / name)) for name in ids]


def _files(source: Imported) -> list[Path]:
    """The files of a source in the order of truth.json."""
    folder = source.folder
    if folder.name in FILES:
        return [folder / FILES[folder.name]]
    return [folder / entry["id"] for entry in source.truth["per_conversation"]]


def test_the_recount_agrees_with_truth(imported: Imported) -> None:
    """The naive recount gives truth.json's primary count per conversation and its strict totals."""
    attempts = [found for _, found in _attempts(imported)]
    primary = [recount.count(found, strict=False) for found in attempts]
    names = ("calls", "failed", "no_result", "chains", "recovered", "round_trips")
    assert [{name: getattr(found, name) for name in names} for found in primary] == [
        {name: entry[name] for name in names} for entry in imported.truth["per_conversation"]
    ]
    strict = total([recount.count(found) for found in attempts])
    wanted = imported.truth["chains_strict_after_seeing_error"]
    assert (strict.chains, strict.recovered, strict.round_trips) == (
        wanted["failure_chains"],
        wanted["recovered_chains"],
        wanted["round_trips_total"],
    )


def test_every_conversation_is_stored_as_counted(imported: Imported) -> None:
    """After an import the database has the strict numbers per conversation, and truth's totals."""
    truth, report = imported.truth, imported.report
    assert report.errors == []
    assert (report.conversations, report.calls, report.failures) == (
        truth["conversations"],
        truth["tool_calls"],
        truth["failed_calls"],
    )
    stored = count_stored(imported.engine, imported.project)
    # The id of a conversation ends with its key.
    by_key = {session.rpartition(":")[2]: found for session, found in stored.items()}
    keys = [each.key.hex()[:16] for path in _files(imported) for each in parsed(path)]
    assert len(set(keys)) == len(keys)
    for (name, attempts), key in zip(_attempts(imported), keys, strict=True):
        assert by_key.get(key, recount.Count()) == recount.count(attempts), name
    everything = total(list(stored.values()))
    strict = truth["chains_strict_after_seeing_error"]
    assert everything.tools == {
        tool: (counts["calls"], counts["failed"]) for tool, counts in truth["per_tool"].items()
    }
    assert (everything.chains, everything.recovered, everything.round_trips) == (
        strict["failure_chains"],
        strict["recovered_chains"],
        strict["round_trips_total"],
    )


@pytest.mark.long  # `tests/collector/importers/test_import_paths.py` shows it of small files
def test_importing_again_stores_nothing(imported: Imported) -> None:
    """Every event of a second import is known, and no number changes."""
    before = count_stored(imported.engine, imported.project)
    again = import_paths(imported.engine, imported.project, [imported.folder])
    assert (again.accepted, again.duplicate) == (0, imported.report.accepted)
    assert count_stored(imported.engine, imported.project) == before


def test_times_are_the_sources_own_or_marked_as_none(imported: Imported) -> None:
    """Transcripts without times are marked so; those of session files are kept as they are."""
    wanted = "import" if imported.folder.name == "claude_code_sessions" else "none"
    columns = select(tool_call.c.time_source, tool_call.c.occurred_at, tool_call.c.received_at)
    with imported.engine.connect() as conn:
        rows = conn.execute(columns.where(tool_call.c.project_id == imported.project)).all()
    assert {row.time_source for row in rows} == {wanted}
    if wanted == "import":
        assert max(row.occurred_at for row in rows) < min(row.received_at for row in rows)


def test_soft_errors_are_marked_and_not_counted(imported: Imported) -> None:
    """The in-band errors that truth.json sets apart are successes with a detection of their own."""
    query = select(func.count()).where(
        tool_call.c.project_id == imported.project, tool_call.c.detection.like("soft:%")
    )
    with imported.engine.connect() as conn:
        assert conn.execute(query.where(~tool_call.c.success)).scalar_one() == 0
        soft = conn.execute(query).scalar_one()
    wanted = imported.truth.get("result_layers", {}).get("soft_error_not_counted")
    assert wanted is None or soft == wanted


# Where a class of truth.json means the same as our codes.
CLASSES = {
    "tau_bench_airline": {"availability": {"resource_unavailable"}},
    "agentrx_tau_retail": {
        "availability": {"resource_unavailable"},
        "not_found": {"not_found"},
        "state": {"precondition_failed"},
    },
    "livemcpbench": {
        "timeout": {"timeout"},
        "unknown_tool": {"not_available"},
        "not_found": {"not_found"},
    },
    "claude_code_sessions": {
        "user_rejected_or_permission": {"rejected_by_user", "permission_denied"},
        "unknown_tool": {"not_available"},
        "input_validation": {"missing_field"},
        "http_error": {"external_service_error"},
    },
}


def test_codes_agree_with_the_error_classes_of_truth(imported: Imported) -> None:
    """As many failures have our codes as truth.json has in the classes that mean the same.

    The refusals that are nothing but the user's words are in no class of truth.json.
    """
    name = imported.folder.name
    found = [
        classify(call.text, tool=call.tool, rule=call.rule)
        for path in _files(imported)
        for conversation in parsed(path)
        for call in conversation.calls
        if call.status == "failed"
    ]
    told = [each for each in found if each.rule != "words_of_the_user"]
    counted = imported.truth["error_class_counts"]
    assert {
        each: sum(one.code in codes for one in told) for each, codes in CLASSES[name].items()
    } == {each: counted[each] for each in CLASSES[name]}
    assert "unclassified" not in {each.code for each in found} or name == "livemcpbench"
