"""Every scenario in the frameworks of this folder's drivers: one event per call, nothing changed.

Each framework runs in an environment of its own; one that was not made is skipped.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.integrations.environments import is_made, python_of
from tests.integrations.more.scenes import (
    AGENT,
    CONVERSATION,
    MODES,
    SCENARIOS,
    SECRET,
    Expected,
    Scenario,
)
from tests.integrations.more.table import COLUMNS, RECORDED, recorded

ROOT = Path(__file__).parents[3]
# Driver and environment.
PLAYED = [
    ("mcp_lowlevel", "mcp-new"),
    ("mcp_lowlevel", "mcp-old"),
    ("fastmcp_server", "fastmcp-new"),
    ("fastmcp_hooked", "fastmcp-new"),
    ("fastmcp_hooked", "fastmcp-old"),
    ("smolagents", "smolagents-new"),
    ("smolagents", "smolagents-old"),
    ("crewai", "crewai-new"),
    ("crewai", "crewai-old"),
    ("llama_index", "llama-index-new"),
    ("llama_index", "llama-index-old"),
    ("google_adk", "google-adk-new"),
    ("google_adk", "google-adk-old"),
    ("strands", "strands-new"),
    ("strands", "strands-old"),
    ("agent_framework", "agent-framework-new"),
    ("agent_framework", "agent-framework-old"),
]
# What a driver lacks, and what is special about it, is said in its file; the file needs its
# framework, so it is read and not imported here. The first test of a driver waits for all its runs.
pytestmark = [pytest.mark.timeout(1_800), pytest.mark.slow]


def _cases(scenarios: list[str]) -> list[Any]:
    long = pytest.mark.long
    return [pytest.param(*case, name, marks=long) for case in PLAYED for name in scenarios]


class Played(NamedTuple):
    """One run of a scenario.

    Attributes:
        mode: How the host ran the agent.
        outcome: What the model read and the host got.
        events: The events of its calls.
    """

    mode: str
    outcome: dict[str, Any]
    events: list[dict[str, Any]]


class Runs(NamedTuple):
    """All runs of a driver.

    Attributes:
        facts: What the driver says of its framework.
        runs: By way and scenario.
    """

    facts: dict[str, Any]
    runs: dict[tuple[str, str], list[Played]]


@functools.cache
def _printed(driver: str, environment: str, *options: str) -> str:
    return _python(environment, "play", driver, *options)


@functools.cache
def _played(driver: str, environment: str, *options: str) -> Runs:
    first, *lines = _printed(driver, environment, *options).splitlines()
    runs: dict[tuple[str, str], list[Played]] = {}
    for way, name, *run in map(json.loads, lines):
        runs.setdefault((way, name), []).append(Played(*run))
    return Runs(json.loads(first), runs)


def _python(environment: str, program: str, *arguments: str) -> str:
    """Return what a program of this folder writes in an environment."""
    if not is_made(environment):
        pytest.skip(f"{environment} is not made: python -m tests.integrations.environments")
    done = subprocess.run(
        [python_of(environment), "-m", f"tests.integrations.more.{program}", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "sdk"), "PYTHONWARNINGS": "ignore"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def _facts(driver: str, environment: str) -> dict[str, Any]:
    return _played(driver, environment).facts


def _runs(driver: str, environment: str, name: str, way: str) -> list[Played]:
    """Return the runs of a scenario, one for each mode; skip the test if the framework has none."""
    played = _played(driver, environment)
    if name in played.facts["lacks"]:
        pytest.skip(f"{driver}: {played.facts['lacks'][name]}")
    runs = played.runs[way, name]
    lacking = {mode for mode in played.facts["modes"] if f"{name}, {mode}" in played.facts["lacks"]}
    assert {run.mode for run in runs} | lacking == set(played.facts["modes"])
    return runs


def _told(event: dict[str, Any]) -> str:
    renderings: dict[str, str] = event["error"]["renderings"]
    return renderings["llm"]


def _summary(event: dict[str, Any]) -> Expected:
    error = event.get("error") or {}
    issues = tuple((issue["field"], issue["code"]) for issue in error.get("issues", ()))
    phantoms = tuple(event.get("phantom_arguments", ()))
    return Expected(event["tool"], error.get("code"), issues, phantoms)


def _expected(facts: dict[str, Any], name: str) -> list[Expected]:
    """Return the events of a scenario: the table's, or what the framework makes of it."""
    if name not in facts["expected"]:
        return SCENARIOS[name].expected
    return [
        Expected(tool, code, tuple((field, of) for field, of in issues), tuple(phantoms))
        for tool, code, issues, phantoms in facts["expected"][name]
    ]


each_case = pytest.mark.parametrize(("driver", "environment", "name"), _cases(list(SCENARIOS)))


@each_case
@pytest.mark.parametrize("way", ["hooked", "decorated"])
def test_every_call_leaves_exactly_one_event(
    driver: str, environment: str, name: str, way: str
) -> None:
    """Each call is one event with code and all issues, an id, its conversation and its turn."""
    facts, scenario = _facts(driver, environment), SCENARIOS[name]
    runs = _runs(driver, environment, name, way)
    if way == "decorated" and name in facts.get("decorated", {}):
        expected = _expected({"expected": facts["decorated"]}, name)
    else:
        expected = _expected(facts, name)

    for run in runs:
        found = sorted(map(_summary, run.events), key=repr)
        assert found == sorted(expected, key=repr), run.mode
        assert all(event["side"] == facts["side"] for event in run.events)
        if run.events:
            _check_names(facts, scenario, run.events)


def _check_names(facts: dict[str, Any], scenario: Scenario, events: list[dict[str, Any]]) -> None:
    """Check the ids that join the events of a run with each other and with the model's calls."""
    calls = [call for turn in scenario.turns for call in turn]
    if facts["joined"]:  # by the metadata of a client that reports elsewhere
        assert {event["conversation_rung"] for event in events} == {"meta"}
        assert {event["session_id"] for event in events} == {CONVERSATION}
    elif facts["side"] == "server":
        assert len({event["call_id"] for event in events}) == len(calls)
        return
    assert {event["call_id"] for event in events} == {call.call_id for call in calls}
    assert len({event["session_id"] for event in events}) == 1
    assert len({event["turn"] for event in events}) == len(scenario.turns)
    assert all(event["agent"] == AGENT for event in events) is facts["names_agent"]


@each_case
@pytest.mark.parametrize("way", ["hooked", "improve"])
def test_the_event_has_the_text_that_the_model_read(
    driver: str, environment: str, name: str, way: str
) -> None:
    """What the event says was told to the model is in the model's next input, word for word."""
    for run in _runs(driver, environment, name, way):
        read = "\n".join(run.outcome["told"])
        if run.outcome["error"] is not None or "returned" in name:
            continue  # the model read nothing of it, or what the tool returned
        for event in run.events:
            if "error" in event:
                # Values that must not travel are cut out of the event's text alone.
                parts = _told(event).replace("<", "[REDACTED]<").split("[REDACTED]")
                assert all(part.split(">")[-1].strip(' "') in read for part in parts), _told(event)


@each_case
def test_the_host_sees_what_it_saw_before(driver: str, environment: str, name: str) -> None:
    """Results, exceptions and what the model reads are those of a run without the hooks."""
    if SCENARIOS[name].own_limit is not None:
        pytest.skip("without toolfault its decorator limits nothing")
    hooked = _runs(driver, environment, name, "hooked")
    plain = _runs(driver, environment, name, "plain")

    for ours, theirs in zip(hooked, plain, strict=True):
        assert ours.outcome == theirs.outcome, ours.mode


@pytest.mark.parametrize(
    ("driver", "environment", "name"), _cases(["three faults at once", "retry until success"])
)
def test_improve_names_all_faults_at_once(driver: str, environment: str, name: str) -> None:
    """With ``improve=True`` the model reads every issue and what was received, in one answer."""
    if not _expected(_facts(driver, environment), name)[0].issues:
        pytest.skip("nobody checks the arguments")
    for run in _runs(driver, environment, name, "improve"):
        read = "\n".join(run.outcome["told"])

        assert "Invalid parameters - 3 errors:" in read
        assert "restaurant" in read
        assert "received str: 'four'" in read
        assert "received str: 'maybe'" in read


@pytest.mark.parametrize(
    ("driver", "environment"),
    [
        ("fastmcp_server", "fastmcp-new"),
        # The same middleware, which a hook adds.
        pytest.param("fastmcp_hooked", "fastmcp-new", marks=pytest.mark.long),
        pytest.param("fastmcp_hooked", "fastmcp-old", marks=pytest.mark.long),
    ],
)
def test_a_server_says_which_of_its_tools_are_idempotent(driver: str, environment: str) -> None:
    """Each call has the mark that its tool declares, none where it declares nothing."""
    few = ("--only=success", "--only=missing", "--only=secret in arguments")
    played = _played(driver, environment, *few)
    declared = played.facts["idempotent"]
    hooked = [runs for (way, _), runs in played.runs.items() if way == "hooked"]
    events = [event for runs in hooked for run in runs for event in run.events]

    assert {event["tool"] for event in events} > declared.keys()
    for event in events:
        assert event.get("idempotent") is declared.get(event["tool"]), event


@each_case
@pytest.mark.parametrize("way", ["hooked", "decorated", "improve"])
def test_secrets_stay_where_they_are(driver: str, environment: str, name: str, way: str) -> None:
    """No event holds a secret of the arguments or of the exception, whatever the model was told."""
    for run in _runs(driver, environment, name, way):
        assert SECRET not in json.dumps(run.events), run.mode


@each_case
def test_better_texts_change_no_outcome(driver: str, environment: str, name: str) -> None:
    """With ``improve=True`` the host gets the same, and a text of ours tells no secret."""
    if SCENARIOS[name].own_limit is not None:
        pytest.skip("without toolfault its decorator limits nothing")
    better = _runs(driver, environment, name, "improve")
    plain = _runs(driver, environment, name, "plain")

    for ours, theirs in zip(better, plain, strict=True):
        got = (ours.outcome["output"], ours.outcome["error"])
        assert got == (theirs.outcome["output"], theirs.outcome["error"]), ours.mode
        assert len(ours.outcome["told"]) == len(theirs.outcome["told"])
        if name == "secret in arguments":
            assert SECRET not in json.dumps(ours.outcome["told"])


@pytest.mark.parametrize(
    ("driver", "environment"), [pytest.param(*case, marks=pytest.mark.long) for case in PLAYED]
)
def test_what_a_framework_lacks_is_a_row_or_a_mode(driver: str, environment: str) -> None:
    """No row is missing in silence: each is played, in each mode, or its reason is given."""
    facts = _facts(driver, environment)
    rows = {*SCENARIOS, *MODES}
    in_a_mode = {f"{name}, {mode}" for name in SCENARIOS for mode in MODES}

    assert facts["lacks"].keys() <= rows | in_a_mode
    assert facts["expected"].keys() <= SCENARIOS.keys()
    assert {*facts["modes"], *(facts["lacks"].keys() & set(MODES))} == set(MODES)
    assert all(facts["lacks"].values())


@pytest.mark.long
@pytest.mark.parametrize("driver", COLUMNS)
def test_the_documentation_says_what_a_run_records(driver: str) -> None:
    """What is stored for the table of docs/frameworks.md is what the newest version records."""
    stored = json.loads(RECORDED.read_text(encoding="utf-8"))

    assert recorded(_printed(driver, COLUMNS[driver][1])) == stored[driver]


@pytest.mark.long
@pytest.mark.parametrize("environment", ["claude-agent-sdk-new", "claude-agent-sdk-old"])
def test_the_client_of_claude_code_calls_the_hooks(environment: str) -> None:
    """The example's options make the SDK report each call that Claude Code says has ended."""
    ran = json.loads(_python(environment, "claude_code"))

    assert ran["results"] == ["done"]
    assert [_summary(event) for event in ran["events"]] == [
        Expected("Read"),
        Expected("bookk", "not_available"),
    ]
    assert {event["session_id"] for event in ran["events"]} == {"s1"}
