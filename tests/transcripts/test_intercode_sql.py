"""Real before/after transcripts, fed through the SDK as their agent would have, over HTTP."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.live_server import LiveServer, live_server

import toolfault

pytestmark = pytest.mark.slow

PROJECT = "intercode"
VARIANTS = ("before", "after")
CALLS_PER_FLUSH = 300


@pytest.fixture(scope="module")
def intercode(shared_data: Path) -> Path:
    """The recorded runs of InterCode-SQL and their independent count."""
    folder = shared_data / "intercode_sql"
    if not folder.is_dir():
        pytest.skip(f"no transcripts at {folder}")
    return folder


@pytest.fixture(scope="module", autouse=True)
def quiet_tools() -> Iterator[None]:
    """Keep thousands of expected stack traces out of the reports; restored for other modules."""
    logger = logging.getLogger("toolfault")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


@pytest.fixture(scope="module", params=["after", pytest.param("before", marks=pytest.mark.long)])
def variant(request: pytest.FixtureRequest) -> str:
    """One side of the recorded experiment."""
    return str(request.param)


@pytest.fixture(scope="module")
def server(
    intercode: Path, variant: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveServer]:
    """A server that took the recording of a side through the SDK."""
    with live_server(tmp_path_factory.mktemp("intercode")) as running:
        toolfault.init(running.dsn(PROJECT), agent="intercode", environment="test")
        try:
            replay(intercode / f"{variant}.json", variant)
        finally:
            # The conversations end here: on a busy machine that took longer than two seconds.
            assert toolfault.close(60)
        yield running


def replay(recording: Path, variant: str) -> None:
    """Live through every recorded conversation again, with the recorded answers."""
    answers: list[tuple[bool, str]] = []

    @toolfault.tool
    def execute_sql(query: str) -> str:
        """Run a query; here the recorded harness decides whether it is valid."""
        valid, observation = answers.pop()
        if not valid:
            raise toolfault.ToolError(
                "execute_sql", observation, toolfault.ToolErrorCode.INVALID_INPUT, field="query"
            )
        return observation

    calls = 0
    for index, task in json.loads(recording.read_text(encoding="utf-8")).items():
        history = task["turn_history"]
        turns = zip(
            history["actions"], history["valid_action"], history["observations"], strict=True
        )
        with toolfault.conversation(
            f"{variant}:{index}", model="gpt-3.5-turbo", variant=variant
        ) as conversation:
            for turn, (action, valid, observation) in enumerate(turns):
                answers.append((valid, str(observation)))
                with conversation.turn(f"t{turn}"):
                    result = execute_sql.call(json.dumps({"query": action}))
                assert result.success is valid
                calls += 1
                if calls % CALLS_PER_FLUSH == 0:
                    assert toolfault.flush(60), toolfault.stats()
    assert toolfault.flush(60), toolfault.stats()


@pytest.fixture
def truth(intercode: Path, variant: str) -> dict[str, Any]:
    """The independent count of one side."""
    every = json.loads((intercode / "truth.json").read_text(encoding="utf-8"))
    return dict(every[variant])


def test_the_summary_of_a_variant_equals_the_independent_count(
    server: LiveServer, variant: str, truth: dict[str, Any]
):
    """Calls, failures, chains and round trips of each side are those counted from the files."""
    chains = truth["chains_strict_after_seeing_error"]

    found = server.summary(f"variant:{variant}", "--project", PROJECT)

    assert found["conversations"] == truth["conversations"]
    assert found["calls"] == truth["tool_calls"]
    assert found["failures"] == truth["failed_calls"]
    assert round(found["failure_rate"], 5) == truth["failure_rate"]
    assert found["chains"] == chains["failure_chains"]
    assert found["recovered"] == chains["recovered_chains"]
    assert found["abandoned"] == chains["abandoned_chains"]
    assert found["switched"] == found["open"] == 0
    assert found["round_trips"] == chains["round_trips_total"]
    mean = found["mean_failures_before_recovery"]
    assert round(mean, 4) == chains["mean_failed_attempts_before_recovery"]
    per_tool = truth["per_tool"]["execute_sql"]
    assert found["tools"] == {
        "execute_sql": {"calls": per_tool["calls"], "failures": per_tool["failed"]}
    }
    assert sum(found["codes"].values()) == truth["failed_calls"]


def test_the_chains_of_every_conversation_equal_the_independent_count(
    server: LiveServer, variant: str, truth: dict[str, Any]
):
    """Conversation by conversation: chains, recovered chains and round trips."""
    listed = server.run("chains", f"variant:{variant}", "--project", PROJECT, "--format", "ndjson")
    found: dict[str, Counter[str]] = {}
    for chain in map(json.loads, listed.splitlines()):
        counts = found.setdefault(chain["conversation"], Counter())
        counts["chains"] += 1
        counts["recovered"] += chain["outcome"] == "recovered"
        counts["round_trips"] += chain["round_trips"]

    for conversation in truth["per_conversation"]:
        counts = found.pop(conversation["id"], Counter())
        for name in ("chains", "recovered", "round_trips"):
            assert counts[name] == conversation[name], (conversation["id"], name)
    assert found == {}
