"""Inspect's logs: what a sample says beside its messages."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from tests.collector.importers.counting import parsed
from tests.collector.importers.fixtures import FIXTURES

LOG = json.loads(next(each.text for each in FIXTURES if each.format == "inspect"))


def test_times_of_calls_are_those_of_the_events(tmp_path: Path) -> None:
    """The messages have none; each call is known by its id."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps(LOG))
    (found,) = parsed(path)
    assert found.timed
    durations = [(call.ended_at or 0) - (call.started_at or 0) for call in found.calls]
    assert durations == [1_000_000] * 4


def _sample(epoch: int, *answers: dict[str, Any]) -> dict[str, Any]:
    """Give a sample as logs of 2024 have it: no id of its own, ids of calls that repeat."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "What?", "source": "input"}]
    for number, answer in enumerate(answers):
        call = {"id": f"c{number}", "function": "bash", "arguments": {}, "type": "function"}
        messages += [
            {"role": "assistant", "content": "", "source": "generate", "tool_calls": [call]},
            {"role": "tool", "content": "", "tool_call_id": f"c{number}", **answer},
        ]
    return {"id": 1, "epoch": epoch, "input": "What?", "messages": messages}


def test_every_type_of_error_is_a_failure_and_a_text_is_none(tmp_path: Path) -> None:
    """What a tool prints is no error, in logs without the tool's name in its answer either."""
    kinds = ("parsing", "timeout", "unicode_decode", "permission", "file_not_found",
             "is_a_directory", "limit", "approval", "unknown", "output_limit")  # fmt: skip
    errors: list[dict[str, Any]] = [{"error": {"type": kind, "message": kind}} for kind in kinds]
    others: list[dict[str, Any]] = [
        {"tool_error": "old"},
        {"content": "Error: is what it prints"},
        {"error": None},
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"samples": [_sample(1, *errors, *others)]}))
    (found,) = parsed(path)
    assert [call.status for call in found.calls] == ["failed"] * 11 + ["ok"] * 2
    path.write_text(json.dumps({"samples": [_sample(1, *others)]}))
    assert [call.status for call in parsed(path)[0].calls] == ["failed", "ok", "ok"]


def test_equal_epochs_in_an_archive_are_conversations_of_their_own(tmp_path: Path) -> None:
    """Each is a file; in both forms of a log they are the same ones."""
    samples = [_sample(epoch, {"tool_error": "no"}) for epoch in (1, 2, 3)]
    (tmp_path / "a.json").write_text(json.dumps({"samples": samples}))
    with zipfile.ZipFile(tmp_path / "a.eval", "w") as archive:
        for sample in samples:
            archive.writestr(f"samples/1_epoch_{sample['epoch']}.json", json.dumps(sample))
    keys = [{each.key for each in parsed(tmp_path / name)} for name in ("a.json", "a.eval")]
    assert len(keys[0]) == 3
    assert keys[0] == keys[1]


def test_texts_that_are_kept_apart_are_found(tmp_path: Path) -> None:
    """Long ones stand among the attachments of the sample."""
    log = json.loads(json.dumps(LOG))
    (sample,) = log["samples"]
    sample["attachments"] = {"0f": "rate limit exceeded"}
    sample["messages"][3]["error"]["message"] = "attachment://0f"
    path = tmp_path / "a.json"
    path.write_text(json.dumps(log))
    (found,) = parsed(path)
    assert found.calls[0].text == "rate limit exceeded"


def test_the_kind_of_the_error_decides_where_it_says_more_than_the_text(tmp_path: Path) -> None:
    """A refused approval is the user's no, whatever the words."""
    log = json.loads(json.dumps(LOG))
    error = {"type": "approval", "message": "x"}
    log["samples"][0]["messages"][3]["error"] = error
    path = tmp_path / "a.json"
    path.write_text(json.dumps(log))
    (found,) = parsed(path)
    assert found.calls[0].rule == "rejected_by_user"
    assert found.label == "id1-epoch1"


def test_epochs_of_a_sample_are_conversations_of_their_own(tmp_path: Path) -> None:
    """Also where they repeat each other word for word."""
    log = json.loads(json.dumps(LOG))
    (sample,) = log["samples"]
    log["samples"] = [{**sample, "epoch": n, "uuid": f"{n}{sample['uuid']}"} for n in (1, 2, 3)]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(log))
    assert len({each.key for each in parsed(path)}) == 3
