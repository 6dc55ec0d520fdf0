"""Where events go: ``scheme://KEY@host[:port][/prefix]``."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Dsn", "DsnError", "parse_dsn"]

_HINT = "expected a DSN such as http://KEY@127.0.0.1:8321 or https://KEY@errors.example.com/prefix"


class DsnError(ValueError):
    """A text is no DSN; the message says what is missing and never shows the text."""


class Dsn(NamedTuple):
    """A parsed DSN.

    Attributes:
        scheme: ``http`` or ``https``.
        host: Host name or address; IPv6 without brackets.
        port: TCP port; 80 or 443 where the DSN names none.
        path: Path prefix without a trailing slash, ``""`` for none.
        key: Ingest key; never shown in messages.
    """

    scheme: str
    host: str
    port: int
    path: str
    key: str

    @property
    def events_path(self) -> str:
        """Path that takes batches of events."""
        return f"{self.path}/v1/events"

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def endpoint(self) -> str:
        """The DSN without its key, safe to print."""
        return f"{self.origin}{self.path}"

    def __repr__(self) -> str:
        return f"Dsn({self.endpoint})"


def parse_dsn(text: str) -> Dsn:
    """Return the parts of a DSN.

    ``urllib.parse`` is not used: it would be the SDK's largest import for one fixed form.

    Raises:
        DsnError: The text is no DSN. It may hold the key in the wrong place.
    """
    scheme, separator, rest = text.strip().partition("://")
    if not separator or scheme not in ("http", "https"):
        raise DsnError(f"DSN has no http:// or https:// at its start; {_HINT}")
    authority, _, path = rest.partition("/")
    key, at, address = authority.rpartition("@")
    if not at or not key:
        raise DsnError(f"DSN has no key before the @; {_HINT}")
    if not key.isascii() or not key.isprintable() or " " in key or ":" in key or len(key) > 128:
        raise DsnError(f"DSN key has characters that no key has; {_HINT}")
    host, port = _host_and_port(address, 443 if scheme == "https" else 80)
    if any(mark in path for mark in "?#") or not path.isascii() or not path.isprintable():
        raise DsnError(f"DSN path has characters that a prefix cannot have; {_HINT}")
    prefix = path.strip("/")
    return Dsn(scheme, host, port, f"/{prefix}" if prefix else "", key)


def _host_and_port(address: str, default: int) -> tuple[str, int]:
    if address.startswith("["):
        host, bracket, tail = address[1:].partition("]")
        if not bracket:
            raise DsnError(f"DSN has an IPv6 address without its closing bracket; {_HINT}")
    else:
        host, colon, tail = address.partition(":")
        tail = colon + tail
    if not host or not host.isascii() or not host.isprintable() or " " in host:
        raise DsnError(f"DSN has no host after the @; {_HINT}")
    if not tail:
        return host, default
    digits = tail[1:]
    if not tail.startswith(":") or not digits.isdigit() or not 0 < int(digits) < 65536:
        raise DsnError(f"DSN has a port that is not a number from 1 to 65535; {_HINT}")
    return host, int(digits)
