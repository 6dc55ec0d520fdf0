"""The way to the collector where the network has a proxy on it.

Which proxy is asked of ``urllib.request.getproxies``: ``HTTP_PROXY``, ``HTTPS_PROXY``,
``ALL_PROXY`` and ``NO_PROXY`` in either case, and the settings of the system on macOS and Windows.
The collector of the own machine is reached without one, as Go's ``net/http`` does it: a proxy could
only reach its own machine under that name.
"""

from __future__ import annotations

import base64
import os
import socket
import sys
import time

from toolfault.telemetry._dsn import Dsn
from toolfault.telemetry._record import Record
from toolfault.telemetry._transport import TransportError

__all__ = ["Proxy", "proxy_of", "tunnel"]

_LONGEST_ANSWER = 65_536


class Proxy(Record):
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

    def __repr__(self) -> str:
        return f"Proxy({self.endpoint})"


def proxy_of(dsn: Dsn) -> Proxy | None:
    """Return the proxy that the environment names for ``dsn``, or None.

    Raises:
        TransportError: It names one that cannot be used; the message says what can.
    """
    if _is_here(dsn.host) or not _may_be_set():
        return None
    # Ten milliseconds, paid by the sender thread, and only where some proxy is set.
    from urllib.parse import unquote, urlsplit
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    text = proxies.get(dsn.scheme) or proxies.get("all")
    if not text or proxy_bypass(f"{dsn.host}:{dsn.port}"):
        return None
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        host, port, parts = None, 0, None
    if parts is None or not host or parts.scheme != "http":
        raise TransportError(
            f"the proxy set for {dsn.scheme} cannot be used: expected http://host:port in "
            f"{dsn.scheme.upper()}_PROXY, or the collector's host in NO_PROXY"
        )
    authorization = None
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return Proxy(host, port, authorization)


def _may_be_set() -> bool:
    """Whether asking is worth the import."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(name.lower().endswith("_proxy") for name in os.environ)


def _is_here(host: str) -> bool:
    return host.lower() == "localhost" or host == "::1" or host.startswith("127.")


def tunnel(sock: socket.socket, dsn: Dsn, proxy: Proxy, deadline: float) -> None:
    """Have the proxy behind ``sock`` connect through to the collector (RFC 9110, 9.3.6).

    ``http.client`` can do it too, but bounds each read only: a proxy that sends a byte per second
    would hold the sender for hours.

    Args:
        sock: Connected to the proxy.
        dsn: Where to.
        proxy: The proxy.
        deadline: By the monotonic clock.

    Raises:
        OSError: The proxy refused, or did not answer in time.
    """
    host = f"[{dsn.host}]" if ":" in dsn.host else dsn.host
    lines = [f"CONNECT {host}:{dsn.port} HTTP/1.1", f"Host: {host}:{dsn.port}"]
    if proxy.authorization is not None:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    sock.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        left = deadline - time.monotonic()
        if left <= 0 or len(answer) > _LONGEST_ANSWER:
            raise TransportError("the proxy did not answer in time")
        sock.settimeout(left)
        byte = sock.recv(1)  # one by one: what follows the answer is the collector's
        if not byte:
            raise TransportError("the proxy closed the connection")
        answer += byte
    status = answer.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    if len(status) < 2 or not status[1].startswith("2"):
        told = " ".join(status[1:3])[:60]
        raise TransportError(f"the proxy refused to connect to {host}:{dsn.port}: {told}")
