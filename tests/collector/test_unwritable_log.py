"""A log that cannot be written fails nobody."""

from __future__ import annotations

import errno
import io
import logging
import sys

import pytest
import structlog

from toolfault_collector.log import configure


class Full(io.StringIO):
    """A stream on a full disk."""

    def write(self, text: str) -> int:
        """Fail as the system does."""
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("stream", [Full(), None], ids=["full", "closed"])
def test_whoever_logs_goes_on(stream: Full | None, monkeypatch: pytest.MonkeyPatch):
    """A full disk or a closed standard error loses lines of the log, and nothing else."""
    configure("info")
    monkeypatch.setattr(sys, "stderr", stream)

    structlog.get_logger("ours").error("an_event", number=1)
    logging.getLogger("of a library").error("a line")


def test_lines_arrive_where_they_can(capsys: pytest.CaptureFixture[str]):
    """With a standard error that works each line is there."""
    configure("info")

    structlog.get_logger("ours").error("an_event", number=1)

    assert '"event":"an_event"' in capsys.readouterr().err
