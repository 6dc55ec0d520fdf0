"""Soft rules of one project: what counts as a failure from when on."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select, update
from structlog.testing import capture_logs
from tests.collector.otlp.spans import BEGAN, as_json, attributes_of, span
from tests.engines import POSTGRESQL_IS_LONG

from toolfault_collector.admin.audit import acts
from toolfault_collector.admin.projects import ensure_project, lock_project
from toolfault_collector.clock import SECOND_US
from toolfault_collector.doctor.recount import recount
from toolfault_collector.importers.run import import_paths
from toolfault_collector.otlp.calls.failures import SOFT_RULES
from toolfault_collector.otlp.request import read_request
from toolfault_collector.otlp.soft_rules import (
    soft_rules_of,
    switch_soft_rules,
    switched_off,
)
from toolfault_collector.otlp.submission import Signal
from toolfault_collector.otlp.traces import resolve
from toolfault_collector.protocol.steps import finish
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_group
from toolfault_collector.storage.tables import project, tool_call

NOW = BEGAN + 700 * SECOND_US
DOCS = Path(__file__).resolve().parents[3] / "docs" / "otlp.md"


def _project(engine: Engine, name: str = "demo") -> int:
    with write_transaction(engine) as conn:
        return ensure_project(conn, name)


def _switch(engine: Engine, project_id: int, *off: str, now: int = NOW) -> list[str]:
    with write_transaction(engine) as conn:
        changed = switch_soft_rules(conn, project_id, off, actor="ada", now=now)
    return [each.name for each in changed]


def _receive(engine: Engine, project_id: int, body: bytes, signal: Signal = "traces") -> None:
    read = read_request(body, signal, "json", project_id=project_id, received_at=NOW)
    with write_transaction(engine) as conn:
        store_group(conn, resolve(conn, [finish(read)]))


def _failing(trace: int, number: int = 1) -> dict[str, Any]:
    """A span without any error, whose result has a member `error`."""
    return span(
        *(trace, number, "execute_tool pay"),
        gen_ai__operation__name="execute_tool",
        gen_ai__tool__name="pay",
        gen_ai__tool__call__result='{"error": "no funds"}',
    )


def _record(call_id: str) -> bytes:
    """A log record outside any trace that reports the same."""
    values = {
        "session.id": "s",
        "tool_name": "pay",
        "tool_use_id": call_id,
        "gen_ai.tool.call.result": '{"error": "no funds"}',
    }
    record = {"eventName": "claude_code.tool_result", "attributes": attributes_of(values)}
    return json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).encode()


def _calls(engine: Engine, project_id: int) -> list[tuple[str, bool, str]]:
    call = tool_call.c
    query = select(call.trace_id, call.call_id, call.success, call.detection)
    with read_connection(engine) as conn:
        rows = conn.execute(query.where(call.project_id == project_id).order_by(call.id)).all()
    assert recount(engine).right
    return [(trace[-1] if trace else call_id, ok, sign) for trace, call_id, ok, sign in rows]


def test_a_rule_that_is_off_counts_no_failure_from_then_on(engine: Engine) -> None:
    """New traces and open ones follow the change, what is stored otherwise and others stay."""
    mine, other = _project(engine), _project(engine, "other")
    for trace in (1, 2):
        _receive(engine, mine, as_json([_failing(trace)]))
    assert _switch(engine, mine, "json_error") == ["json_error"]

    _receive(engine, mine, as_json([_failing(3)]))
    _receive(engine, mine, as_json([span(2, 9, "invoke_agent")]))  # more of an open trace
    _receive(engine, other, as_json([_failing(4)]))

    sign = "soft:json_error"
    assert sorted(_calls(engine, mine)) == [
        ("1", False, sign),
        ("2", True, sign),
        ("3", True, sign),
    ]
    assert _calls(engine, other) == [("4", False, sign)]


@POSTGRESQL_IS_LONG
def test_log_records_and_files_follow_the_rules(engine: Engine, tmp_path: Path) -> None:
    """A record outside any trace and an imported span are decided like a span that is received."""
    project_id = _project(engine)
    file = tmp_path / "spans.json"
    for trace, off in ((1, ()), (2, ("json_error",))):
        _switch(engine, project_id, *off)
        _receive(engine, project_id, _record(f"of {trace}"), "logs")
        file.write_bytes(as_json([_failing(trace)]))
        assert import_paths(engine, project_id, [file]).failures == 1 - len(off)

    found = [(name, ok) for name, ok, _ in _calls(engine, project_id)]
    assert found == [("of 1", False), ("1", False), ("of 2", True), ("2", True)]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_change_says_since_when_and_who(engine: Engine) -> None:
    """Each switch keeps its own moment, the same again changes nothing, and the log has all."""
    project_id = _project(engine)
    assert _switch(engine, project_id, "json_error", "exit_code", now=1) == [
        *("exit_code", "json_error"),
    ]
    assert _switch(engine, project_id, "json_error", "exit_code", now=2) == []
    assert _switch(engine, project_id, "json_error", now=3) == ["exit_code"]
    with pytest.raises(ValueError, match=r"no soft rule 'nonsense'.*json_error"):
        _switch(engine, project_id, "nonsense")

    with read_connection(engine) as conn:
        rules = soft_rules_of(conn, project_id)
        log = [(act.occurred_at, act.actor, act.action, act.detail) for act in acts(conn)]
    assert [rule.name for rule in rules] == list(SOFT_RULES)
    switched = [(rule.name, rule.on, rule.since) for rule in rules if rule.since is not None]
    assert switched == [("exit_code", True, 3), ("json_error", False, 1)]
    assert log == [
        (3, "ada", "soft_rules_changed", {"exit_code": "on"}),
        (1, "ada", "soft_rules_changed", {"exit_code": "off", "json_error": "off"}),
    ]


def test_switches_at_once_take_turns(engine: Engine) -> None:
    """Each person adds one rule to what is off; none of them is lost."""
    project_id = _project(engine)
    names = [*SOFT_RULES][:6]
    ready = threading.Barrier(len(names))
    failed: list[Exception] = []

    def add(name: str) -> None:
        ready.wait()
        try:
            with write_transaction(engine) as conn:
                lock_project(conn, project_id)
                off = switched_off(conn, project_id) | {name}
                switch_soft_rules(conn, project_id, off, actor=name, now=NOW)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=add, args=(name,)) for name in names]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert failed == []
    with read_connection(engine) as conn:
        assert switched_off(conn, project_id) == set(names)
        assert {act.actor for act in acts(conn)} == set(names)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("damaged", ["{", "[]", '{"json_error": 5}', "x\x00"])
def test_a_value_that_cannot_be_read_is_the_default(engine: Engine, damaged: str) -> None:
    """What arrives is stored, the log says once what is wrong, and the next switch mends it."""
    project_id = _project(engine)
    with write_transaction(engine) as conn:
        conn.execute(update(project).values(soft_rules=damaged))
    with capture_logs() as logs:
        _receive(engine, project_id, as_json([_failing(1)]))
        _receive(engine, project_id, as_json([_failing(2)]))
    assert [ok for _, ok, _ in _calls(engine, project_id)] == [False, False]
    told = [(line["log_level"], line["project"]) for line in logs if "soft_rules" in line["event"]]
    assert told == [("error", project_id)]
    assert _switch(engine, project_id, "exit_code") == ["exit_code"]
    with read_connection(engine) as conn:
        assert switched_off(conn, project_id) == {"exit_code"}


def test_the_documentation_lists_all_rules() -> None:
    """The table of the page on OpenTelemetry is that of the code."""
    rows = "\n".join(f"| `{name}` | {meaning} |" for name, meaning in SOFT_RULES.items())
    assert f"|---|---|\n{rows}\n\n" in DOCS.read_text("utf-8")
