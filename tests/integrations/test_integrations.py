"""Every scenario through every framework: one event per call, and nothing of the run changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.answers import ROOT, answer
from tests.integrations.environments import NAMES, PLAYED, driver_of
from tests.integrations.example import OF_README
from tests.integrations.scenarios import AGENT, CONVERSATION, MODEL, SCENARIOS

DRIVERS = {path.stem for path in (Path(__file__).parent / "drivers").glob("*.py")}
# In `make test` the newest versions of four frameworks, of whose further modes with few scenarios.
IN_EVERY_MODE = " in every mode"
ENVIRONMENTS = [
    *PLAYED,
    *(
        pytest.param(name + IN_EVERY_MODE * (name in PLAYED), marks=pytest.mark.long)
        for name in NAMES
        if driver_of(name) in DRIVERS
    ),
]
CLAUDE = "claude-agent-sdk-new"  # its example needs a scripted Claude Code, see more/claude_code.py
each_environment = pytest.mark.parametrize("name", ENVIRONMENTS)
each_scenario = pytest.mark.parametrize("scenario", [scenario.name for scenario in SCENARIOS])
FAULTY = ("wrong type", "missing", "three faults at once", "retry until success")


def _ran(name: str, *options: str) -> dict[str, Any]:
    """Run the table in an environment, once for all tests of this process."""
    more = ["--few", "--example"] if name in PLAYED and not options else []
    name = name.removesuffix(IN_EVERY_MODE)
    return answer(name, "run", driver_of(name), *options, *more)


def _has_example_of_its_own(name: str) -> bool:
    example = ROOT / "docs" / "examples" / f"{driver_of(name)}.py"
    return name.endswith("-new") and name not in (*PLAYED, CLAUDE) and example.exists()


def _runs(name: str, scenario: str, *, improve: bool) -> list[dict[str, Any]]:
    answer = _ran(name)
    if scenario in answer["lacks"]:
        pytest.skip(answer["lacks"][scenario])
    found = [
        run for run in answer["runs"] if run["scenario"] == scenario and run["improve"] is improve
    ]
    assert found
    return found


def _issues(event: dict[str, Any]) -> list[list[str]]:
    found = (event.get("error") or {}).get("issues", [])
    return sorted([issue["field"], issue["code"]] for issue in found)


def _short(event: dict[str, Any]) -> tuple[Any, ...]:
    code = (event.get("error") or {}).get("code")
    phantoms = event.get("phantom_arguments", [])
    return (event["call_id"], event["tool"], code, event["success"], _issues(event), phantoms)


@each_environment
@each_scenario
def test_each_call_leaves_one_event(name: str, scenario: str) -> None:
    """One event per call, with its code, every issue, what was dropped, and all ids."""
    names = ("call_id", "tool", "code")
    for run in _runs(name, scenario, improve=False):
        expected = [
            (*(e[name] for name in names), e["code"] is None, sorted(e["issues"]), e["phantoms"])
            for e in run["expected"]
        ]
        assert sorted(map(_short, run["events"])) == sorted(expected), run["mode"]
        for event in run["events"]:
            assert event["type"] == "tool_call"
            assert event["framework"] in run["frameworks"]
            assert event["side"] == "agent"
            assert event.get("conversation_rung") == run["rung"]
            assert event["session_id"] == CONVERSATION or not run["names_conversation"]
            assert event["agent"] == AGENT
            assert event["model"] == MODEL or not run["names_model"]
            assert event["turn"]


@each_environment
@each_scenario
@pytest.mark.parametrize("improve", [False, True])
def test_the_event_holds_what_the_model_read(name: str, scenario: str, improve: bool) -> None:
    """The text in the event is that of the model's next input, but for secrets."""
    for run in _runs(name, scenario, improve=improve):
        for event in run["events"]:
            told = run["outcome"]["told"].get(event["call_id"])
            if event["success"] or told is None:
                continue
            text = event["error"]["renderings"]["llm"]
            assert text == told or run["secret"] in told, run["mode"]
        if run["secret"]:
            assert run["secret"] not in json.dumps(run["events"])


@each_environment
@each_scenario
def test_the_run_is_what_it_was(name: str, scenario: str) -> None:
    """What the model reads and the host gets is the same with and without toolfault."""
    for run in _runs(name, scenario, improve=False):
        assert run["plain"] in (None, run["outcome"]), run["mode"]


@each_environment
@each_scenario
def test_better_texts_change_no_outcome(name: str, scenario: str) -> None:
    """With improve=True the host gets the same; only texts about faults differ."""
    for run in _runs(name, scenario, improve=True):
        plain, outcome = run["plain"], run["outcome"]
        if plain is None:
            continue
        assert (plain["answer"], plain["error"]) == (outcome["answer"], outcome["error"])
        assert plain["told"].keys() == outcome["told"].keys()
        faulty = {
            e["call_id"]
            for e in run["expected"]
            if e["issues"] or e["code"] in ("malformed_json", "not_available", "timeout")
        }
        for call_id, text in plain["told"].items():
            assert text == outcome["told"][call_id] or call_id in faulty
        if run["secret"] and faulty:
            assert run["secret"] not in json.dumps(outcome["told"])


@each_environment
@pytest.mark.parametrize("scenario", FAULTY)
def test_better_texts_name_every_fault(name: str, scenario: str) -> None:
    """With improve=True the model reads every field that is wrong."""
    for run in _runs(name, scenario, improve=True):
        for event in run["expected"]:
            told = run["outcome"]["told"].get(event["call_id"], "")
            assert all(field in told for field, _ in event["issues"])


@each_environment
def test_a_parallel_sibling_is_no_recovery(name: str) -> None:
    """Calls of one turn have one turn; those of the next another, which ends the chain."""
    for run in _runs(name, "parallel, one failing", improve=False):
        failed, other = sorted(run["events"], key=lambda event: str(event["call_id"]))
        assert failed["turn"] == other["turn"]
        assert "chain_id" not in other
    for run in _runs(name, "retry until success", improve=False):
        first, second = sorted(run["events"], key=lambda event: str(event["call_id"]))
        assert first["turn"] != second["turn"]
        assert (second["chain_id"], second["attempt"]) == (first["chain_id"], 2)


def _check_example(ran: dict[str, Any]) -> None:
    assert ran["returned"]
    failed = [event for event in ran["events"] if event.get("error")]
    assert [event["tool"] for event in failed] == ["book"]
    assert "restaurant" in {issue["field"] for issue in failed[0]["error"]["issues"]}


@pytest.mark.parametrize("name", PLAYED)
def test_the_example_of_the_documentation_reports_its_failed_call(name: str) -> None:
    """Each example runs as it stands, and the call that it gets wrong is one failed event."""
    _check_example(_ran(name)["example"])


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in PLAYED else pytest.mark.long)
        for name in (f"{each.replace('_', '-')}-new" for each in OF_README)
    ],
)
def test_the_first_lines_of_the_readme_report_a_failed_call(name: str) -> None:
    """README.md has a block for each of three frameworks, which runs around an agent of it."""
    options = () if name in PLAYED else ("--example", "--only=success")
    _check_example(_ran(name, *options)["readme"])


@each_environment
def test_handed_over_tools_answer_as_the_manager_does(name: str) -> None:
    """Tools of a ``ToolManager`` repair, name all faults and leave one event, hooked or not."""
    for ran in _ran(name)["handed_over"]:
        told = ran["told"]
        right, wrong = sorted(ran["events"], key=lambda event: event["seq"])
        assert told["c1"] == "booked Da Enzo for 4"
        assert "Invalid parameters - 3 errors:" in told["c2"]
        assert (right["success"], wrong["success"]) == (True, False)
        assert len(wrong["error"]["issues"]) == 3
        assert wrong["error"]["renderings"]["llm"] == told["c2"]
        if not name.startswith(("fastmcp", "mcp")):  # the protocol has no ids
            assert (right["call_id"], wrong["call_id"]) == ("c1", "c2")


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in NAMES if _has_example_of_its_own(name)])
def test_the_other_examples_report_their_failed_call(name: str) -> None:
    """Each example runs as it stands, and the call that it gets wrong is one failed event."""
    _check_example(answer(name, "example", driver_of(name)))


@pytest.mark.long
@each_environment
def test_a_framework_that_is_loaded_later_is_hooked(name: str) -> None:
    """``instrument`` before the import sees the same as after it."""
    later = {
        (run["scenario"], run["mode"]): sorted(map(_short, run["events"]))
        for run in _ran(name, "--first")["runs"]
    }
    assert later
    for run in _ran(name)["runs"]:
        key = (run["scenario"], run["mode"])
        if key in later and not run["improve"]:
            assert later[key] == sorted(map(_short, run["events"]))
