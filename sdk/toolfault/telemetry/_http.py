"""Batches over HTTP/1.1 of the standard library.

Imported by the sender thread with its first request: ``http.client`` and ``ssl`` cost more than
the rest of the SDK together.
"""

from __future__ import annotations

import http.client
import io
import os
import socket
import time
from collections.abc import Mapping
from typing import Any

from toolfault.telemetry._dsn import Dsn
from toolfault.telemetry._proxy import Proxy, proxy_of, tunnel
from toolfault.telemetry._transport import Response, TransportError

__all__ = ["HttpTransport", "open_socket"]

_LARGEST_ANSWER = 1024 * 1024


class HttpTransport:
    """Sends batches over one kept-alive connection; used by the sender thread alone."""

    def __init__(self, dsn: Dsn) -> None:
        self._dsn = dsn
        self._connection: http.client.HTTPConnection | None = None
        self._socket: _DeadlineSocket | None = None
        self._proxy: Proxy | None = None

    def send(self, body: bytes, *, headers: Mapping[str, str], timeout: float) -> Response:
        """Send one batch and return the answer.

        A kept-alive connection that the other side has closed meanwhile is replaced once: nothing
        was answered on it, and storing events is idempotent. So is one on which it has said
        something unasked, which would be read as the answer to this batch. Redirects are not
        followed: the key belongs to one collector.

        Raises:
            OSError: There was no readable answer within ``timeout`` seconds.
        """
        deadline = time.monotonic() + timeout
        if self._socket is not None and not self._socket.is_silent():
            self.close()
        reused = self._connection is not None
        try:
            return self._request(body, headers, deadline)
        except ConnectionError:
            if not reused:
                raise
        return self._request(body, headers, deadline)

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        sock, self._socket = self._socket, None
        if connection is not None:
            connection.close()
        if sock is not None:
            sock.shut()

    def abandon(self) -> None:
        """Let go of the descriptor in a forked child, without a word to the collector.

        The connection is the parent's. While the child held it too, the collector would not see
        the parent close it. Nothing is closed the usual way: the parent's sender may have held a
        lock of a reader at the fork.
        """
        sock, self._socket, self._connection = self._socket, None, None
        if sock is not None:
            sock.abandon()

    def _request(self, body: bytes, headers: Mapping[str, str], deadline: float) -> Response:
        try:
            connection = self._connected(deadline)
            connection.request("POST", self._target(), body=body, headers=self._all(headers))
            answer = connection.getresponse()
            content = answer.read(_LARGEST_ANSWER)
        except OSError:
            self.close()
            raise
        except (http.client.HTTPException, ValueError) as error:
            self.close()
            raise TransportError(f"not an HTTP answer: {type(error).__name__}") from error
        if answer.will_close or not answer.isclosed() or answer.status < 200:
            # Behind an interim answer comes another, which is none to the next request.
            self.close()
        fields = {name.lower(): value for name, value in answer.getheaders()}
        return Response(answer.status, fields, content)

    def _connected(self, deadline: float) -> http.client.HTTPConnection:
        if self._connection is None or self._socket is None:
            dsn = self._dsn
            self._proxy = proxy_of(dsn)
            sock = open_socket(dsn, self._proxy, deadline)
            # Also where it is secured: one that secures sockets itself would read the system's
            # certificates again.
            connection = http.client.HTTPConnection(dsn.host, dsn.port)
            connection.default_port = 443 if dsn.scheme == "https" else 80
            self._socket = _DeadlineSocket(sock)
            connection.sock = self._socket
            self._connection = connection
        self._socket.deadline = deadline
        return self._connection

    def _target(self) -> str:
        """Return what the request line names: the whole address where a proxy reads it."""
        dsn = self._dsn
        if self._proxy is None or dsn.scheme == "https":
            return dsn.events_path
        return f"{dsn.origin}{dsn.events_path}"

    def _all(self, headers: Mapping[str, str]) -> dict[str, str]:
        proxy = self._proxy
        if proxy is None or proxy.authorization is None or self._dsn.scheme == "https":
            return dict(headers)
        return {**headers, "Proxy-Authorization": proxy.authorization}


def open_socket(dsn: Dsn, proxy: Proxy | None, deadline: float) -> socket.socket:
    """Return a socket on which the collector, or the proxy in front of it, reads requests.

    Raises:
        OSError: It could not be connected, or secured, by ``deadline``.
    """
    address = (dsn.host, dsn.port) if proxy is None else (proxy.host, proxy.port)
    sock = socket.create_connection(address, _left(deadline))
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if dsn.scheme == "http":
            return sock
        from toolfault.telemetry._tls import tls_context

        if proxy is not None:
            tunnel(sock, dsn, proxy, deadline)
        context = tls_context()
        sock.settimeout(_left(deadline))  # of the handshake as a whole
        return context.wrap_socket(sock, server_hostname=dsn.host)
    except BaseException:
        sock.close()
        raise


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TransportError("timed out")
    return left


class _DeadlineSocket:
    """A socket whose reads and writes all end at one deadline.

    The timeout of a socket bounds each read: a peer that sends one byte per second would hold the
    sender for hours.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._readers: list[_DeadlineReader] = []
        self.deadline = 0.0

    def sendall(self, data: Any) -> None:
        self._sock.settimeout(_left(self.deadline))
        self._sock.sendall(data)

    def is_silent(self) -> bool:
        """Whether the other side has neither said anything nor hung up since the last answer."""
        self._sock.settimeout(0.0)
        try:
            self._sock.recv(1)
        except BlockingIOError:
            return True
        except OSError as error:
            return type(error).__name__ == "SSLWantReadError"  # ssl may be missing
        return False

    def makefile(self, _mode: str) -> io.BufferedReader:
        # Those of earlier answers have been closed with them.
        self._readers = [_DeadlineReader(self, self._sock)]
        return io.BufferedReader(self._readers[0])

    def close(self) -> None:
        self._sock.close()

    def abandon(self) -> None:
        """Close this process's copy of the descriptor."""
        descriptor = self._sock.detach()
        if descriptor >= 0:
            os.close(descriptor)

    def shut(self) -> None:
        """Let go of the descriptor also where an answer that broke off still holds it."""
        for reader in self._readers:
            reader.close()
        self._sock.close()


class _DeadlineReader(io.RawIOBase):
    def __init__(self, owner: _DeadlineSocket, sock: socket.socket) -> None:
        self._owner = owner
        self._sock = sock
        # Its own reader keeps the descriptor open after http.client has closed the socket of an
        # answer that announced the end of the connection.
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_left(self._owner.deadline))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
