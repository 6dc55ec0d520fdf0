"""Folded or one by one: the collector's numbers are the same (real server, real recordings)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.live_server import live_server
from tests.transcripts.test_intercode_sql import VARIANTS, replay

import toolfault

PROJECT = "both"


def numbers(recordings: Path, folder: Path, successes: str) -> list[dict[str, Any]]:
    """Replay the recordings in one mode and return what the server says of them."""
    folder.mkdir()
    with live_server(folder) as running:
        toolfault.init(running.dsn(PROJECT), agent="intercode", successes=successes)
        try:
            for variant in VARIANTS:
                replay(recordings / f"{variant}.json", variant)
            assert toolfault.close(30)
        finally:
            toolfault.close()
        queries = ["", *(f"variant:{variant}" for variant in VARIANTS), "tool:execute_sql"]
        return [running.summary(query, "--project", PROJECT) for query in queries]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_both_modes_give_the_same_summary(shared_data: Path, tmp_path: Path) -> None:
    """Calls, failures, rates, chains and conversations do not depend on how successes are sent."""
    recordings = shared_data / "intercode_sql"
    if not recordings.is_dir():
        pytest.skip(f"no transcripts at {recordings}")
    whole = numbers(recordings, tmp_path / "all", "all")
    folded = numbers(recordings, tmp_path / "folded", "folded")
    assert whole[0]["calls"] > 5_000
    assert folded == whole
