"""What the page of the last requests counts, against the rows themselves."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Engine, select
from tests.collector.otlp.spans import BEGAN, as_json, span
from tests.factories import failure, success

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import SECOND_US
from toolfault_collector.otlp.request import read_request
from toolfault_collector.otlp.traces import resolve
from toolfault_collector.protocol.records import Context
from toolfault_collector.protocol.steps import finish
from toolfault_collector.protocol.submission import read_events
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_group
from toolfault_collector.storage.tables import tool_call
from toolfault_dashboard.queries.received import reached_calls
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.search import parse

NOW = BEGAN + 700 * SECOND_US


def _trace(number: int, *, with_span: int, without: int) -> list[dict[str, Any]]:
    """Give a trace of calls that have a span, and of calls that only the messages tell of."""
    asked = [
        {"type": "tool_call", "id": f"{number}-{call}", "name": "fly", "arguments": {}}
        for call in range(without)
    ]
    told = [
        {"type": "tool_call_response", "id": each["id"], "response": "Error: no tool named fly"}
        for each in asked
    ]
    messages = [{"role": "assistant", "parts": asked}, {"role": "tool", "parts": told}]
    chat: dict[str, Any] = {"gen_ai__operation__name": "chat"}
    tool: dict[str, Any] = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "t"}
    output, given = json.dumps(messages[:1]), json.dumps(messages)
    return [
        span(number, 1, "chat m", at=1, gen_ai__output__messages=output, **chat),
        span(number, 2, "chat m", at=3, gen_ai__input__messages=given, **chat),
        *(span(number, 10 + at, "execute_tool t", at=5 + at, **tool) for at in range(with_span)),
    ]


def test_calls_that_never_reached_a_span_recount(engine: Engine) -> None:
    """Those of OpenTelemetry alone, of this project alone, whatever else is stored beside them."""
    with write_transaction(engine) as conn:
        mine, other = ensure_project(conn, "mine"), ensure_project(conn, "other")
        for project, traces in ((mine, ((1, 3, 2), (2, 0, 4), (3, 5, 0))), (other, ((4, 1, 1),))):
            for number, reached, never in traces:
                body = as_json(_trace(number, with_span=reached, without=never))
                read = read_request(body, "traces", "json", project_id=project, received_at=NOW)
                store_group(conn, resolve(conn, [finish(read)]))
        reported = [failure("t", session_id="s", at=NOW - 2), success("t", session_id="s", at=NOW)]
        store_group(conn, [read_events(reported, Context(mine, NOW))])

    with read_connection(engine) as conn:
        rows = conn.execute(select(tool_call.c.extra).where(tool_call.c.project_id == mine)).all()
        found = reached_calls(conn, Scope(mine, parse(""), NOW))
    came = [extra for (extra,) in rows if extra and "dialect" in extra]
    never_reached = [extra for extra in came if extra.get("reached") is False]
    assert (found.calls, found.never) == (len(came), len(never_reached)) == (14, 6)
    assert len(rows) == 16
