"""Importing files into a database: reports, progress, repetition, formats together."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, func, select
from tests.collector.importers.counting import count_stored, total
from tests.collector.importers.sessions import answer, call, write
from tests.collector.importers.strategies import write_runs
from tests.engines import POSTGRESQL_IS_LONG

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.importers import Progress, import_paths
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_collector.storage.tables import call_counts, chain, conversation, issue, tool_call

CHAT: list[dict[str, Any]] = [
    {
        "role": "assistant",
        "tool_calls": [{"id": "a", "function": {"name": "t", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "a", "content": "Error: Missing required parameter: url"},
]
EVENT_ID = "01890000-0000-7000-8000-0000000000{:02}"


SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def project(engine: Engine) -> int:
    """A project to import into."""
    with write_transaction(engine) as conn:
        return ensure_project(conn, "imported")


def _event(number: int, **rest: Any) -> dict[str, Any]:
    return {
        "event_id": EVENT_ID.format(number),
        "type": "tool_call",
        "occurred_at": "2024-01-02T03:04:05Z",
        "session_id": "s",
        "tool": "t",
        "success": True,
        **rest,
    }


def _rows(engine: Engine, table: Any) -> list[Any]:
    with engine.connect() as conn:
        return list(conn.execute(select(table).order_by(*table.primary_key)))


def test_a_folder_of_many_formats(engine: Engine, project: int, tmp_path: Path) -> None:
    """Every transcript below the folder is imported; what is none is noted."""
    lines = [call(1), answer(1, failed=True), call(2), call(3), answer(3), call(4)]
    write(tmp_path / "claude" / "s.jsonl", lines)
    write_runs(tmp_path / "tau" / "runs.json", [CHAT, CHAT])
    (tmp_path / "tau" / "truth.json").write_text('{"conversations": 2}')
    (tmp_path / "tau" / "LICENSE.txt").write_text("MIT")
    (tmp_path / "spool.ndjson").write_text(json.dumps(_event(1)))
    report = import_paths(engine, project, [tmp_path])
    assert report.errors == []
    assert [problem.path.name for problem in report.problems] == ["truth.json", "s.jsonl"]
    assert report.problems[-1].message.startswith("1 calls have no result yet")
    assert (report.files, report.conversations, report.calls, report.failures) == (3, 3, 6, 3)
    assert (report.accepted, report.duplicate) == (6, 0)
    stored = total(list(count_stored(engine, project).values()))
    assert (stored.calls, stored.failed, stored.no_result) == (6, 3, 1)


@SQLITE
def test_importing_again_changes_nothing(engine: Engine, project: int, tmp_path: Path) -> None:
    """Under another name, in another folder, twice at once: nothing new, no row touched."""
    first = tmp_path / "first"
    lines = [call(1), answer(1, failed=True), call(2), answer(2), call(3), call(4), answer(4)]
    write(first / "s.jsonl", lines)
    write_runs(first / "runs.json", [CHAT, CHAT])
    (first / "spool.ndjson").write_text(json.dumps(_event(1)))
    report = import_paths(engine, project, [first])
    tables = (tool_call, issue, chain, call_counts)
    before = [_rows(engine, table) for table in tables]
    copy = tmp_path / "second" / "deep"
    shutil.copytree(first, copy)
    (copy / "s.jsonl").rename(copy / "renamed.jsonl")
    again = import_paths(engine, project, [tmp_path / "second", first, first / "s.jsonl"])
    assert again.accepted == 0
    assert again.duplicate == 2 * report.accepted
    assert [_rows(engine, table) for table in tables] == before
    with engine.connect() as conn:
        assert conn.execute(select(func.count()).select_from(conversation)).scalar_one() == 4


@SQLITE
def test_a_session_that_went_on_adds_what_is_new(
    engine: Engine, project: int, tmp_path: Path
) -> None:
    """The chain that was open is recovered by the retry of the second import."""
    lines = [call(1), answer(1, failed=True)]
    path = write(tmp_path / "s.jsonl", lines)
    import_paths(engine, project, [path])
    write(path, [*lines, call(2), answer(2)])
    report = import_paths(engine, project, [path])
    assert (report.accepted, report.duplicate) == (1, 1)
    (counted,) = count_stored(engine, project).values()
    assert (counted.chains, counted.recovered, counted.round_trips) == (1, 1, 1)


def _chat(calls: int, answered: int) -> dict[str, Any]:
    """Give a chat of so many turns, whose first answers are there; all but the last failed."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for number in range(calls):
        function = {"name": "search", "arguments": "{}"}
        messages.append({"role": "assistant", "tool_calls": [{"id": number, "function": function}]})
        if number < answered:
            content = "fine" if number == calls - 1 else "Error: no"
            messages.append({"role": "tool", "tool_call_id": number, "content": content})
    return {"conversation_id": "c", "messages": messages}


@SQLITE
def test_a_log_that_repeats_its_conversation_counts_each_call_once(
    engine: Engine, project: int, tmp_path: Path
) -> None:
    """Each line ends with a call whose result is in the next: three calls, two failed."""
    lines = [_chat(1, 0), _chat(2, 1), _chat(3, 2), _chat(3, 3)]
    path = write(tmp_path / "log.jsonl", lines)
    assert import_paths(engine, project, [path]).problems == []
    stored = total(list(count_stored(engine, project).values()))
    assert (stored.calls, stored.failed, stored.no_result) == (3, 2, 0)
    assert (stored.chains, stored.recovered, stored.round_trips) == (1, 1, 2)


@SQLITE
@pytest.mark.parametrize("kind", ["chat", "session"])
def test_an_answer_of_the_next_day_is_that_of_its_call(
    engine: Engine, project: int, tmp_path: Path, kind: str
) -> None:
    """The call is left out with a note, and stored once, with its result."""
    before, after = [_chat(2, 1)], [_chat(2, 2)]
    if kind == "session":
        before = [call(1), answer(1, failed=True), call(2)]
        after = [*before, answer(2, timestamp="2025-03-02T08:00:00Z")]
    path = write(tmp_path / "s.jsonl", before)
    (note,) = import_paths(engine, project, [path]).problems
    assert (note.severity, note.message[:18]) == ("note", "1 calls have no re")
    write(path, after)
    report = import_paths(engine, project, [path])
    assert (report.accepted, report.duplicate, report.problems) == (1, 1, [])
    stored = total(list(count_stored(engine, project).values()))
    assert (stored.calls, stored.failed, stored.no_result) == (2, 1, 0)


@pytest.mark.parametrize("order", [("early", "late"), ("late", "early")])
@pytest.mark.parametrize("at_once", [True, False])
@POSTGRESQL_IS_LONG
def test_a_late_answer_is_no_second_call(
    engine: Engine, project: int, tmp_path: Path, order: tuple[str, ...], at_once: bool
) -> None:
    """A call is stored with its result or as one without, whichever copy is read first."""
    early = [call(1), answer(1), call(2), call(3), answer(3)]
    copies = {"early": early, "late": [*early, answer(2, failed=True)]}
    paths = [
        write(tmp_path / str(number) / "s.jsonl", copies[name]) for number, name in enumerate(order)
    ]
    for some in [paths] if at_once else [[path] for path in paths]:
        report = import_paths(engine, project, some)
        assert report.accepted + report.duplicate == report.calls
    stored = total(list(count_stored(engine, project).values()))
    failed = order[0] == "late"
    assert (stored.calls, stored.failed, stored.no_result) == (3, failed, not failed)


@pytest.mark.postgres
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_the_planner_knows_what_an_import_stored(
    engine: Engine, project: int, tmp_path: Path
) -> None:
    """Questions that follow an import at once are planned with what the tables hold now."""
    lines = [line for number in range(300) for line in (call(number), answer(number, failed=True))]
    write(tmp_path / "s.jsonl", lines)
    assert import_paths(engine, project, [tmp_path]).accepted == 300
    assert _estimate(engine) == -1  # too few to be worth it
    write(tmp_path / "t.jsonl", [line for n in range(300, 900) for line in (call(n), answer(n))])
    import_paths(engine, project, [tmp_path])
    assert _estimate(engine) == 900


def _estimate(engine: Engine) -> float:
    """How many calls PostgreSQL believes there are."""
    with engine.connect() as conn:
        sql = "SELECT reltuples FROM pg_class WHERE oid = 'tool_call'::regclass"
        return float(conn.exec_driver_sql(sql).scalar_one())


@SQLITE
def test_the_same_file_in_two_projects(engine: Engine, project: int, tmp_path: Path) -> None:
    """Ids are unique within a project only."""
    path = write(tmp_path / "s.jsonl", [call(1), answer(1)])
    with write_transaction(engine) as conn:
        other = ensure_project(conn, "other")
    reports = [import_paths(engine, each, [path]) for each in (project, other)]
    assert [report.accepted for report in reports] == [1, 1]


@SQLITE
def test_own_events_keep_their_ids_times_and_resource(
    engine: Engine, project: int, tmp_path: Path
) -> None:
    """Lines are events or envelopes; what is refused is said with its line."""
    path = tmp_path / "spool.jsonl"
    envelope = {
        "schema_version": 1,
        "resource": {"agent": "bot", "release": "1.4"},
        "events": [_event(1), _event(2, success=False, error={"code": "timeout"})],
    }
    lines = [envelope, _event(3, agent="own"), {"no": "event"}, _event(4, tool="")]
    path.write_text("\n".join(map(json.dumps, lines)))
    report = import_paths(engine, project, [path])
    assert (report.accepted, report.calls, report.failures) == (3, 4, 1)
    assert [problem.position for problem in report.problems] == ["line 3", "line 4"]
    rows = _rows(engine, tool_call)
    assert [row.agent for row in rows] == ["bot", "bot", "own"]
    assert {row.time_source for row in rows} == {"import"}
    assert [row.event_id for row in rows] == [EVENT_ID.format(number) for number in (1, 2, 3)]


def test_a_resource_is_cleaned(engine: Engine, project: int, tmp_path: Path) -> None:
    """As by the server: what no column can hold is left out, too much is cut, both are flagged."""
    agents = ["a\ud800b", "a\0b", 5, "x" * 1_000, "bot"]
    envelopes = [
        {"schema_version": 1, "resource": {"agent": agent}, "events": [_event(number)]}
        for number, agent in enumerate(agents)
    ]
    path = tmp_path / "spool.ndjson"
    path.write_text("\n".join(map(json.dumps, envelopes)))
    report = import_paths(engine, project, [path])
    assert (report.accepted, report.problems) == (5, [])
    left_out, cut = ["resource.agent"], ["truncated:resource.agent"]
    assert [(row.agent, row.flags) for row in _rows(engine, tool_call)] == [
        *[(None, left_out)] * 3,
        ("x" * 128, cut),
        ("bot", None),
    ]


@SQLITE
def test_progress_grows_to_the_end(engine: Engine, project: int, tmp_path: Path) -> None:
    """Reported after each file and batch, in bytes of all files."""
    lines = [line for number in range(1, 520) for line in (call(number), answer(number))]
    for name in ("a", "b"):
        write(tmp_path / f"{name}.jsonl", [{**line, "sessionId": name} for line in lines])
    seen: list[Progress] = []
    import_paths(engine, project, [tmp_path], on_progress=seen.append)
    done = [progress.bytes_done for progress in seen]
    assert done == sorted(done)
    assert (done[-1], seen[-1].file, seen[-1].files) == (seen[-1].bytes_total, 2, 2)
    assert len(seen) > 2
    assert seen[-1].calls == 2 * 519


@SQLITE
def test_progress_within_a_file(engine: Engine, project: int, tmp_path: Path) -> None:
    """A session of several megabytes is followed before its first call is stored."""
    lines = [call(1), *(answer(1, "x" * 100_000) for _ in range(40))]
    seen: list[Progress] = []
    import_paths(engine, project, [write(tmp_path / "a.jsonl", lines)], on_progress=seen.append)
    early = [progress for progress in seen if progress.calls == 0]
    assert any(0 < progress.bytes_done < progress.bytes_total for progress in early)


@SQLITE
def test_a_path_that_is_not_there(engine: Engine, project: int, tmp_path: Path) -> None:
    """It is a problem; the other paths are imported."""
    path = write(tmp_path / "s.jsonl", [call(1), answer(1)])
    report = import_paths(engine, project, [tmp_path / "gone", path])
    assert [problem.message for problem in report.errors] == ["no such file or directory"]
    assert report.calls == 1


@SQLITE
@pytest.mark.parametrize("name", ["openai", "claude-code", "toolfault"])
def test_a_format_that_is_forced_on_a_folder(
    engine: Engine, project: int, tmp_path: Path, name: str
) -> None:
    """Files of other kinds in it are notes; the same file named by itself is an error."""
    write(tmp_path / "s.jsonl", [call(1), answer(1)])
    write_runs(tmp_path / "runs.json", [CHAT])
    (tmp_path / "spool.ndjson").write_text(json.dumps(_event(1)))
    other = tmp_path / "truth.json"
    other.write_text('{"conversations": 2}')
    report = import_paths(engine, project, [tmp_path], format=name)
    assert report.errors == []
    assert report.calls == 1
    assert import_paths(engine, project, [other], format=name).calls == 0


@SQLITE
def test_a_file_with_endless_problems_is_cut_short(
    engine: Engine, project: int, tmp_path: Path
) -> None:
    """A hundred are listed, the rest is counted."""
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, (call(1), answer(1)))) + "\n{broken" * 1_000)
    report = import_paths(engine, project, [path])
    assert len(report.problems) == 101
    assert report.problems[-1].message == "900 more problems like these"
    assert report.calls == 1


@SQLITE
def test_an_unknown_format_is_refused_before_anything_is_read(
    engine: Engine, project: int, tmp_path: Path
) -> None:
    """The error lists the formats that there are."""
    with pytest.raises(ValueError, match="known are auto, toolfault, claude-code, "):
        import_paths(engine, project, [tmp_path], format="opena")


@SQLITE
def test_a_failure_is_stored_with_all_that_the_rules_tell(
    engine: Engine, project: int, tmp_path: Path
) -> None:
    """Code, category, audience, field, issue, message and marks arrive in their columns."""
    messages = [
        *CHAT,
        {**CHAT[0]},
        {"role": "tool", "tool_call_id": "a", "content": '{"error": "soft"}'},
    ]
    import_paths(engine, project, [write_runs(tmp_path / "runs.json", [messages])])
    failure, success = _rows(engine, tool_call)
    assert (failure.code, failure.category, failure.audience) == (
        "missing_field",
        "parameter",
        "llm",
    )
    assert (failure.field, failure.time_source, failure.detection) == ("url", "none", "explicit")
    assert failure.text_llm == "Error: Missing required parameter: url"
    assert failure.message_id is not None
    assert failure.args_fingerprint == success.args_fingerprint
    assert (success.success, success.detection) == (True, "soft:json_error")
    assert [(row.field, row.code) for row in _rows(engine, issue)] == [("url", "missing_field")]
    assert _rows(engine, chain)[0].identical_repeats == 1


def test_hostile_text_reaches_the_database_in_one_piece(
    engine: Engine, project: int, tmp_path: Path
) -> None:
    """NUL, lone surrogates and long names are stored as far as they can be, on both engines."""
    chat = [
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": "a\x00" * 200,
                    "function": {"name": "t\ud800" * 300, "arguments": '{"\\ud800\\u0000": 1}'},
                }
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "a\x00" * 200,
            "content": "Error \x00\ud800" + "x" * 50_000,
        },
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"session_id": "\ud800" * 500, "messages": [*chat, *chat]}))
    report = import_paths(engine, project, [path])
    assert report.problems == []
    rows = _rows(engine, tool_call)
    assert len(rows) == 2
    assert rows[0].tool.startswith("t\ufffd")
    assert len(rows[0].text_llm) == 8_000


@SQLITE
def test_an_interrupted_import_goes_on_where_it_was(
    engine: Engine, project: int, tmp_path: Path
) -> None:
    """What was stored before an interruption is found again; the end is as without it."""
    lines = []
    for number in range(1, 600):
        lines += [call(number), answer(number, failed=number % 3 > 0)]
    path = write(tmp_path / "s.jsonl", lines)

    class Stopped(Exception):
        """Somebody interrupted the import."""

    def stop(progress: Progress) -> None:
        if progress.calls:
            raise Stopped

    with pytest.raises(Stopped):
        import_paths(engine, project, [path], on_progress=stop)
    (halfway,) = count_stored(engine, project).values()
    assert 0 < halfway.calls < 599
    import_paths(engine, project, [path])
    (counted,) = count_stored(engine, project).values()
    assert (counted.calls, counted.chains, counted.recovered) == (599, 200, 199)
