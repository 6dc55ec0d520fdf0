"""Why do events not arrive? Each step of the way to the collector, tried and told."""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Callable
from email.utils import mktime_tz, parsedate_tz
from typing import NamedTuple

from toolfault._uuid7 import uuid7
from toolfault.telemetry._config import Dsn, parse_dsn
from toolfault.telemetry._event import encode, envelope, rfc3339, sdk_info
from toolfault.telemetry._http import HttpTransport, Proxy, open_socket, proxy_of
from toolfault.telemetry._retry import classify_response
from toolfault.telemetry._transport import Response

_SECONDS = 5.0
_SKEW = 60.0  # beyond it the collector replaces the times of events by its own


class Finding(NamedTuple):
    """The outcome of one step.

    Attributes:
        step: What was tried.
        ok: Whether it worked.
        text: What was found, or what to do about it.
    """

    step: str
    ok: bool
    text: str


def examine(dsn: str | None) -> list[Finding]:
    """Try the way to the collector, up to the first step that fails.

    Args:
        dsn: The DSN; None where none is set.
    """
    if dsn is None:
        hint = (
            "none is set: set TOOLFAULT_DSN=http://<key>@<host>:8321 or give --dsn; "
            "`toolfault keys create --project NAME --kind ingest` on the collector prints a key"
        )
        return [Finding("DSN", False, hint)]
    try:
        parsed = parse_dsn(dsn)
    except ValueError as error:
        return [Finding("DSN", False, str(error))]
    findings = [Finding("DSN", True, parsed.endpoint)]
    try:
        proxy = proxy_of(parsed)
    except OSError as error:
        return [*findings, Finding("proxy", False, str(error))]
    if proxy is not None:
        findings.append(Finding("proxy", True, f"{proxy.endpoint}, named by the environment"))
    steps: list[Callable[[Dsn, Proxy | None], Finding]] = [_resolve, _connect]
    if parsed.scheme == "https":
        steps.append(_handshake)
    for step in steps:
        findings.append(step(parsed, proxy))
        if not findings[-1].ok:
            return findings
    return findings + _talk(parsed)


def _resolve(dsn: Dsn, proxy: Proxy | None) -> Finding:
    host, port = _first_stop(dsn, proxy)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        hint = "check the host name in the DSN" if proxy is None else "check the proxy variables"
        return Finding("DNS", False, f"{host} has no address ({error}): {hint}")
    addresses = sorted({str(entry[4][0]) for entry in found})
    return Finding("DNS", True, ", ".join(addresses[:4]))


def _connect(dsn: Dsn, proxy: Proxy | None) -> Finding:
    host, port = _first_stop(dsn, proxy)
    try:
        socket.create_connection((host, port), _SECONDS).close()
    except OSError as error:
        who = "the collector (`toolfault serve`)" if proxy is None else "the proxy"
        hint = f"is {who} running there, and does a firewall let you through?"
        return Finding("connection", False, f"{host} port {port}: {error}; {hint}")
    return Finding("connection", True, f"port {port} answers")


def _first_stop(dsn: Dsn, proxy: Proxy | None) -> tuple[str, int]:
    return (dsn.host, dsn.port) if proxy is None else (proxy.host, proxy.port)


def _handshake(dsn: Dsn, proxy: Proxy | None) -> Finding:
    try:
        with open_socket(dsn, proxy, time.monotonic() + _SECONDS) as secure:
            assert isinstance(secure, ssl.SSLSocket)
            return Finding("TLS", True, str(secure.version()))
    except ssl.SSLCertVerificationError as error:
        hint = (
            "the certificate is not for this host, has expired, or is signed by an authority this "
            "system does not know: SSL_CERT_FILE names the file of your own one"
        )
        return Finding("TLS", False, f"{error.verify_message}; {hint}")
    except ssl.SSLError as error:
        hint = "does the collector speak plain HTTP there? Then the DSN starts with http://"
        return Finding("TLS", False, f"{error.reason or error}; {hint}")
    except OSError as error:
        return Finding("TLS", False, f"{error}; is it the collector's HTTPS port?")


def _talk(dsn: Dsn) -> list[Finding]:
    """Try the key with an empty batch, compare clocks, and have a test event acknowledged."""
    transport = HttpTransport(dsn)
    try:
        response = _post(transport, dsn, [])
        findings = [_key(response)]
        if findings[0].ok:
            findings += [_clock(response), _event(transport, dsn)]
    except OSError as error:
        findings = [Finding("key", False, f"no answer to an empty batch: {error}")]
    finally:
        transport.close()
    return findings


def _post(transport: HttpTransport, dsn: Dsn, events: list[bytes]) -> Response:
    head = {"schema_version": 1, "sent_at": rfc3339(time.time()), "sdk": sdk_info()}
    headers = {
        "Authorization": f"Bearer {dsn.key}",
        "Content-Type": "application/json",
        "Content-Encoding": "gzip",
    }
    return transport.send(envelope(head, events), headers=headers, timeout=_SECONDS)


def _key(response: Response) -> Finding:
    if classify_response(response, sent=0).action == "settle":
        return Finding("key", True, "accepted")
    advice = {
        401: "the collector does not know the key: copy it again, or make one there with "
        "`toolfault keys create --project NAME --kind ingest`",
        403: "the key may not send events: it needs the kind `ingest`",
        404: "nothing takes events here: check the path prefix of the DSN",
    }
    other = "this does not look like a collector's answer: is something in between?"
    return Finding("key", False, f"HTTP {response.status}: {advice.get(response.status, other)}")


def _clock(response: Response) -> Finding:
    parts = parsedate_tz(response.headers.get("date", ""))
    if parts is None:
        return Finding("clock", True, "the collector does not tell its time")
    skew = time.time() - mktime_tz(parts)
    if abs(skew) <= _SKEW:
        return Finding("clock", True, f"within {abs(skew):.0f} s of the collector's")
    ahead = "ahead of" if skew > 0 else "behind"
    return Finding(
        "clock", False, f"{abs(skew):.0f} s {ahead} the collector's: events get its time instead"
    )


def _event(transport: HttpTransport, dsn: Dsn) -> Finding:
    """Send a counter of nothing: it is stored and changes no number."""
    now = time.time()
    event = {
        "type": "tool_call_counts",
        "event_id": uuid7(now),
        "occurred_at": now,
        "minute": now,
        "calls": 0,
        "conversations": 0,
        "calls_squared": 0,
    }
    response = _post(transport, dsn, [encode(event)])
    decision = classify_response(response, sent=1)
    if decision.action == "settle" and not decision.rejected:
        return Finding("test event", True, "acknowledged")
    said = response.body[:200].decode("utf-8", "replace")
    return Finding("test event", False, f"HTTP {response.status}: {json.dumps(said)}")
