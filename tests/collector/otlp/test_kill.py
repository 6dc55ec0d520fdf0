"""A collector that is killed has nothing left to do for traces that are not whole yet."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest
from tests.collector.otlp.spans import as_json, send, span
from tests.collector.otlp.test_receiver import calls_in, tool_span
from tests.engines import POSTGRESQL_IS_LONG
from tests.running import RunningCollector


@pytest.mark.long
@POSTGRESQL_IS_LONG
def test_killed_between_the_spans_of_a_trace(database_url: str, tmp_path: Path) -> None:
    """Spans that were acknowledged are there after a kill -9; the rest of their trace finds them.

    The process dies in the transaction that brings the second call, so that one is sent again.
    """
    root = span(1, 1, "invoke_agent", seconds=60, gen_ai__conversation__id="conv-1")
    first = tool_span(1, 2, parent=1, at=1, status="error", message="boom")
    second = tool_span(1, 3, parent=1, at=9)
    with RunningCollector(
        database_url, folder=tmp_path, TOOLFAULT_FAILPOINT="inserted:2"
    ) as server:
        assert send(server, as_json([first])).status_code == 200
        with pytest.raises(httpx2.TransportError):
            send(server, as_json([second]))
        server.wait()
        server.start(TOOLFAULT_FAILPOINT="")
        assert [call["session_id"] for call in calls_in(server)] == [f"{1:032x}"]
        assert send(server, as_json([second])).status_code == 200
        assert send(server, as_json([root])).status_code == 200
        failed, worked = calls_in(server)
    assert (failed["session_id"], worked["session_id"]) == ("conv-1", "conv-1")
    assert (failed["success"], worked["success"]) == (False, True)
    assert worked["chain_id"] == failed["event_id"]
