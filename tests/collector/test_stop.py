"""SIGTERM under load: what runs is finished or refused for later, and nothing is lost."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import httpx2
import pytest
from tests.collector.load import load
from tests.live_server import live_server
from tests.running import RunningCollector


@pytest.mark.slow
def test_rolling_restarts_under_load(server: RunningCollector) -> None:
    """Five restarts in a row end in time and cleanly, and no acknowledged event is lost."""
    with load(server) as senders:
        for _ in range(5):
            threading.Event().wait(0.2)
            assert server.terminate() == 0
            for sender in senders:
                # "Stopping" is an answer that an agent takes for "send again later".
                assert all('"unavailable"' in refused for refused in sender.refused)
                sender.refused.clear()
            server.start()
    assert "Traceback" not in server.output()


@pytest.mark.slow
def test_open_stream_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """A Live page that is watched is told the end of its stream, and the server ends with it."""
    with live_server(tmp_path) as server, httpx2.Client(timeout=30, trust_env=False) as browser:
        link = server.run("sign-in-link").strip().splitlines()[-1]
        token = link.partition("token=")[2].split()[0]
        origin = {"Origin": server.address}
        browser.post(f"{server.address}/sign-in", data={"token": token}, headers=origin)
        server.run("keys", "create", "--project", "demo", "--kind", "ingest")
        with browser.stream("GET", f"{server.address}/live/events") as stream:
            assert stream.status_code == 200
            lines = stream.iter_lines()
            assert "ready" in next(lines)
            server.process.send_signal(signal.SIGTERM)
            # To its proper end: one that was cut off raises.
            assert not [line for line in lines if "failure" in line]
        assert server.process.wait(10) == 0
