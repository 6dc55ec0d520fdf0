"""``python -m toolfault doctor`` and ``hook``, run as people run them."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import pytest
from tests.sdk.telemetry import collector as behave
from tests.sdk.telemetry.collector import Server
from tests.sdk.telemetry.conftest import Doctor, command, python

Hook = Callable[[Any], tuple[int, str, str]]


@pytest.fixture
def hook(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, collector: Server
) -> Hook:
    """``python -m toolfault hook claude-code`` with a message; its exit code and what it wrote."""
    monkeypatch.setenv("TOOLFAULT_DSN", collector.dsn)

    def run(message: Any) -> tuple[int, str, str]:
        text = message if isinstance(message, str) else json.dumps(message)
        return command(capsys, monkeypatch, "hook", "claude-code", stdin=text)

    return run


@pytest.fixture(autouse=True)
def _no_dsn(monkeypatch: pytest.MonkeyPatch) -> None:
    """No collector is set where the tests run."""
    monkeypatch.delenv("TOOLFAULT_DSN", raising=False)


def test_doctor_finds_a_healthy_way(collector: Server) -> None:
    """With a collector that answers every step is fine and a test event is stored."""
    done = python("-m", "toolfault", "doctor", TOOLFAULT_DSN=collector.dsn)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    steps = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("ok  ")]
    # Frameworks that are installed here, each with a line, are none of the steps to the collector.
    assert len([step for step in steps if step != "mcp"]) == 6
    assert "KEY" not in done.stdout
    (event,) = collector.events.values()
    assert (event["type"], event["calls"], "tool" in event) == ("tool_call_counts", 0, False)


def closed_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@pytest.mark.parametrize(
    ("dsn", "step", "advice"),
    [
        (None, "DSN", "TOOLFAULT_DSN"),
        ("ftp://KEY@host", "DSN", "http://"),
        ("http://KEY@no-such-host.invalid", "DNS", "host name"),
        ("http://KEY@127.0.0.1:{closed}", "connection", "running"),
        ("https://KEY@127.0.0.1:{open}", "TLS", "starts with http://"),
    ],
)
def test_doctor_names_the_step_that_fails(
    dsn: str | None, step: str, advice: str, collector: Server, doctor: Doctor
) -> None:
    """The first broken step is named with what to do; steps behind it are not tried."""
    port = {"open": collector.server_port, "closed": closed_port()}
    code, said = doctor(dsn.format(**port) if dsn else None)
    assert code == 1
    last = said.splitlines()[-1]
    assert last.startswith(f"FAIL  {step}")
    assert advice in last
    assert "KEY" not in said.replace("http://KEY@127.0.0.1:8321 or https://KEY@errors", "")


@pytest.mark.parametrize(
    ("behaviour", "advice"),
    [
        (behave.status(401), "does not know the key"),
        (behave.status(403), "ingest"),
        (behave.status(404), "prefix"),
        (behave.lying(b"<html>"), "in between"),
        (behave.garbage, "no answer"),
    ],
)
def test_doctor_understands_refusals(
    behaviour: behave.Behaviour, advice: str, collector: Server, doctor: Doctor
) -> None:
    """What the collector's answer to the key means is said in words."""
    collector.default = behaviour
    code, said = doctor(collector.dsn)
    assert code == 1
    assert advice in said.splitlines()[-1]


@pytest.mark.parametrize(("at", "word"), [(1_000_000_000, "ahead of"), (4_000_000_000, "behind")])
def test_doctor_compares_clocks(
    at: int, word: str, collector: Server, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that is off by more than a minute is a finding."""
    date = formatdate(at, usegmt=True)
    monkeypatch.setattr(behave.Handler, "date_time_string", lambda *_: date)
    code, said = doctor(collector.dsn)
    assert code == 1
    assert f"{word} the collector's" in said


HOOK = {
    "session_id": "s1",
    "tool_name": "Edit",
    "tool_use_id": "toolu_1",
    "tool_input": {"file_path": "/CANARY", "old_string": "a CANARY"},
}


def test_hook_captures_a_failure(collector: Server, hook: Hook) -> None:
    """A failed call becomes a failed event with code, field and conversation, but no value."""
    said = "String to replace not found in file.\nString: a CANARY"
    error = f"<tool_use_error>{said}</tool_use_error>"
    message = {**HOOK, "hook_event_name": "PostToolUseFailure", "error": error, "duration_ms": 12}
    assert hook(message) == (0, "", "")
    (event,) = collector.of_type("tool_call")
    assert (event["tool"], event["call_id"], event["session_id"]) == ("Edit", "toolu_1", "s1")
    assert (event["agent"], event["success"], event["duration_ms"]) == ("claude-code", False, 12.0)
    assert (event["error"]["code"], event["error"]["field"]) == ("not_found", "old_string")
    assert event["error"]["renderings"]["llm"].endswith("in file.\nString: <str, 8 characters>")
    assert "CANARY" not in json.dumps(event)


def test_hook_ends_no_conversation_and_knows_no_release(
    collector: Server, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call is a process of its own, in the checkout that the agent edits."""
    monkeypatch.delenv("TOOLFAULT_RELEASE", raising=False)
    monkeypatch.setenv("GITHUB_SHA", "a" * 40)
    message = {**HOOK, "hook_event_name": "PostToolUseFailure", "error": "File does not exist."}
    assert hook(message) == (0, "", "")
    (event,) = collector.events.values()
    assert event["type"] == "tool_call"
    assert "release" not in event


def test_hook_captures_a_success_of_a_sub_agent(collector: Server, hook: Hook) -> None:
    """A sub-agent's call is a call of its own conversation."""
    message = {**HOOK, "hook_event_name": "PostToolUse", "tool_response": {}, "agent_id": "a7"}
    assert hook(message) == (0, "", "")
    (event,) = collector.of_type("tool_call")
    assert (event["success"], event["session_id"]) == (True, "s1/a7")


@pytest.mark.parametrize("stdin", ["", "not json", "[1]", "null"])
def test_hook_says_what_it_expects(stdin: str, hook: Hook) -> None:
    """Anything but a hook's message is refused in words, without a traceback."""
    expected = "toolfault: expected the JSON object of a Claude Code hook on stdin\n"
    assert hook(stdin) == (1, "", expected)


def test_hook_without_a_dsn_is_silent(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no collector is set the hook does nothing."""
    monkeypatch.delenv("TOOLFAULT_DSN")
    assert hook({**HOOK, "hook_event_name": "PostToolUse"}) == (0, "", "")


@pytest.mark.parametrize(
    ("text", "code", "category", "audience"),
    [
        (
            "The user doesn't want to proceed with this tool use. The tool use was rejected",
            "rejected_by_user",
            "availability",
            "user",
        ),
        (
            "Claude requested permissions to use WebSearch, but you haven't granted it yet.",
            "permission_denied",
            "availability",
            "user",
        ),
        ("PreToolUse:Bash hook returned blocking error", "blocked_by_hook", "availability", "llm"),
        ("No such tool available: AskUser", "not_available", "availability", "llm"),
        (
            "File has not been read yet. Read it first before writing to it.",
            "precondition_failed",
            "parameter",
            "llm",
        ),
        ("Found 3 matches of the string to replace", "not_unique", "parameter", "llm"),
        ("Command timed out after 2m 0.0s", "timeout", "internal", "system"),
        (
            "Exit code 1\nModuleNotFoundError: No module named 'x'",
            "command_failed",
            "parameter",
            "llm",
        ),
        ("File does not exist.", "not_found", "parameter", "llm"),
        (
            "File content (28375 tokens) exceeds maximum allowed tokens",
            "field_too_large",
            "parameter",
            "llm",
        ),
        ("Something else", "unclassified", "internal", "system"),
    ],
)
def test_sentences_have_codes(
    text: str, code: str, category: str, audience: str, collector: Server, hook: Hook
) -> None:
    """What Claude Code says is classified by a fixed table."""
    error = failure(hook, collector, error=text)
    assert (error["code"], error["category"], error["audience"]) == (code, category, audience)


def failure(hook: Hook, collector: Server, **members: Any) -> dict[str, Any]:
    """What the event says of a failed call that the hook was told of."""
    message = {**HOOK, "hook_event_name": "PostToolUseFailure", **members}
    assert hook(message) == (0, "", "")
    (event,) = collector.of_type("tool_call")
    error: dict[str, Any] = event["error"]
    return error


def test_validation_errors_are_taken_apart(collector: Server, hook: Hook) -> None:
    """Every argument Claude Code complains about is an issue."""
    text = (
        "InputValidationError: Grep failed due to the following issues:\n"
        "The required parameter `pattern` is missing\n"
        "An unexpected parameter `-o` was provided\n"
        "The parameter `head_limit` type is expected as `number` but provided as `string`\n"
    )
    issues = failure(hook, collector, tool_name="Grep", error=text)["issues"]
    assert [(issue["field"], issue["code"]) for issue in issues] == [
        ("pattern", "missing_field"),
        ("-o", "unknown_field"),
        ("head_limit", "wrong_type"),
    ]
    assert issues[2]["expected"] == "number"


def test_interrupted_call_is_cancelled(collector: Server, hook: Hook) -> None:
    """What the person interrupted has the code ``cancelled``."""
    assert failure(hook, collector, error="x", is_interrupt=True)["code"] == "cancelled"


def test_help_of_the_hook_is_all_one_needs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The help holds the settings to paste, as JSON, for both hooks."""
    code, said, _ = command(capsys, monkeypatch, "hook", "--help")
    assert code == 0
    settings = json.loads(said[said.index("{\n") :])
    assert list(settings["hooks"]) == ["PostToolUse", "PostToolUseFailure"]
    for (entry,) in settings["hooks"].values():
        assert entry["hooks"][0]["command"] == "python -m toolfault hook claude-code"
    assert "TOOLFAULT_DSN" in said
