"""The header block of a request, checked before anything looks into it."""

from __future__ import annotations

import re
from typing import Final

from starlette.types import Scope

from toolfault_collector.http.problems import Problem

__all__ = ["check_headers"]

# Keys, cookies and trace headers together stay far below; what is larger was made to be.
MAX_HEADER_BYTES: Final = 16_384
# Name, IPv4 or bracketed IPv6 address, and a port (RFC 9112, section 3.2; RFC 3986, section
# 3.2.2). A host with "/", "?" or "@" would make every URL that is built from it another one.
_HOST: Final = re.compile(rb"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")


def check_headers(scope: Scope) -> None:
    """Refuse a request whose headers are too large or contradict themselves, or whose Host is none.

    Raises:
        Problem: 431 or 400.
    """
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    if sum(len(name) + len(value) for name, value in headers) > MAX_HEADER_BYTES:
        detail = f"the headers are over the limit of {MAX_HEADER_BYTES} bytes"
        raise Problem(431, "headers_too_large", detail, {"Connection": "close"})
    names = [name for name, _ in headers]
    if b"transfer-encoding" in names and b"content-length" in names:
        # A proxy may believe the other one and see two requests here (RFC 9112, section 6.3).
        detail = "send Content-Length or Transfer-Encoding, not both"
        raise Problem(400, "two_lengths", detail, {"Connection": "close"})
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) > 1 or (hosts and _HOST.fullmatch(hosts[0]) is None):
        raise Problem(400, "bad_host", "the Host header names no host", {"Connection": "close"})
