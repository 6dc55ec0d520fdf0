"""TLS to the collector: whom it trusts, and that no handshake leaves a socket open."""

from __future__ import annotations

import contextlib
import gc
import logging
import socket
import struct
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cases import long_cases
from tests.sdk.telemetry.collector import Server
from tests.sdk.telemetry.conftest import HOST, QUICK, Doctor, MakeClient, a_call

import toolfault

Peer = Callable[[socket.socket], None]


def test_tls_without_a_proxy(
    secure: Server,
    make_client: MakeClient,
    doctor: Doctor,
    monkeypatch: pytest.MonkeyPatch,
    certificate: Path,
) -> None:
    """An authority of the user's own is trusted where ``SSL_CERT_FILE`` names it, else not."""
    dsn = f"https://KEY@127.0.0.1:{secure.server_port}"
    wary = make_client(dsn)
    wary.on_call(a_call())
    assert not wary.flush(0.3)
    assert wary.stats().pending == 1
    assert secure.calls() == 0
    code, said = doctor(dsn)
    assert code == 1
    assert said.splitlines()[-1].startswith("FAIL  TLS")
    assert "SSL_CERT_FILE" in said
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    client = make_client(dsn)
    client.on_call(a_call())
    assert client.flush(20)
    assert client.stats().acked == 1


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


@contextmanager
def told(heard: threading.Event) -> Iterator[None]:
    """Set ``heard`` when the client says that an attempt has failed."""
    logger, handler = logging.getLogger("toolfault"), logging.Handler()
    handler.emit = lambda record: heard.set()  # type: ignore[method-assign]
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


Tries = Callable[[str, MakeClient], None]


def sends(dsn: str, make_client: MakeClient) -> None:
    """Send a batch, and give up."""
    client = make_client(dsn, limits=QUICK.with_(request_seconds=0.2))
    failed = threading.Event()
    with told(failed):
        client.on_call(a_call())
        assert failed.wait(60)
    assert not client.flush(0.1)
    assert not toolfault.close(0.2)


@pytest.mark.parametrize(
    ("behave", "tries"),
    [
        (close, sends),
        pytest.param(reset, sends, marks=pytest.mark.long),
        pytest.param(reset_after_a_word, sends, marks=pytest.mark.long),
        (mute, sends),
        (plain, sends),
    ],
)
def test_a_handshake_that_fails_leaves_nothing_open(
    behave: Peer, tries: Tries, make_client: MakeClient
) -> None:
    """Whatever the other side does instead of a handshake, the socket is closed."""
    with running(behave) as port, nothing_left_open():
        tries(f"https://KEY@127.0.0.1:{port}", make_client)


@pytest.mark.parametrize(
    "behave",
    [
        no_tunnel,
        mute,
        after_a_tunnel(plain),
        *long_cases(reset, after_a_tunnel(reset)),
    ],
)
def test_a_tunnel_that_fails_leaves_nothing_open(
    behave: Peer, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy that does not connect through, or to nothing that speaks TLS, costs no socket."""
    with running(behave) as port, nothing_left_open():
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        sends(f"https://KEY@{HOST}", make_client)


def test_a_certificate_that_is_refused_leaves_nothing_open(
    secure: Server, make_client: MakeClient, doctor: Doctor
) -> None:
    """Neither sending, nor asking, nor the doctor keeps a socket of a collector it distrusts."""
    dsn = f"https://KEY@127.0.0.1:{secure.server_port}"
    with nothing_left_open():
        sends(dsn, make_client)
        assert doctor(dsn)[0] == 1
