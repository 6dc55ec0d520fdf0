"""The API behind a real HTTP server of this process, with a clock that stands still."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, delete
from starlette.applications import Starlette
from starlette.routing import Mount
from tests import live_server
from tests.dashboard.generated import NOW

from toolfault_collector.admin.keys import KeyCache, KeyKind, create_key
from toolfault_collector.admin.projects import find_project
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_collector.storage.tables import api_key
from toolfault_dashboard.api import create_api

__all__ = ["key_of", "served"]


@contextmanager
def served(
    engine: Engine, *, now: int = NOW, http: type[asyncio.Protocol] | str = "auto"
) -> Iterator[str]:
    """Serve the API of *engine* with the protocol *http* and yield ``host:port``."""
    app = Starlette(routes=[Mount("/api/v1", create_api(engine, KeyCache(engine), lambda: now))])
    with live_server.served(app, lifespan="off", http=http) as address:
        yield address.removeprefix("http://")


@contextmanager
def key_of(engine: Engine, project: str, kind: KeyKind = "read") -> Iterator[str]:
    """Yield a key of *project*; afterwards there is none."""
    with write_transaction(engine) as conn:
        key = create_key(conn, find_project(conn, project) or 0, kind)
    yield key
    with write_transaction(engine) as conn:
        digest = hashlib.sha256(key.encode()).hexdigest()
        conn.execute(delete(api_key).where(api_key.c.key_hash == digest))
