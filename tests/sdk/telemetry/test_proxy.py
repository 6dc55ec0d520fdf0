"""Delivery through a proxy: real sockets, a real proxy, a real certificate."""

from __future__ import annotations

import base64
import http.server
import socket
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.sdk.telemetry.collector import Server
from tests.sdk.telemetry.conftest import HOST, QUICK, Doctor, MakeClient, a_call, conserved

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


class ProxyHandler(http.server.BaseHTTPRequestHandler):
    """Forwards requests, and tunnels connections, for ``HOST`` to this machine."""

    protocol_version = "HTTP/1.1"
    server: Proxy

    def _noted(self, what: str) -> bool:
        """Note a request; one without the password is refused."""
        self.server.seen.append(what)
        wanted = self.server.password
        if wanted and self.headers.get("Proxy-Authorization") != wanted:
            self.send_error(407)
            return False
        return True

    def do_POST(self) -> None:
        """Forward a request whose line names the whole address."""
        target = urlsplit(self.path)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self._noted(f"POST {target.scheme}://{target.netloc}"):
            return
        hop = "Proxy-Authorization"
        headers = {name: value for name, value in self.headers.items() if name != hop}
        upstream = HTTPConnection("127.0.0.1", target.port or 80)
        upstream.request("POST", target.path, body, headers)
        answer = upstream.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        upstream.close()

    def do_CONNECT(self) -> None:
        """Connect through, and carry bytes both ways until one side is done."""
        if not self._noted(f"CONNECT {self.path}"):
            return
        if self.server.behaviour == "silent":
            self.server.released.wait()
            return
        port = int(self.path.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as upstream:
            self.send_response(200, "Connection established")
            self.end_headers()
            back = threading.Thread(target=_carry, args=(upstream, self.connection))
            back.start()
            _carry(self.connection, upstream)
            back.join()
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


def _carry(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65_536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return


class Proxy(http.server.ThreadingHTTPServer):
    """What it was asked for, and how it behaves."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ProxyHandler)
        self.seen: list[str] = []
        self.password = ""
        self.behaviour = ""
        self.released = threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        """Connections that end in the middle are part of these tests."""


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A running proxy that the environment names for everything."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    server = Proxy()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{server.server_port}")
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


def named(collector: Server, scheme: str = "http") -> str:
    """A DSN under the name that only the proxy knows."""
    return f"{scheme}://KEY@{HOST}:{collector.server_port}"


def test_events_go_through_the_proxy(
    proxy: Proxy, collector: Server, make_client: MakeClient
) -> None:
    """``HTTP_PROXY`` is used, and everything is stored once."""
    client = make_client(named(collector))
    for _ in range(3):
        client.on_call(a_call())
    assert client.flush(20)
    assert collector.calls() == 3
    assert set(proxy.seen) == {f"POST http://{HOST}:{collector.server_port}"}
    assert collector.requests[0][0]["Host"] == f"{HOST}:{collector.server_port}"
    conserved(client)


def test_password_of_the_proxy(
    proxy: Proxy, collector: Server, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """User and password of the variable are sent to the proxy; until they are right events wait."""
    proxy.password = f"Basic {base64.b64encode(b'ann:a b').decode()}"
    client = make_client(named(collector))
    client.on_call(a_call())
    assert not client.flush(0.2)
    assert (client.stats().pending, client.stats().dropped) == (1, {})
    monkeypatch.setenv("HTTP_PROXY", f"http://ann:a%20b@127.0.0.1:{proxy.server_port}")
    assert client.flush(20)
    assert collector.calls() == 1


def test_tls_through_the_proxy(
    proxy: Proxy,
    secure: Server,
    make_client: MakeClient,
    doctor: Doctor,
    monkeypatch: pytest.MonkeyPatch,
    certificate: Path,
) -> None:
    """``HTTPS_PROXY`` tunnels: the proxy sees an address and no key, TLS ends at the collector."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    client = make_client(named(secure, "https"))
    for _ in range(3):
        client.on_call(a_call())
        assert client.flush(20)
    assert secure.calls() == 3
    assert proxy.seen == [f"CONNECT {HOST}:{secure.server_port}"], "one connection is kept"
    client.close()
    code, said = doctor(named(secure, "https"))
    assert code == 0, said
    assert "ok    proxy       http://127.0.0.1" in said


@pytest.mark.parametrize("behaviour", ["silent", "refusing"])
def test_a_proxy_that_does_not_connect(
    behaviour: str, proxy: Proxy, secure: Server, make_client: MakeClient
) -> None:
    """A proxy that never answers, or refuses, costs one request's time; events wait."""
    proxy.behaviour, proxy.password = behaviour, "x" if behaviour == "refusing" else ""
    client = make_client(named(secure, "https"), limits=QUICK.with_(request_seconds=0.2))
    client.on_call(a_call())
    assert not client.flush(0.3)
    assert client.stats().pending == 1
    conserved(client)


@pytest.mark.parametrize(
    ("dsn", "variables", "expected"),
    [
        ("http://K@errors.example.com", {}, None),
        ("http://K@errors.example.com", {"http_proxy": "proxy:3128"}, "http://proxy:3128"),
        ("http://K@errors.example.com", {"HTTPS_PROXY": "http://proxy"}, None),
        ("https://K@errors.example.com", {"HTTPS_PROXY": "http://proxy"}, "http://proxy:80"),
        ("https://K@errors.example.com", {"ALL_PROXY": "http://p:1/"}, "http://p:1"),
        ("http://K@errors.example.com", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "*"}, None),
        ("http://K@a.example.com", {"HTTP_PROXY": "p:1", "NO_PROXY": "example.com"}, None),
        ("http://K@127.0.0.1:8321", {"HTTP_PROXY": "http://p:1"}, None),
        ("http://K@localhost", {"HTTP_PROXY": "http://p:1"}, None),
        ("http://K@[::1]", {"HTTP_PROXY": "http://p:1"}, None),
    ],
)
def test_which_proxy(
    dsn: str,
    variables: dict[str, str],
    expected: str | None,
    doctor: Doctor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The usual variables in either case count; this machine is always reached directly."""
    no_network(monkeypatch)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    said = [line.split() for line in doctor(dsn)[1].splitlines()]
    assert [line[2] for line in said if line[1] == "proxy"] == (
        [f"{expected},"] if expected else []
    )


def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reach nothing, and know of no proxy."""

    def unreachable(*_: object, **__: object) -> None:
        raise OSError("no network in this test")

    for function in ("getaddrinfo", "create_connection"):
        monkeypatch.setattr(f"socket.{function}", unreachable)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    "text", ["socks5://u:secret@p:1", "https://u:secret@p", "http://u:secret@p:x"]
)
def test_a_proxy_that_cannot_be_used(
    text: str, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said what can be used, without the password."""
    no_network(monkeypatch)
    monkeypatch.setenv("HTTP_PROXY", text)
    code, said = doctor("http://K@errors.example.com")
    assert code == 1
    assert said.splitlines()[-1].startswith("FAIL  proxy")
    assert "expected http://host:port in HTTP_PROXY" in said
    assert "secret" not in said
