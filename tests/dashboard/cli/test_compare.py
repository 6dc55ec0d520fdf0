"""``toolfault compare``: the numbers, the formats, and the gate's exit codes."""

from __future__ import annotations

import csv
import io
import json
import uuid
from pathlib import Path

import pytest

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, MINUTE_US, format_time, now_us
from toolfault_collector.storage.database.engine import open_engine, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_dashboard.cli.app import run


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> str:
    """Two weeks of one tool: half of its calls failed until a change a week ago, then a tenth."""
    path = tmp_path_factory.mktemp("compare") / "toolfault.db"
    path.write_bytes(sqlite_template.read_bytes())
    now = now_us()
    events = []
    for number in range(400):
        before = number < 200
        at = now - (14 if before else 6) * DAY_US + number * MINUTE_US
        for call in range(5):
            failed = (number * 5 + call) % (2 if before else 10) == 0
            event = {
                "type": "tool_call",
                "event_id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{number}-{call}")),
                "session_id": f"c{number}",
                "seq": call,
                "occurred_at": format_time(at + call * 1_000_000),
                "tool": "search",
                "release": "1" if before else "2",
                "variant": f"trial={'ab'[number % 2]}",
                "success": not failed,
            }
            if failed:
                event["error"] = {"code": "wrong_type", "category": "parameter", "audience": "llm"}
            events.append(event)
    events.append(
        {
            "type": "change",
            "event_id": str(uuid.uuid4()),
            "occurred_at": format_time(now - 7 * DAY_US),
            "label": "coerce",
            "tool": "search",
            "kind": "manual",
        }
    )
    url = f"sqlite:///{path}"
    engine = open_engine(url)
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "default")
        receipt = store_events(conn, project, events, received_at=now, time_policy="import")
    engine.dispose()
    assert not receipt.rejected
    return url


@pytest.mark.parametrize(
    "cohorts",
    [
        ["--change", "coerce"],
        ["--change", "last"],
        ["--releases", "1", "2"],
        ["--before", "release:1", "--after", "release:2"],
        ["tool:search", "--before", "until:7d", "--after", "since:7d"],
    ],
)
def test_every_way_of_naming_sides_gives_the_same_numbers(
    compared: str, cohorts: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """A change, two releases and two queries of the same rows are the same comparison."""
    assert run(["compare", *cohorts, "--format", "json", "--database-url", compared]) == 0
    found = json.loads(capfd.readouterr().out)
    rate = found["effect"]["metrics"][0]
    assert (rate["before"], rate["after"], rate["verdict"]) == (0.5, 0.1, "improved")
    assert found["codes"][0]["code"] == "wrong_type"
    assert found["codes"][0]["verdict"] == "improved"


def test_an_empty_side_is_everything(compared: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A cohort without conditions is all of the window, as on the page."""
    cohorts = ["--before", "release:1", "--after", ""]
    assert run(["compare", *cohorts, "--format", "json", "--database-url", compared]) == 0
    rate = json.loads(capfd.readouterr().out)["effect"]["metrics"][0]
    assert (rate["before"], rate["after"]) == (0.5, pytest.approx(0.3))


def test_formats(
    compared: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """CSV and Markdown hold the same metrics as the table, whose words no terminal cuts."""
    monkeypatch.setenv("COLUMNS", "60")
    arguments = ["compare", "--change", "last", "--database-url", compared]
    assert run([*arguments, "--format", "csv", "--metric", "failure_rate"]) == 0
    (row,) = csv.DictReader(io.StringIO(capfd.readouterr().out, newline=""))
    assert (row["metric"], row["before"], row["verdict"]) == ("failure_rate", "0.5", "improved")
    assert run([*arguments, "--format", "markdown"]) == 0
    text = capfd.readouterr().out
    assert "| failure rate | 50.0% | 10.0% | -40.0 pp |" in text
    assert "wrong\\_type" in text
    assert run(arguments) == 0
    table = capfd.readouterr().out
    assert "before and after: improved" in table.replace("\n", " ")
    assert "…" not in table


@pytest.mark.parametrize(
    ("gates", "code"),
    [
        (["failure_rate worse"], 0),
        (["failure_rate improved"], 1),
        (["failure_rate worse", "failure_rate > 5%"], 1),
        (["code:wrong_type worse"], 0),
        (["nonsense"], 2),
    ],
)
def test_gates(
    compared: str, gates: list[str], code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """Exit code 0 while no gate is shut, 1 when one is, 2 when it cannot be read."""
    arguments = [part for gate in gates for part in ("--fail-if", gate)]
    found = run(["compare", "--change", "last", *arguments, "--database-url", compared])
    assert found == code
    assert ("the gate is shut" in capfd.readouterr().err) is (code == 1)


def test_variants_without_a_difference(compared: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Two arms of the same thing are told to be the same, compared as they are."""
    assert run(
        ["compare", "--variants", "trial=a", "trial=b", "--format", "json",
         "--database-url", compared]
    ) == 0  # fmt: skip
    effect = json.loads(capfd.readouterr().out)["effect"]
    rate = effect["metrics"][0]
    assert rate["difference"] == pytest.approx(rate["after"] - rate["before"])


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--before", "x"],
        ["--change", "last", "--releases", "1", "2"],
        ["--change", "nothing"],
        ["--change", "last", "--metric", "beauty"],
        ["--change", "last", "--format", "pdf"],
        ["--before", "tol:x", "--after", "tool:x"],
    ],
)
def test_what_cannot_be_compared_exits_with_two(
    compared: str, arguments: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """A CI job can tell a shut gate from a comparison that never took place."""
    assert run(["compare", *arguments, "--database-url", compared]) == 2
    assert capfd.readouterr().err.count("\n") == 1
