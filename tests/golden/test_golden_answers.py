"""Every page, file and API answer about known data says today what it said when it was recorded.

A net for rebuilding: these answers change only where a number was wrong, and then the recorded file
changes in the same commit (``python -m tests.golden.record``). Events on ClickHouse change none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.clickhouse import copied_to_clickhouse
from tests.golden.answers import answers_about, differences, recorded
from tests.golden.filling import DEMO, NOW, REAL

pytestmark = pytest.mark.slow

Differences = Callable[..., list[str]]


@pytest.fixture
def differing(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    sqlite_template: Path,
    tmp_path: Path,
) -> Differences:
    """What the answers about a source say that was recorded otherwise."""
    monkeypatch.setattr(time, "time_ns", lambda: int(NOW.timestamp()) * 1_000_000_000)

    def data() -> Path:
        return Path(request.getfixturevalue("shared_data"))

    def differing(source: str, copied_to: Callable[[str], str] | None = None) -> list[str]:
        found = answers_about(source, data, tmp_path, template=sqlite_template, copied_to=copied_to)
        return differences(recorded(source), found)

    return differing


@pytest.mark.parametrize("source", [*REAL, DEMO])
def test_answers_are_the_recorded_ones(source: str, differing: Differences):
    """Numbers and rows of every page, file and API answer equal the recorded ones."""
    different = differing(source)
    assert not different, "\n".join(different)


@pytest.mark.long
@pytest.mark.parametrize("source", [*REAL, DEMO])
def test_answers_are_the_same_on_clickhouse(source: str, differing: Differences):
    """So they do with events on ClickHouse.

    That each reading function answers the same there `tests/dashboard/queries/test_columnar.py`
    shows in every run.
    """
    pytest.importorskip("chdb", reason="chdb, ClickHouse in the process, is not installed")
    different = differing(source, copied_to_clickhouse)
    assert not different, "\n".join(different)
