"""Questions over HTTP/1.1 of the standard library, on one kept connection."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from toolfault.query._errors import (
    BadQueryError,
    KeyRefusedError,
    NotFoundError,
    ReadError,
    ServerBusyError,
    ServerGoneError,
)
from toolfault.telemetry._dsn import Dsn

__all__ = ["Connection", "Parameters"]

Parameters = Mapping[str, "str | int | float | bool | None"]


class Connection:
    """Asks one server; threads may share it, they take turns.

    Args:
        dsn: Where, and the read key.
        timeout: Seconds of silence after which the server counts as gone.
    """

    _connection: http.client.HTTPConnection | None = None

    def __init__(self, dsn: Dsn, *, timeout: float) -> None:
        self._dsn = dsn
        self._timeout = timeout
        self._lock = threading.Lock()

    def get(self, path: str, parameters: Parameters) -> Any:
        """Return the JSON answer of ``/api/v1`` + *path*.

        Raises:
            ReadError: One of its kinds; see the package.
        """
        wanted = {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in parameters.items()
            if value is not None and value != ""
        }
        target = f"{self._dsn.path}/api/v1{path}" + (f"?{urlencode(wanted)}" if wanted else "")
        with self._lock:
            status, headers, body = self._answered(target)
        if status != 200:
            raise _refusal(status, headers, body, self._dsn.endpoint)
        try:
            return json.loads(body)
        except ValueError:
            raise ReadError(
                f"{self._dsn.endpoint} answered, but not as a toolfault server does: check the"
                " address and what stands before the server.",
                status=status,
            ) from None

    def close(self) -> None:
        """Close the connection; the next question opens another."""
        with self._lock:
            self._drop()

    def __del__(self) -> None:
        # The functions of the package make a reader for one question and forget it.
        self._drop()

    def _answered(self, target: str) -> tuple[int, Mapping[str, str], bytes]:
        reused = self._connection is not None
        try:
            return self._ask(target)
        except (OSError, http.client.HTTPException) as error:
            self._drop()
            # A kept connection that the server closed meanwhile is replaced once: reading again
            # changes nothing. A server that is silent is not asked twice.
            if not reused or isinstance(error, TimeoutError):
                raise self._gone(error) from error
        try:
            return self._ask(target)
        except (OSError, http.client.HTTPException) as error:
            self._drop()
            raise self._gone(error) from error

    def _ask(self, target: str) -> tuple[int, Mapping[str, str], bytes]:
        if self._connection is None:
            self._connection = _connection(self._dsn, self._timeout)
        headers = {"Authorization": f"Bearer {self._dsn.key}", "Accept": "application/json"}
        self._connection.request("GET", target, headers=headers)
        answer = self._connection.getresponse()
        body = answer.read()
        found = {name.lower(): value for name, value in answer.getheaders()}
        if answer.will_close:
            self._drop()
        return answer.status, found, body

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _gone(self, error: Exception) -> ServerGoneError:
        what = (
            f"did not answer within {self._timeout:g} seconds"
            if isinstance(error, TimeoutError)
            else f"cannot be read ({error or type(error).__name__})"
        )
        return ServerGoneError(f"{self._dsn.endpoint} {what}: is the server running there?")


def _connection(dsn: Dsn, timeout: float) -> http.client.HTTPConnection:
    if dsn.scheme == "http":
        return http.client.HTTPConnection(dsn.host, dsn.port, timeout=timeout)
    from toolfault.telemetry._tls import tls_context

    context = tls_context()
    return http.client.HTTPSConnection(dsn.host, dsn.port, timeout=timeout, context=context)


def _refusal(status: int, headers: Mapping[str, str], body: bytes, endpoint: str) -> ReadError:
    """Return the error that a problem document (RFC 9457), or any other answer, means."""
    problem = _problem(body)
    code = str(problem.get("code") or "")
    detail = str(problem.get("detail") or f"{endpoint} answered with status {status}.")
    if status in {401, 403}:
        return KeyRefusedError(
            f"{detail} Reading needs a read key (toolfault keys create --kind read) in the"
            " address: http://READ_KEY@host:port.",
            status=status,
            code=code,
        )
    if status == 404:
        return NotFoundError(detail, status=status, code=code)
    if status == 422:
        column, suggestion = problem.get("column"), problem.get("suggestion")
        hint = f" Did you mean {suggestion!r}?" if suggestion else ""
        place = f" (column {column} of the query)" if column else ""
        return BadQueryError(
            f"{detail}{hint}{place}",
            status=status,
            code=code,
            column=column if isinstance(column, int) else None,
            suggestion=suggestion if isinstance(suggestion, str) else None,
        )
    if status in {429, 503}:
        after = headers.get("retry-after", "")
        wait = float(after) if after.isascii() and after.isdigit() else None
        return ServerBusyError(detail, status=status, code=code, retry_after=wait)
    return ReadError(detail, status=status, code=code)


def _problem(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
