"""What a request with a wrong key costs."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine
from starlette.datastructures import Headers
from tests.statements import Statements

from toolfault_collector.admin.keys import KeyCache, create_key
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.http.auth import admit
from toolfault_collector.http.problems import Problem
from toolfault_collector.storage.database.engine import write_transaction


async def _refused(keys: KeyCache, token: str) -> None:
    headers = Headers({"authorization": f"Bearer {token}"})
    with pytest.raises(Problem) as problem:
        await admit(keys, {"type": "http"}, headers, kind="ingest")
    assert problem.value.status == 401


async def test_wrong_keys_cost_no_connection(sqlite_engine: Engine) -> None:
    """What is no key is not looked up, and an unknown key is looked up once in two seconds."""
    keys = KeyCache(sqlite_engine)
    with Statements(sqlite_engine) as asked:
        for token in ("x", "tf_ingest_short", "Bearer", "tf_admin_" + "x" * 43):
            await _refused(keys, token)
        assert list(asked) == []
        for _ in range(3):
            await _refused(keys, "tf_ingest_" + "x" * 43)
        assert sum("api_key" in each for each in asked) == 1


async def test_a_new_key_is_let_in_at_once(sqlite_engine: Engine) -> None:
    """Refusing many keys before keeps no new one out."""
    keys = KeyCache(sqlite_engine)
    for number in range(20):
        await _refused(keys, f"tf_ingest_{number:043}")
    with write_transaction(sqlite_engine) as conn:
        token = create_key(conn, ensure_project(conn, "demo"), "ingest")

    headers = Headers({"authorization": f"Bearer {token}"})
    found = await admit(keys, {"type": "http"}, headers, kind="ingest")

    assert found.kind == "ingest"
