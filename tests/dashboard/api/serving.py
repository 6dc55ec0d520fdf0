"""The API behind a real HTTP server of this process, with a clock that stands still."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from sqlalchemy import Engine, delete
from starlette.applications import Starlette
from starlette.routing import Mount
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
    # Who connects before the server runs waits in the backlog: nobody has to poll for it.
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", http=http))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            host, port = listening.getsockname()
            yield f"{host}:{port}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def key_of(engine: Engine, project: str, kind: KeyKind = "read") -> Iterator[str]:
    """Yield a key of *project*; afterwards there is none."""
    with write_transaction(engine) as conn:
        key = create_key(conn, find_project(conn, project) or 0, kind)
    yield key
    with write_transaction(engine) as conn:
        digest = hashlib.sha256(key.encode()).hexdigest()
        conn.execute(delete(api_key).where(api_key.c.key_hash == digest))
