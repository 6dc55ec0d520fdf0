"""Inspect's logs: what a sample says beside its messages."""

from __future__ import annotations

import json
from pathlib import Path

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
