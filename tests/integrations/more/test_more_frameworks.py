"""Every scenario in the frameworks of this folder's drivers: one event per call, nothing changed.

Each framework runs in an environment of its own; one that was not made is skipped.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.environments import is_made, python_of
from tests.integrations.more.scenes import SCENARIOS, SECRET, Expected

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
# framework, so it is read and not imported here.
pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]


def _cases(scenarios: list[str]) -> list[Any]:
    long = pytest.mark.long
    return [pytest.param(*case, name, marks=long) for case in PLAYED for name in scenarios]


class Run:
    """What a driver answered: by scenario, the outcome and the events."""

    def __init__(self, lines: str) -> None:
        self.facts: dict[str, Any] = {}
        self.outcomes: dict[str, dict[str, Any]] = {}
        self.events: dict[str, list[dict[str, Any]]] = {}
        for line in lines.splitlines():
            name, outcome, events = json.loads(line)
            if name is None:
                self.facts = outcome
            else:
                self.outcomes[name], self.events[name] = outcome, events


@functools.cache
def _played(
    driver: str,
    environment: str,
    *,
    hooked: bool = True,
    improve: bool = False,
    decorated: bool = False,
) -> Run:
    asked = {"scenarios": list(SCENARIOS), "hooked": hooked}
    stdin = json.dumps({**asked, "improve": improve, "decorated": decorated})
    return Run(_python(environment, "play", driver, stdin=stdin))


def _python(environment: str, program: str, *arguments: str, stdin: str = "") -> str:
    """Return what a program of this folder writes in an environment."""
    if not is_made(environment):
        pytest.skip(f"{environment} is not made: python -m tests.integrations.environments")
    done = subprocess.run(
        [python_of(environment), "-m", f"tests.integrations.more.{program}", *arguments],
        input=stdin,
        env={**os.environ, "PYTHONPATH": str(ROOT / "sdk"), "PYTHONWARNINGS": "ignore"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def _run(driver: str, environment: str, scenario: str, **how: bool) -> Run:
    run = _played(driver, environment, **how)
    if scenario in run.facts["lacks"]:
        pytest.skip(f"{driver}: {run.facts['lacks'][scenario]}")
    return run


def _told(event: dict[str, Any]) -> str:
    renderings: dict[str, str] = event["error"]["renderings"]
    return renderings["llm"]


def _summary(event: dict[str, Any]) -> Expected:
    error = event.get("error")
    if error is None:
        return Expected(event["tool"])
    issues = tuple((issue["field"], issue["code"]) for issue in error.get("issues", ()))
    return Expected(event["tool"], error["code"], issues)


@pytest.mark.parametrize(("driver", "environment", "name"), _cases(list(SCENARIOS)))
@pytest.mark.parametrize("decorated", [False, True], ids=["plain", "decorated"])
def test_every_call_leaves_exactly_one_event(
    driver: str, environment: str, name: str, decorated: bool
) -> None:
    """Each call is one event with code and all issues, an id, its conversation and its turn."""
    run = _run(driver, environment, name, decorated=decorated)
    scenario, events = SCENARIOS[name], run.events[name]
    calls = [call for turn in scenario.turns for call in turn]

    assert sorted(map(_summary, events), key=repr) == sorted(scenario.expected, key=repr)
    assert all(event["side"] == run.facts["side"] for event in events)
    if run.facts["joined"]:  # by the metadata of a client that reports elsewhere
        assert {event["conversation_rung"] for event in events} == {"meta"}
        assert {event["session_id"] for event in events} == {"conv-1"}
    elif run.facts["side"] == "server":
        assert len({event["call_id"] for event in events}) == len(calls)
        return
    if run.facts["own_ids"]:
        assert len({event["call_id"] for event in events}) == len(calls)
    else:
        assert {event["call_id"] for event in events} == {call.call_id for call in calls}
    assert len({event["session_id"] for event in events}) == 1
    assert len({event["turn"] for event in events}) == len(scenario.turns)
    assert all(event["agent"] == "stub" for event in events) is run.facts["names_agent"]


@pytest.mark.parametrize(("driver", "environment", "name"), _cases(list(SCENARIOS)))
@pytest.mark.parametrize("improve", [False, True], ids=["as it is", "improve"])
def test_the_event_has_the_text_that_the_model_read(
    driver: str, environment: str, name: str, improve: bool
) -> None:
    """What the event says was told to the model is in the model's next input, word for word."""
    run = _run(driver, environment, name, improve=improve)
    read = "\n".join(run.outcomes[name]["told"])
    if run.outcomes[name]["error"] is not None or "returned" in name:
        return  # the model read nothing of it, or what the tool returned

    for event in run.events[name]:
        if "error" in event:
            # Values that must not travel are cut out of the event's text alone.
            parts = _told(event).replace("<", "[REDACTED]<").split("[REDACTED]")
            assert all(part.split(">")[-1].strip(' "') in read for part in parts), _told(event)


@pytest.mark.parametrize(("driver", "environment", "name"), _cases(list(SCENARIOS)))
def test_the_host_sees_what_it_saw_before(driver: str, environment: str, name: str) -> None:
    """Results, exceptions and what the model reads are those of a run without the hooks."""
    hooked = _run(driver, environment, name).outcomes[name]
    plain = _run(driver, environment, name, hooked=False).outcomes[name]

    assert hooked == plain


@pytest.mark.parametrize(("driver", "environment", "name"), _cases(["three faults at once"]))
def test_improve_names_all_faults_at_once(driver: str, environment: str, name: str) -> None:
    """With ``improve=True`` the model reads every issue and what was received, in one answer."""
    run = _run(driver, environment, name, improve=True)
    read = "\n".join(run.outcomes[name]["told"])

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
    run = _run(driver, environment, "success")
    declared = run.facts["idempotent"]
    events = [event for of_scenario in run.events.values() for event in of_scenario]

    assert {event["tool"] for event in events} > declared.keys()
    for event in events:
        assert event.get("idempotent") is declared.get(event["tool"]), event


@pytest.mark.parametrize(("driver", "environment", "name"), _cases(["raise", "secret"]))
@pytest.mark.parametrize("improve", [False, True], ids=["as it is", "improve"])
def test_secrets_stay_where_they_are(
    driver: str, environment: str, name: str, improve: bool
) -> None:
    """No event holds a secret of the arguments or of the exception, whatever the model was told."""
    run = _run(driver, environment, name, improve=improve)

    assert run.events[name]
    assert SECRET not in json.dumps(run.events[name])


@pytest.mark.parametrize(("driver", "environment", "name"), _cases(list(SCENARIOS)))
def test_better_texts_change_no_outcome(driver: str, environment: str, name: str) -> None:
    """With ``improve=True`` the host gets the same, and a text of ours tells no secret."""
    better = _run(driver, environment, name, improve=True).outcomes[name]
    plain = _run(driver, environment, name, hooked=False).outcomes[name]

    assert (better["output"], better["error"]) == (plain["output"], plain["error"])
    assert len(better["told"]) == len(plain["told"])
    if name == "secret":
        assert SECRET not in json.dumps(better["told"])


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
