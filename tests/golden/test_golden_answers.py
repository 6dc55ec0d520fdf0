"""Every page, file and API answer about known data says today what it said when it was recorded.

A net for rebuilding: these answers change only where a number was wrong, and then the recorded file
changes in the same commit (``python -m tests.golden.record``).
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.golden.answers import answers_about, differences, recorded
from tests.golden.filling import DEMO, NOW, REAL

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("source", [*REAL, DEMO])
def test_answers_are_the_recorded_ones(
    source: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    sqlite_template: Path,
    tmp_path: Path,
):
    """Numbers and rows of every page, file and API answer equal the recorded ones."""
    monkeypatch.setattr(time, "time_ns", lambda: int(NOW.timestamp()) * 1_000_000_000)

    def data() -> Path:
        return Path(request.getfixturevalue("shared_data"))

    found = answers_about(source, data, tmp_path, template=sqlite_template)
    different = differences(recorded(source), found)

    assert not different, "\n".join(different)
