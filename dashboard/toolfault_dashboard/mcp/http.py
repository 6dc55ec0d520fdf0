"""``POST /mcp``: the tools over streamable HTTP, for whoever holds a read key of the project."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from toolfault_collector.admin.keys import KeyCache
from toolfault_collector.http.auth import admit
from toolfault_dashboard.access.policy import KEY_AUDIENCE
from toolfault_dashboard.mcp.tools import answered
from toolfault_dashboard.queries.counting.deadline import deadline
from toolfault_dashboard.queries.reading import reading

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings

    from toolfault_dashboard.mcp.sdk import Ask

__all__ = ["McpEndpoint", "allowed_callers"]

_LOCAL_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")


class McpEndpoint:
    """Answers requests of MCP clients, each by itself: nothing is kept between two of them.

    Any of several servers may answer any request. The SDK is loaded by the first one, so that a
    server nobody asks starts no later.

    Args:
        engine: The database; it is only read.
        keys: Those that may read.
        clock: Returns microseconds since the epoch, UTC.
        is_local: Whether only this machine reaches the server.
        public_url: Address at which people reach it, or "".
    """

    def __init__(
        self,
        engine: Engine,
        keys: KeyCache,
        clock: Callable[[], int],
        *,
        is_local: bool,
        public_url: str,
    ) -> None:
        self._engine = engine
        self._keys = keys
        self._clock = clock
        self._is_local = is_local
        self._public_url = public_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; the SDK refuses a wrong ``Host`` (421) or ``Origin`` (403).

        Raises:
            Problem: 401 without a read key, 403 with a key of another kind.
        """
        headers = Headers(scope=scope)
        key = await admit(self._keys, scope, headers, kind="read")
        # In a thread: loading takes a second or two, in which others send and read.
        create_server, manager_of = await run_in_threadpool(_sdk)
        project_id = key.project_id

        def ask(name: str, arguments: Mapping[str, Any]) -> str:
            with reading(self._engine) as conn, deadline(conn):
                return answered(
                    conn, project_id, name, arguments, now=self._clock(), audience=KEY_AUDIENCE
                )

        # A manager may be run once; without sessions it holds nothing that a next one would miss.
        manager = manager_of(
            create_server(ask),
            json_response=True,
            stateless=True,
            security_settings=allowed_callers(
                headers.get("host", ""), is_local=self._is_local, public_url=self._public_url
            ),
        )
        async with manager.run():
            await manager.handle_request(scope, receive, send)


def allowed_callers(host: str, *, is_local: bool, public_url: str) -> TransportSecuritySettings:
    """Return whom the SDK lets in: by which names, and pages of which origins.

    A page of a browser may name this server anything, once its own name leads here (DNS rebinding).
    So ``Origin``, which programs do not send, must be an address that is known to be this server's
    (Model Context Protocol, Streamable HTTP, "Security Warning"); and ``Host`` as well where only
    this machine reaches the server. By what names others reach it no server knows.

    Args:
        host: What the request calls the server.
        is_local: Whether only this machine reaches it.
        public_url: Address at which people reach it, or "".
    """
    from mcp.server.transport_security import TransportSecuritySettings

    names = [at for name in _LOCAL_NAMES for at in (name, f"{name}:*")] if is_local else []
    origins = [f"http://{name}" for name in names]
    public = urlsplit(public_url)
    if public.netloc:
        names.append(public.netloc)
        origins.append(f"{public.scheme}://{public.netloc}")
    if not is_local:
        names.append(host)
    return TransportSecuritySettings(allowed_hosts=names, allowed_origins=origins)


def _sdk() -> tuple[Callable[[Ask], Server[Any]], type[StreamableHTTPSessionManager]]:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from toolfault_dashboard.mcp.sdk import create_server

    return create_server, StreamableHTTPSessionManager
