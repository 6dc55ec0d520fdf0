"""What can go wrong while reading; every text says what to do and none contains the key."""

from __future__ import annotations

from toolfault.errors import ToolfaultError

__all__ = [
    "BadQueryError",
    "KeyRefusedError",
    "NotFoundError",
    "ReadError",
    "ServerBusyError",
    "ServerGoneError",
]


class ReadError(ToolfaultError):
    """The server could not be read.

    Attributes:
        status: HTTP status of the answer; None where there was none.
        code: The server's word for it, such as ``bad_query``; "" where there was none.
    """

    def __init__(self, message: str, *, status: int | None = None, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class KeyRefusedError(ReadError):
    """The key is unknown, revoked, or no read key."""


class BadQueryError(ReadError, ValueError):
    """The server does not understand the query or a parameter.

    Attributes:
        column: Position in the query text, from 1; None where the query text is not at fault.
        suggestion: The nearest valid word, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str = "",
        column: int | None = None,
        suggestion: str | None = None,
    ) -> None:
        super().__init__(message, status=status, code=code)
        self.column = column
        self.suggestion = suggestion


class NotFoundError(ReadError, LookupError):
    """There is nothing of that name in the project of the key."""


class ServerGoneError(ReadError, ConnectionError):
    """Nobody answers at the address, or the answer broke off."""


class ServerBusyError(ReadError):
    """The answer takes too long, or too much is asked at once.

    Attributes:
        retry_after: Seconds after which the server wants to be asked again; None if unsaid.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, status=status, code=code)
        self.retry_after = retry_after
