"""Which machines a channel may reach: none on private networks, unless a setting names them.

Whoever may make a channel could otherwise let the server send requests to machines that only it
reaches (server-side request forgery). A name is resolved when a channel is made, and once more by
whatever library connects; what counts is the address that is connected to at that moment, so a name
that resolves to another address later (DNS rebinding) gains nothing.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final

__all__ = ["Guard", "Networks", "RefusedAddress", "check_host", "guarded", "networks_of"]

Networks = Sequence[Any]
"""Networks that are allowed though they are private."""

_NAT64: Final = IPv6Network("64:ff9b::/96")  # RFC 6052: an IPv4 address in its last 32 bits


class RefusedAddress(OSError):  # noqa: N818 - to libraries a connection that failed
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
    """What happened while connections were watched."""

    def __init__(self, allowed: Networks) -> None:
        self.allowed = allowed
        self.refused = False


@contextmanager
def guarded(allowed: Networks) -> Iterator[Guard]:
    """Refuse every connection of this thread to a private address for the length of the block.

    By an audit hook of the interpreter (PEP 578), which is told of each address before it is
    connected to, whichever library does it. Threads that the block starts are not watched:
    `channels` refuses the services that start any.
    """
    _install()
    guard = Guard(allowed)
    token = _watching.set(guard)
    try:
        yield guard
    finally:
        _watching.reset(token)


_watching: Final[ContextVar[Guard | None]] = ContextVar("toolfault_alert_guard", default=None)
_EVENTS: Final = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})


@cache
def _install() -> None:
    sys.addaudithook(_look)


def _look(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in _EVENTS:
        return
    guard = _watching.get()
    if guard is None:
        return
    address = arguments[1]
    try:
        # A path is a socket of this machine: refused like a name that was not resolved.
        _check(str(address[0]) if isinstance(address, tuple) else "", guard.allowed)
    except RefusedAddress:
        guard.refused = True
        raise


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
