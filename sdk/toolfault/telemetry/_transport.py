"""The seam between the sender and the network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol


class Response(NamedTuple):
    """An answer.

    Attributes:
        status: HTTP status code.
        headers: Header values by lower-case name.
        body: The first MiB of the body.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class TransportError(OSError):
    """A request got no readable answer: refused, reset, timed out, or not HTTP."""


class Transport(Protocol):
    """What carries batches; ``init(transport=...)`` takes any object of this form."""

    def send(self, body: bytes, *, headers: Mapping[str, str], timeout: float) -> Response:
        """Send one batch and return the answer.

        Args:
            body: Encoded request body.
            headers: Request headers, authorisation included.
            timeout: Seconds for the whole request.

        Raises:
            OSError: There was no answer.
        """

    def close(self) -> None:
        """Let go of connections."""
