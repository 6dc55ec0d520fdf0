"""Batches over HTTP/1.1 of the standard library, through the proxy where the network has one."""

from __future__ import annotations

import base64
import encodings.idna  # noqa: F401 - what Python loads with the first connection
import http.client
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from toolfault.telemetry._config import Dsn
from toolfault.telemetry._guard import guard
from toolfault.telemetry._transport import Response, TransportError

try:
    import ssl
except ImportError:  # a Python may be built without it
    ssl = None  # type: ignore[assignment]

_LARGEST_ANSWER = 1024 * 1024


class HttpTransport:
    """Sends batches over one kept-alive connection; used by the sender thread alone."""

    def __init__(self, dsn: Dsn) -> None:
        self._dsn = dsn
        self._connection: http.client.HTTPConnection | None = None
        self._socket: socket.socket | None = None
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
        if self._socket is not None and not _is_silent(self._socket):
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
            sock.close()

    def abandon(self) -> None:
        """Let go of the descriptor in a forked child and tell the collector nothing.

        The connection is the parent's. While the child held it too, the collector would not see
        the parent close it. Nothing is closed the usual way: the parent's sender may have held a
        lock of a reader at the fork.
        """
        sock, self._socket, self._connection = self._socket, None, None
        descriptor = -1 if sock is None else sock.detach()
        if descriptor >= 0:
            os.close(descriptor)

    def _request(self, body: bytes, headers: Mapping[str, str], deadline: float) -> Response:
        answer = None
        try:
            connection, sock = self._connected(deadline)
            with _ended_at(deadline, sock):
                connection.request("POST", self._target(), body=body, headers=self._all(headers))
                answer = connection.getresponse()
                content = answer.read(_LARGEST_ANSWER)
        except OSError:
            self._give_up(answer)
            raise
        except (http.client.HTTPException, ValueError) as error:
            self._give_up(answer)
            raise TransportError(f"not an HTTP answer: {type(error).__name__}") from error
        if answer.will_close or not answer.isclosed() or answer.status < 200:
            # Behind an interim answer comes another, which is none to the next request.
            self._give_up(answer)
        fields = {name.lower(): value for name, value in answer.getheaders()}
        return Response(answer.status, fields, content)

    def _give_up(self, answer: http.client.HTTPResponse | None) -> None:
        """Close the connection, and the reader of an answer that would hold its descriptor."""
        if answer is not None:
            answer.close()
        self.close()

    def _connected(self, deadline: float) -> tuple[http.client.HTTPConnection, socket.socket]:
        if self._connection is None or self._socket is None:
            dsn = self._dsn
            self._proxy = proxy_of(dsn)
            self._socket = open_socket(dsn, self._proxy, deadline)
            # Also where it is secured: one that secures sockets itself would read the system's
            # certificates again.
            self._connection = http.client.HTTPConnection(dsn.host, dsn.port)
            self._connection.default_port = 443 if dsn.scheme == "https" else 80
            self._connection.sock = self._socket
        self._socket.settimeout(_left(deadline))
        return self._connection, self._socket

    def _target(self) -> str:
        """Return what the request line names: the whole address where a proxy reads it."""
        dsn = self._dsn
        if self._proxy is None or dsn.scheme == "https":
            return dsn.events_path
        return f"{dsn.origin}{dsn.events_path}"

    def _all(self, headers: Mapping[str, str]) -> dict[str, str]:
        if self._proxy is None or self._dsn.scheme == "https":
            return dict(headers)
        return {**headers, **self._proxy.headers}


# -- connecting -----------------------------------------------------------------------------------


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
        with _ended_at(deadline, sock):
            if proxy is not None:
                _tunnel(sock, dsn, proxy)
            return _tls_context().wrap_socket(sock, server_hostname=dsn.host)
    except BaseException:
        sock.close()
        raise


def _tunnel(sock: socket.socket, dsn: Dsn, proxy: Proxy) -> None:
    """Have the proxy behind ``sock`` connect through to the collector (RFC 9110, 9.3.6)."""
    host = f"[{dsn.host}]" if ":" in dsn.host else dsn.host
    lines = [f"CONNECT {host}:{dsn.port} HTTP/1.1", f"Host: {host}:{dsn.port}"]
    lines += [f"{name}: {value}" for name, value in proxy.headers.items()]
    sock.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
    answer = http.client.HTTPResponse(sock, method="CONNECT")
    try:
        answer.begin()
    except http.client.HTTPException as error:
        raise TransportError("the proxy's answer is not HTTP") from error
    finally:
        answer.close()
    if answer.status // 100 != 2:
        told = f"{answer.status} {answer.reason}"[:60]
        raise TransportError(f"the proxy refused to connect to {host}:{dsn.port}: {told}")


def _tls_context() -> ssl.SSLContext:
    """Return a context that trusts what the system trusts, or the file that SSL_CERT_FILE names.

    Where the peer is gone before the handshake begins, ``wrap_socket`` of Python up to 3.12 raises
    and leaves its socket open: it asks for the peer's name outside of the part that it cleans up
    after. Here the name is only missing then, and the handshake, which does clean up, fails.
    """
    context = ssl.create_default_context()
    # Not the class of the module: gevent, and truststore, have contexts with one of their own.
    base: Any = context.sslsocket_class

    class Socket(base):  # type: ignore[misc] # the base is known at run time only
        def getpeername(self) -> Any:
            try:
                return super().getpeername()
            except OSError:
                return None

    context.sslsocket_class = Socket
    return context


@contextmanager
def _ended_at(deadline: float, sock: socket.socket) -> Iterator[None]:
    """End every read and write of the block at ``deadline``.

    The timeout of a socket bounds each read: a peer that sends one byte per second would hold the
    sender for hours. A timer shuts the connection down under it instead.
    """
    # With a descriptor of its own: TLS takes that of the first over.
    twin = socket.socket(fileno=os.dup(sock.fileno()))
    timer = threading.Timer(_left(deadline), _shut, [twin])
    timer.daemon = True
    guard("no timer", timer.start)  # no thread starts at the end of the interpreter
    try:
        yield
    finally:
        timer.cancel()
        twin.close()


def _shut(sock: socket.socket) -> None:
    guard("already closed", sock.shutdown, socket.SHUT_RDWR)


def _is_silent(sock: socket.socket) -> bool:
    """Whether the other side has neither said anything nor hung up since the last answer."""
    sock.settimeout(0.0)
    try:
        sock.recv(1)
    except BlockingIOError:
        return True
    except OSError as error:
        return type(error).__name__ == "SSLWantReadError"  # ssl may be missing
    return False


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TransportError("timed out")
    return left


# -- the proxy ------------------------------------------------------------------------------------


class Proxy(NamedTuple):
    """An HTTP proxy.

    Attributes:
        host: Host name or address.
        port: TCP port.
        authorization: Value of ``Proxy-Authorization``, or None; never shown.
    """

    host: str
    port: int
    authorization: str | None

    @property
    def endpoint(self) -> str:
        """The proxy without its credentials, safe to print."""
        return f"http://{self.host}:{self.port}"

    @property
    def headers(self) -> dict[str, str]:
        """What the proxy itself is told with a request."""
        return {} if self.authorization is None else {"Proxy-Authorization": self.authorization}

    def __repr__(self) -> str:
        return f"Proxy({self.endpoint})"


def proxy_of(dsn: Dsn) -> Proxy | None:
    """Return the proxy that the environment names for ``dsn``, or None.

    ``urllib.request.getproxies`` knows ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY`` and
    ``NO_PROXY`` in either case, and the settings of the system on macOS and Windows. The collector
    of this machine is reached without one, as Go's ``net/http`` does it: a proxy could only reach
    its own machine under that name.

    Raises:
        TransportError: It names one that cannot be used; the message says what can.
    """
    host = dsn.host.lower()
    if host in ("localhost", "::1") or host.startswith("127."):
        return None
    proxies = getproxies()
    text = proxies.get(dsn.scheme) or proxies.get("all")
    if not text or proxy_bypass(f"{dsn.host}:{dsn.port}"):
        return None
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname or "", parts.port or 80
    except ValueError:
        host, port, parts = "", 0, None
    if parts is None or not host or parts.scheme != "http":
        raise TransportError(
            f"the proxy set for {dsn.scheme} cannot be used: expected http://host:port in "
            f"{dsn.scheme.upper()}_PROXY, or the collector's host in NO_PROXY"
        )
    if parts.username is None:
        return Proxy(host, port, None)
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return Proxy(host, port, f"Basic {base64.b64encode(pair.encode()).decode()}")
