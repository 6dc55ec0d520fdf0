"""TLS to the collector: whom it trusts, and that no handshake leaves a socket open."""

from __future__ import annotations

import contextlib
import gc
import select
import socket
import struct
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.sdk.telemetry.collector import Server
from tests.sdk.telemetry.conftest import HOST, MakeClient, a_call

from toolfault.query import ReadError
from toolfault.query._http import Connection
from toolfault.telemetry._doctor import examine
from toolfault.telemetry._dsn import Dsn, parse_dsn
from toolfault.telemetry._http import HttpTransport, open_socket
from toolfault.telemetry._proxy import Proxy
from toolfault.telemetry._tls import tls_context

Peer = Callable[[socket.socket], None]


def test_tls_without_a_proxy(
    secure: Server, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, certificate: Path
) -> None:
    """An authority of the user's own is trusted where ``SSL_CERT_FILE`` names it, else not."""
    dsn = f"https://KEY@127.0.0.1:{secure.server_port}"
    wary = make_client(dsn)
    wary.on_call(a_call())
    assert not wary.flush(0.5)
    assert wary.stats().pending == 1
    assert not wary.close(0.1)
    told = examine(dsn)[-1]
    assert (told.step, told.ok) == ("TLS", False)
    assert "SSL_CERT_FILE" in told.text
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    client = make_client(dsn)
    client.on_call(a_call())
    assert client.flush(20)
    assert secure.calls() == 1


def close(peer: socket.socket) -> None:
    """Hang up."""


def reset(peer: socket.socket) -> None:
    """Hang up in the rude way."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def reset_after_a_word(peer: socket.socket) -> None:
    """Hear the client's hello, then hang up in the rude way."""
    peer.recv(1)
    reset(peer)


def mute(peer: socket.socket) -> None:
    """Hear everything, say nothing."""
    while peer.recv(65_536):
        pass


def plain(peer: socket.socket) -> None:
    """Take the hello for HTTP."""
    peer.recv(65_536)
    peer.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def after_a_tunnel(behave: Peer) -> Peer:
    """Be a proxy that connects through, to something that behaves so."""

    def tunnel(peer: socket.socket) -> None:
        while not peer.recv(65_536).endswith(b"\r\n\r\n"):
            pass
        peer.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        behave(peer)

    return tunnel


def no_tunnel(peer: socket.socket) -> None:
    """Be a proxy that does not connect through."""
    peer.recv(65_536)
    peer.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")


@contextmanager
def running(behave: Peer) -> Iterator[int]:
    """A port that behaves so to every connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                peer = listener.accept()[0]
                with peer, contextlib.suppress(OSError):
                    behave(peer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        listener.close()


@contextmanager
def nothing_left_open() -> Iterator[None]:
    """Fail where a socket is thrown away that nobody closed."""
    gc.collect()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield
        gc.collect()
    assert [str(warning.message) for warning in said] == []


def sends(dsn: Dsn) -> None:
    """Send a batch, and give up."""
    transport = HttpTransport(dsn)
    for _ in range(2):
        with pytest.raises(OSError):
            transport.send(b"", headers={}, timeout=0.2)
    transport.close()


def asks(dsn: Dsn) -> None:
    """Ask for something, as scripts do."""
    connection = Connection(dsn, timeout=0.2)
    with pytest.raises(ReadError):
        connection.get("/failures", {})


@pytest.mark.parametrize("tries", [sends, asks])
@pytest.mark.parametrize("behave", [close, reset, reset_after_a_word, mute, plain])
def test_a_handshake_that_fails_leaves_nothing_open(
    behave: Peer, tries: Callable[[Dsn], None]
) -> None:
    """Whatever the other side does instead of a handshake, the socket is closed."""
    with running(behave) as port, nothing_left_open():
        tries(parse_dsn(f"https://KEY@127.0.0.1:{port}"))


@pytest.mark.parametrize(
    "behave", [no_tunnel, close, reset, mute, *map(after_a_tunnel, (close, reset, mute, plain))]
)
def test_a_tunnel_that_fails_leaves_nothing_open(behave: Peer) -> None:
    """A proxy that does not connect through, or to nothing that speaks TLS, costs no socket."""
    dsn = parse_dsn(f"https://KEY@{HOST}")
    with running(behave) as port, nothing_left_open(), pytest.raises(OSError):
        open_socket(dsn, Proxy("127.0.0.1", port, None), time.monotonic() + 0.2)


def test_a_certificate_that_is_refused_leaves_nothing_open(secure: Server) -> None:
    """Neither sending, nor asking, nor the doctor keeps a socket of a collector it distrusts."""
    dsn = f"https://KEY@127.0.0.1:{secure.server_port}"
    with nothing_left_open():
        sends(parse_dsn(dsn))
        asks(parse_dsn(dsn))
        assert not examine(dsn)[-1].ok


def test_a_peer_that_is_gone_before_the_handshake_leaves_nothing_open() -> None:
    """Python up to 3.12 keeps the socket open that it secures for a peer that has just gone."""
    with running(reset) as port, nothing_left_open():
        sock = socket.create_connection(("127.0.0.1", port))
        gone = select.poll()
        gone.register(sock, select.POLLHUP)
        assert gone.poll(10_000)
        with pytest.raises(OSError):
            tls_context().wrap_socket(sock, server_hostname=HOST)
        sock.close()
