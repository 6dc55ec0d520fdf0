"""TLS to a collector, on sockets that are closed whatever becomes of the handshake."""

from __future__ import annotations

import ssl
from typing import Any

__all__ = ["tls_context"]


def tls_context() -> ssl.SSLContext:
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
