"""``POST /mcp``: the tools over streamable HTTP, for whoever holds a read key of the project."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from toolfault_collector.admin.keys import KeyCache
from toolfault_collector.http.auth import admit
from toolfault_collector.storage.database.engine import read_connection
from toolfault_dashboard.mcp.tools import answered
from toolfault_dashboard.policy import KEY_AUDIENCE
from toolfault_dashboard.queries.counting.deadline import deadline

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from toolfault_dashboard.mcp.sdk import Ask

__all__ = ["McpEndpoint"]


class McpEndpoint:
    """Answers requests of MCP clients, each by itself: nothing is kept between two of them.

    Any of several servers may answer any request. The SDK is loaded by the first one, so that a
    server nobody asks starts no later.

    Args:
        engine: The database; it is only read.
        keys: Those that may read.
        clock: Returns microseconds since the epoch, UTC.
    """

    def __init__(self, engine: Engine, keys: KeyCache, clock: Callable[[], int]) -> None:
        self._engine = engine
        self._keys = keys
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request.

        Raises:
            Problem: 401 without a read key, 403 with a key of another kind.
        """
        key = await admit(self._keys, scope, Headers(scope=scope), kind="read")
        # In a thread: loading takes a second or two, in which others send and read.
        create_server, manager_of = await run_in_threadpool(_sdk)
        project_id = key.project_id

        def ask(name: str, arguments: Mapping[str, Any]) -> str:
            with read_connection(self._engine) as conn, deadline(conn):
                return answered(
                    conn, project_id, name, arguments, now=self._clock(), audience=KEY_AUDIENCE
                )

        # A manager may be run once; without sessions it holds nothing that a next one would miss.
        manager = manager_of(create_server(ask), json_response=True, stateless=True)
        async with manager.run():
            await manager.handle_request(scope, receive, send)


def _sdk() -> tuple[Callable[[Ask], Server[Any]], type[StreamableHTTPSessionManager]]:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from toolfault_dashboard.mcp.sdk import create_server

    return create_server, StreamableHTTPSessionManager
