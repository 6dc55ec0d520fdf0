"""Running the server: one process, one event loop, a graceful end."""

from __future__ import annotations

import gc
import os
import signal
import socket
from collections.abc import Callable
from types import FrameType

import structlog
import uvicorn
from fastapi import FastAPI

from toolfault_collector.http.request_heads import protocol_with_deadline
from toolfault_collector.settings import Settings

__all__ = ["collect_garbage_rarely", "serve"]

# Longest request line and headers together; keys and trace headers need a fraction of it.
MAX_HEADER_BYTES = 16_384
_log = structlog.get_logger(__name__)


def serve(
    app: FastAPI, settings: Settings, *, on_bound: Callable[[str], None] | None = None
) -> None:
    """Serve *app* until SIGTERM or SIGINT, then finish what is running.

    Another SIGINT (Ctrl-C) ends the process at once. Nothing that was acknowledged is lost by that:
    it was committed before.

    Args:
        app: The application; its lifespan starts and stops the collector in ``app.state``.
        settings: Address, port and how long the end may take.
        on_bound: Called with the URL once the port is taken, before the first request.

    Raises:
        OSError: The address cannot be listened on.
    """
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        http=protocol_with_deadline(
            settings.head_timeout_seconds, stalled_seconds=settings.stalled_timeout_seconds
        ),
        timeout_keep_alive=30,
        timeout_graceful_shutdown=round(settings.stop_seconds),
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
    )
    collect_garbage_rarely()
    listener = _listen(settings.host, settings.port)
    url = f"http://{settings.host}:{listener.getsockname()[1]}"
    if on_bound is not None:
        on_bound(url)
    _log.info("listening", url=url)
    for signum in (signal.SIGTERM, signal.SIGINT):
        # uvicorn raises the signal again once it has stopped; then there is nothing left to end.
        signal.signal(signum, _stopped)
    _Server(config, on_stop=app.state.collector.begin_stop).run(sockets=[listener])


def collect_garbage_rarely() -> None:
    """Let Python look for cycles of garbage less often than it does by itself.

    What is loaded by now stays, so nobody need look at it: else a failure costs a fifth more of
    the processor. A page over many rows makes no cycles, but so many objects that looking for them
    took a quarter of its time (`benchmarks/README.md`).
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


class _Server(uvicorn.Server):
    """Says that it is about to stop, and does not finish what runs for who asks twice.

    A stream that stays open until its reader goes would use up all the time there is.
    """

    def __init__(self, config: uvicorn.Config, *, on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_stop = on_stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop, gracefully."""
        self._on_stop()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, or end at once if a person asks while it stops."""
        if self.should_exit and sig == signal.SIGINT:
            _end_at_once(sig, frame)
        super().handle_exit(sig, frame)


def _stopped(_signum: int, _frame: FrameType | None) -> None:
    """Go on ending: the server has stopped already."""
    signal.signal(signal.SIGINT, _end_at_once)


def _end_at_once(signum: int, _frame: FrameType | None) -> None:
    # Not by an exception: it would come up in the middle of anything, and be logged there.
    os._exit(128 + signum)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's delay off only where the socket says that it speaks TCP.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # After a SIGKILL the port is free again at once, whatever connections linger.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    listener.set_inheritable(True)
    return listener
