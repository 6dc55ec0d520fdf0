"""Keys: random, kept as digests only, scoped, revocable."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import Engine, select
from starlette.datastructures import Headers
from tests.tables import tables_of

from toolfault_collector.admin.keys import (
    KeyCache,
    authenticate,
    create_key,
    list_keys,
    revoke_key,
    rotate_key,
)
from toolfault_collector.admin.projects import ensure_project, find_project, list_projects
from toolfault_collector.http.auth import admit
from toolfault_collector.http.problems import Problem
from toolfault_collector.storage.database.engine import read_connection, write_transaction

SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def test_key_is_known_by_its_digest(engine: Engine) -> None:
    """A key authenticates to its project and kind; no table holds it."""
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        token = create_key(conn, project_id, "ingest", label="agent")
        key = authenticate(conn, token)
        stored = [repr(row) for table in tables_of(engine) for row in conn.execute(select(table))]

    assert key is not None
    assert (key.project_id, key.kind, key.label) == (project_id, "ingest", "agent")
    assert token.startswith("tf_ingest_")
    assert token.startswith(key.prefix)
    assert len(token) - len("tf_ingest_") >= 43  # 256 bits in base64
    assert not any(token in text for text in stored)


@SQLITE
def test_keys_differ(engine: Engine) -> None:
    """No two keys are the same."""
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        tokens = {create_key(conn, project_id, "read") for _ in range(50)}

    assert len(tokens) == 50


@SQLITE
def test_unknown_key(engine: Engine) -> None:
    """What is no key authenticates nobody."""
    tokens = ["", "x", "tf_ingest_", "tf_ingest_" + "a" * 43, "é", "' OR 1=1"]
    with read_connection(engine) as conn:
        assert [token for token in tokens if authenticate(conn, token) is not None] == []


@SQLITE
def test_revoked_key(engine: Engine) -> None:
    """A revoked key stays listed, authenticates nobody, and is revoked once."""
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        other = ensure_project(conn, "other")
        token = create_key(conn, project_id, "ingest")
        (key,) = list_keys(conn, project_id)
        assert not revoke_key(conn, key.id, project_id=other)
        assert revoke_key(conn, key.id)
        assert not revoke_key(conn, key.id)
        assert authenticate(conn, token) is None
        (listed,) = list_keys(conn, project_id)

    assert listed.revoked_at is not None


def test_rotated_key(engine: Engine) -> None:
    """The new key works at once, the old one until its time is over; a revoked one has none."""
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        old = create_key(conn, project_id, "read", label="notebook")
        (key,) = list_keys(conn)

        new = rotate_key(conn, key.id, keep_us=60_000_000)

        assert new is not None
        assert authenticate(conn, old) is not None
        found = authenticate(conn, new)
        assert found is not None
        assert (found.project_id, found.kind, found.label) == (project_id, "read", "notebook")
        assert revoke_key(conn, key.id)
        assert authenticate(conn, old) is None
        assert rotate_key(conn, key.id, keep_us=60_000_000) is None
        assert rotate_key(conn, found.id, keep_us=0) is not None
        assert authenticate(conn, new) is None


@SQLITE
def test_a_revoked_key_is_refused_within_five_seconds(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that revokes a key looks it up again at once; others remember it for a moment."""
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    keys, others = KeyCache(engine), KeyCache(engine)
    with write_transaction(engine) as conn:
        token = create_key(conn, ensure_project(conn, "demo"), "ingest")
        (key,) = list_keys(conn)
    headers = Headers({"authorization": f"Bearer {token}"})
    scope = {"query_string": b""}

    for each in (keys, others):
        assert asyncio.run(admit(each, scope, headers, kind="ingest")).id == key.id
    with write_transaction(engine) as conn:
        revoke_key(conn, key.id)
    assert asyncio.run(admit(keys, scope, headers, kind="ingest")).id == key.id
    keys.forget()
    with pytest.raises(Problem, match="401"):
        asyncio.run(admit(keys, scope, headers, kind="ingest"))
    now += 5
    with pytest.raises(Problem, match="401"):
        asyncio.run(admit(others, scope, headers, kind="ingest"))


@SQLITE
def test_kind_is_checked(engine: Engine) -> None:
    """There are two kinds of keys."""
    with write_transaction(engine) as conn, pytest.raises(ValueError, match="ingest or read"):
        create_key(conn, 1, "admin")  # type: ignore[arg-type]


@SQLITE
def test_projects(engine: Engine) -> None:
    """A project is made once and found by its name."""
    with write_transaction(engine) as conn:
        first, again = ensure_project(conn, "demo"), ensure_project(conn, "demo")
        assert first == again == find_project(conn, "demo")
        assert find_project(conn, "nobody") is None
        ensure_project(conn, "another")
        assert [project.name for project in list_projects(conn)] == ["another", "demo"]


@SQLITE
def test_odd_project_names(engine: Engine) -> None:
    """A name that could not be shown on one line is refused."""
    for name in ("", "  ", "x" * 129, "a\nb", "a\x00b"):
        with write_transaction(engine) as conn, pytest.raises(ValueError, match="project name"):
            ensure_project(conn, name)
