"""What a channel may reach: no private network, unless a setting names it, and no file.

Whoever may make a channel could otherwise let the server send requests to machines that only it
reaches (server-side request forgery). A name is resolved when a channel is made, and once more by
whatever library connects; what counts is the address that is connected to at that moment, so a name
that resolves to another address later (DNS rebinding) gains nothing.

Addresses of some services may name files, which the server would read and send, or write. What is
read while a message is sent is code and its data, of Python and of installed packages, alone.
"""

from __future__ import annotations

import mimetypes
import os
import socket
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any, Final
from zoneinfo import TZPATH

__all__ = [
    "Guard",
    "Networks",
    "Refused",
    "RefusedAddress",
    "RefusedFile",
    "check_host",
    "guarded",
    "networks_of",
]

Networks = Sequence[Any]
"""Networks that are allowed though they are private."""

_NAT64: Final = IPv6Network("64:ff9b::/96")  # RFC 6052: an IPv4 address in its last 32 bits


class Refused(OSError):  # noqa: N818 - to libraries a connection or a file that failed
    """A channel asked for what no channel may have; the text says so to people."""


class RefusedFile(Refused):
    """The address makes the server read or write a file of its own machine."""

    def __init__(self) -> None:
        super().__init__(
            "Leave out what names a file, such as template= or a key file (keyfile=, pgppub=,"
            " pgpprv=): it would be read from, or written to, the server's own machine."
        )


class RefusedAddress(Refused):
    """The address is on a private network that no setting allows."""

    def __init__(self) -> None:
        super().__init__(
            "Its address is on a private network. Allow it with TOOLFAULT_ALERT_NETWORKS if that"
            " is meant."
        )


def networks_of(text: str) -> Networks:
    """Return the networks that a setting names, separated by commas.

    Raises:
        ValueError: One of them is no network.
    """
    return [ip_network(part.strip(), strict=False) for part in text.split(",") if part.strip()]


def check_host(host: str, allowed: Networks) -> None:
    """Refuse a *host* whose name, or any of whose addresses, is private; a first look only.

    A name that cannot be resolved now passes: it is looked at again by who connects.

    Raises:
        RefusedAddress: It is on a private network.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return
    for *_, address in found:
        _check(str(address[0]), allowed)


class Guard:
    """What happened while connections and files were watched."""

    def __init__(self, allowed: Networks) -> None:
        self.allowed = allowed
        self.refused: Refused | None = None


@contextmanager
def guarded(allowed: Networks) -> Iterator[Guard]:
    """Refuse this thread private addresses, and files of its machine, for the length of the block.

    By an audit hook of the interpreter (PEP 578), which is told of each address before it is
    connected to, and of each file before it is opened, whichever library does it. Threads that the
    block starts are not watched: `channels` refuses the services that start any.
    """
    _install()
    guard = Guard(allowed)
    token = _watching.set(guard)
    try:
        yield guard
    finally:
        _watching.reset(token)


_watching: Final[ContextVar[Guard | None]] = ContextVar("toolfault_alert_guard", default=None)
_EVENTS: Final = frozenset({"open", "socket.connect", "socket.sendto", "socket.sendmsg"})
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@cache
def _install() -> None:
    _code()  # now: the hook itself cannot look for it
    mimetypes.init()
    sys.addaudithook(_look)


def _look(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in _EVENTS:
        return
    guard = _watching.get()
    if guard is None:
        return
    try:
        if event == "open":
            _check_file(arguments[0], arguments[2])
        else:
            address = arguments[1]
            # A path is a socket of this machine: refused like a name that was not resolved.
            _check(str(address[0]) if isinstance(address, tuple) else "", guard.allowed)
    except Refused as refused:
        guard.refused = refused
        raise


def _check_file(path: object, flags: int) -> None:
    if isinstance(path, int):
        return  # opened already
    real = os.path.realpath(os.fsdecode(path) if isinstance(path, bytes) else str(path))
    inside = any(map(Path(real).is_relative_to, _code()))
    if not inside or (flags & _WRITING and "__pycache__" not in real):
        raise RefusedFile


@cache
def _code() -> frozenset[str]:
    """Return where code lies that is loaded when it is needed, and the rules of time zones."""
    paths = sysconfig.get_paths()
    of_python = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    specs = [find_spec(name) for name in ("apprise", "toolfault_dashboard", "toolfault_collector")]
    packages = [place for each in specs if each for place in each.submodule_search_locations or ()]
    return frozenset(map(os.path.realpath, (*of_python, *packages, *TZPATH)))


def _check(text: str, allowed: Networks) -> None:
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        raise RefusedAddress from None
    for each in _all_of(address):
        if any(each in network for network in allowed if network.version == each.version):
            continue
        if not each.is_global or each.is_multicast:
            raise RefusedAddress


def _all_of(address: IPv4Address | IPv6Address) -> list[IPv4Address | IPv6Address]:
    """Return the addresses that *address* leads to: itself, or the one that it carries."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    carried: list[IPv4Address | IPv6Address] = [address]
    if address.sixtofour is not None:
        carried.append(address.sixtofour)
    if address.teredo is not None:
        carried += address.teredo
    if address in _NAT64:
        carried.append(IPv4Address(int(address) & 0xFFFF_FFFF))
    return carried
