"""Read what a toolfault server knows: the same query text and the same rows as on its pages.

    from toolfault_dashboard import client

    for row in client.failures("tool:http_request code:wrong_type since:7d"):
        print(row["occurred_at"], row["field"], row["text"])
    table = client.frequency("code", "since:7d").to_frame()

Where to read is an address with a *read* key, ``http://READ_KEY@127.0.0.1:8321``: the argument
``dsn``, or ``TOOLFAULT_READ_DSN``. Nothing is asked before the first row is wanted, and lists come
page by page. This module needs neither a database nor the server's settings.

Errors::

    AddressError (a ValueError)  the address to read from is missing or wrong
    ReadError
      KeyRefusedError   no read key, or of another kind
      BadQueryError     the query text cannot be read: column and suggestion say where and what
      NotFoundError     no change, trial or project of that name
      ServerGoneError   nobody answers there, or the answer broke off
      ServerBusyError   the server could not answer in time; ``retry_after`` seconds may help
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "AddressError",
    "BadQueryError",
    "Comparison",
    "KeyRefusedError",
    "NotFoundError",
    "ReadError",
    "Reader",
    "Row",
    "Rows",
    "ServerBusyError",
    "ServerGoneError",
    "chains",
    "changes",
    "compare",
    "experiment",
    "failures",
    "fix_next",
    "frequency",
    "messages",
    "summary",
]


class AddressError(ValueError):
    """There is no address to read from; the text never shows it, since it holds the key."""


class ReadError(Exception):
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


Row = dict[str, Any]
"""One row, as the API names its columns. Times are RFC 3339 text in UTC, None where unknown; a
rate is ``{"count", "n", "value", "low", "high"}``."""

Page = tuple[Sequence[Row], "str | None", Mapping[str, Any]]
"""Rows, the cursor of the next page, and what the answer says beside its rows."""


class Rows:
    """The rows of one question. Iterating asks the server, page by page, each time anew.

    Args:
        fetch: Returns the page of a cursor; None is the first.
    """

    def __init__(self, fetch: Callable[[str | None], Page]) -> None:
        self._fetch = fetch

    def __iter__(self) -> Iterator[Row]:
        cursor: str | None = None
        while True:
            rows, cursor, _ = self._fetch(cursor)
            yield from rows
            if cursor is None:
                return

    @property
    def about(self) -> Mapping[str, Any]:
        """What the answer says beside its rows: the total of a list, the calls of a table."""
        return self._fetch(None)[2]

    def to_frame(self) -> DataFrame:
        """Return all rows as a pandas frame: times as UTC, each part of a rate as a column."""
        return frame_of(list(self))


def frame_of(rows: Sequence[Row]) -> DataFrame:
    """Return *rows* as a frame; columns are named as in an export of the same table."""
    import pandas

    frame = pandas.DataFrame([_flat(row) for row in rows])
    for name in frame.columns:
        if name.endswith("_at"):
            frame[name] = pandas.to_datetime(frame[name], utc=True, format="ISO8601")
    return frame


def _flat(row: Row) -> Row:
    flat: Row = {}
    for name, value in row.items():
        if isinstance(value, dict) and value.keys() >= {"low", "high"}:
            if "value" in value:
                flat[name] = value["value"]
            flat |= {
                f"{name}_{part}": value[part] for part in ("low", "high", "n") if part in value
            }
        else:
            flat[name] = value
    return flat


class Comparison:
    """One comparison; iterating gives its metrics.

    Attributes:
        verdict: ``improved``, ``worse``, ``no detectable change`` or ``not enough data``: of the
            failure rate.
        metrics: Before, after, difference with interval, verdict: one row for each metric.
        codes: The same for each code, false discoveries controlled.
        control: The failure rate of the tools that the change did not touch; None without any.
        answer: The whole answer of the server.
    """

    def __init__(self, answer: Mapping[str, Any]) -> None:
        effect = answer["effect"]
        self.answer = answer
        self.verdict: str = effect["verdict"]
        self.metrics: Sequence[Row] = effect["metrics"]
        self.codes: Sequence[Row] = answer["codes"]
        self.control: Row | None = answer["control"]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.metrics)

    def __repr__(self) -> str:
        return f"Comparison({self.verdict!r})"

    def to_frame(self) -> DataFrame:
        """Return the metrics as a pandas frame."""
        return frame_of(self.metrics)


Parameters = Mapping[str, "str | int | float | bool | None"]


@dataclass(frozen=True, slots=True, repr=False)
class _Address:
    """Where to read, and the read key."""

    scheme: str
    host: str
    port: int | None
    path: str
    key: str

    @property
    def endpoint(self) -> str:
        """The address without its key, safe to print."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = f":{self.port}" if self.port is not None else ""
        return f"{self.scheme}://{host}{port}{self.path}"


def _address(text: str) -> _Address:
    """Return the parts of ``scheme://KEY@host[:port][/prefix]``.

    Raises:
        AddressError: It is none; the message never shows it.
    """
    hint = "write http://READ_KEY@host:port, or https://READ_KEY@host/prefix"
    try:
        parts = urlsplit(text.strip())
        host, port, key = parts.hostname, parts.port, parts.username
    except ValueError:
        raise AddressError(
            f"the port or host of the address to read from is wrong; {hint}"
        ) from None
    if parts.scheme not in ("http", "https") or not host:
        raise AddressError(f"the address to read from has no http:// and host; {hint}")
    if not key or parts.password is not None or not key.isascii() or not key.isprintable():
        raise AddressError(f"the address to read from has no read key before the @; {hint}")
    return _Address(parts.scheme, host, port, parts.path.rstrip("/"), key)


class _Connection:
    """Asks one server; threads may share it, they take turns.

    Args:
        dsn: Where, and the read key.
        timeout: Seconds of silence after which the server counts as gone.
    """

    _connection: http.client.HTTPConnection | None = None

    def __init__(self, dsn: _Address, *, timeout: float) -> None:
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


def _connection(dsn: _Address, timeout: float) -> http.client.HTTPConnection:
    if dsn.scheme == "http":
        return http.client.HTTPConnection(dsn.host, dsn.port, timeout=timeout)
    context = ssl.create_default_context()
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


ENVIRONMENT = "TOOLFAULT_READ_DSN"

PAGE = 500
"""Rows of a page, the most that a server gives at once."""

MOST_GROUPS = 10_000
"""Rows of a table of groups, the most that a server gives."""


class Reader:
    """Reads one project of one server, the one its key belongs to.

    Args:
        dsn: ``http://READ_KEY@host:port``; by default what ``TOOLFAULT_READ_DSN`` says.
        timeout: Seconds of silence after which the server counts as gone.

    Raises:
        AddressError: There is no such address; the text never shows it, since it holds the key.
    """

    def __init__(self, dsn: str | None = None, *, timeout: float = 60.0) -> None:
        text = dsn if dsn is not None else os.environ.get(ENVIRONMENT, "")
        if not text:
            raise AddressError(
                f"Say where to read: dsn='http://READ_KEY@127.0.0.1:8321', or {ENVIRONMENT} in the"
                " environment. `toolfault keys create --kind read` makes a key."
            )
        parsed = _address(text)
        self._connection = _Connection(parsed, timeout=timeout)
        self._address = parsed.endpoint

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Reader({self._address!r})"

    def close(self) -> None:
        """Close the connection; asking again opens another."""
        self._connection.close()

    def failures(self, query: str = "", *, page: int = PAGE) -> Rows:
        """Return the failures of *query*, newest first; ``about["total"]`` counts them all."""
        return self._list("/failures", query, page)

    def chains(self, query: str = "", *, page: int = PAGE) -> Rows:
        """Return the chains that a failure of *query* opened, newest first."""
        return self._list("/chains", query, page)

    def frequency(
        self, by: str, query: str = "", *, minimum_calls: int = 0, limit: int = MOST_GROUPS
    ) -> Rows:
        """Return how often each *by* fails, with its calls and the interval of its rate.

        Args:
            by: ``code``, ``field``, ``tool``, ``model``, ``message``, ``signature``, ``release``,
                ``agent``, ``variant``, ``environment``, ``category`` or ``field_pattern``.
            query: What to count.
            minimum_calls: Leaves out rows whose rate is of fewer calls.
            limit: Most rows.
        """
        return self._table(
            f"/frequencies/{quote(by, safe='')}", "rows",
            {"q": query, "minimum_calls": minimum_calls, "limit": limit},
        )  # fmt: skip

    def messages(self, query: str = "", *, minimum: int = 10) -> Rows:
        """Return how often the call after each message succeeds, by tool and code.

        Args:
            query: What to count.
            minimum: Answered failures from which a wording can be called the best or the worst.
        """

        def fetch(_: str | None) -> Page:
            answer = self._connection.get("/messages", {"q": query, "minimum": minimum})
            rows = [row for group in answer["groups"] for row in group["rows"]]
            return rows, None, {}

        return Rows(fetch)

    def fix_next(self, query: str = "", *, limit: int = 100) -> Rows:
        """Return what to mend next, most calls saved, or spent where no remedy is known, first."""
        return self._table("/fix-next", "rows", {"q": query, "limit": limit})

    def kinds(self, query: str = "", *, order: str = "failures", limit: int = 1_000) -> Rows:
        """Return the kinds of failure of *query* with their state and owner.

        Args:
            query: What to count; ``state:regressed`` for example.
            order: Most first: ``failures`` or ``calls`` spent; or newest ``first`` or ``last``.
            limit: Most rows.
        """
        return self._table("/kinds", "rows", {"q": query, "order": order, "limit": limit})

    def changes(self, query: str = "", *, detected: bool = True) -> Rows:
        """Return the changes, newest first.

        Args:
            query: Its window and tools.
            detected: Also what was seen for the first time, which nobody recorded.
        """
        return self._table("/changes", "changes", {"q": query, "detected": detected})

    def summary(self, query: str = "") -> Mapping[str, Any]:
        """Return calls, failures, chains, outcomes and round trips of *query*."""
        found: Mapping[str, Any] = self._connection.get("/summary", {"q": query})
        return found

    def experiment(self, name: str, query: str = "", *, control: str = "") -> Mapping[str, Any]:
        """Return the trial *name*: its arms, their balance and the effect of each.

        Raises:
            NotFoundError: There is no trial of that name within *query*.
        """
        path = f"/experiments/{quote(name, safe='')}"
        found: Mapping[str, Any] = self._connection.get(path, {"q": query, "control": control})
        return found

    def looks(
        self, name: str, query: str = "", *, metric: str = "failure_rate", control: str = ""
    ) -> Rows:
        """Return the effect of each arm of trial *name* as it was known day after day.

        Raises:
            NotFoundError: There is no trial of that name within *query*.
        """
        asked: dict[str, str | int | float | bool | None]
        asked = {"q": query, "metric": metric, "control": control}
        return self._table(f"/experiments/{quote(name, safe='')}/looks", "looks", asked)

    def compare(
        self,
        before: str = "",
        after: str = "",
        *,
        change: str = "",
        query: str = "",
        confidence: float = 0.95,
        equal_mix: bool | None = None,
    ) -> Comparison:
        """Compare two queries, or what was before and after a change.

        Args:
            before: Query of one cohort.
            after: Query of the other cohort.
            change: Instead of both: event id of a change; see `changes`.
            query: Narrows both cohorts.
            confidence: Two-sided coverage of every interval.
            equal_mix: Weight tools, models and agents alike in both cohorts; None does so unless
                the cohorts differ in their variant alone, which was assigned at random.

        Raises:
            ValueError: Neither two cohorts nor a change are named, or both are.
        """
        asked: dict[str, str | int | float | bool | None] = {"q": query, "confidence": confidence}
        if change and not (before or after):
            path = f"/changes/{quote(change, safe='')}/effect"
            return Comparison(self._connection.get(path, asked))
        if change or not (before or after):
            raise ValueError("Name two cohorts (before=..., after=...), or change=... alone.")
        # A cohort without a condition of its own is everything: its parameter must still be there.
        asked |= {"before": before or " ", "after": after or " ", "equal_mix": equal_mix}
        return Comparison(self._connection.get("/compare", asked))

    def _list(self, path: str, query: str, page: int) -> Rows:
        def fetch(cursor: str | None) -> Page:
            answer = self._connection.get(path, {"q": query, "limit": page, "cursor": cursor})
            return answer["rows"], answer["next_cursor"], {"total": answer["total"]}

        return Rows(fetch)

    def _table(
        self, path: str, member: str, asked: dict[str, str | int | float | bool | None]
    ) -> Rows:
        def fetch(_: str | None) -> Page:
            answer = self._connection.get(path, asked)
            return answer[member], None, {k: v for k, v in answer.items() if k != member}

        return Rows(fetch)


def failures(query: str = "", *, dsn: str | None = None) -> Rows:
    """Return the failures of *query*, newest first; see `Reader.failures`."""
    return Reader(dsn).failures(query)


def chains(query: str = "", *, dsn: str | None = None) -> Rows:
    """Return the chains that a failure of *query* opened; see `Reader.chains`."""
    return Reader(dsn).chains(query)


def frequency(by: str, query: str = "", *, minimum_calls: int = 0, dsn: str | None = None) -> Rows:
    """Return how often each *by* fails; see `Reader.frequency`."""
    return Reader(dsn).frequency(by, query, minimum_calls=minimum_calls)


def messages(query: str = "", *, minimum: int = 10, dsn: str | None = None) -> Rows:
    """Return which wording leads to a call that succeeds; see `Reader.messages`."""
    return Reader(dsn).messages(query, minimum=minimum)


def fix_next(query: str = "", *, dsn: str | None = None) -> Rows:
    """Return what to mend next; see `Reader.fix_next`."""
    return Reader(dsn).fix_next(query)


def changes(query: str = "", *, detected: bool = True, dsn: str | None = None) -> Rows:
    """Return the changes, newest first; see `Reader.changes`."""
    return Reader(dsn).changes(query, detected=detected)


def summary(query: str = "", *, dsn: str | None = None) -> Mapping[str, Any]:
    """Return calls, failures, chains and round trips of *query*."""
    return Reader(dsn).summary(query)


def experiment(
    name: str, query: str = "", *, control: str = "", dsn: str | None = None
) -> Mapping[str, Any]:
    """Return the trial *name*; see `Reader.experiment`."""
    return Reader(dsn).experiment(name, query, control=control)


def compare(
    before: str = "",
    after: str = "",
    *,
    change: str = "",
    query: str = "",
    equal_mix: bool | None = None,
    dsn: str | None = None,
) -> Comparison:
    """Compare two queries, or what was before and after a change; see `Reader.compare`."""
    return Reader(dsn).compare(before, after, change=change, query=query, equal_mix=equal_mix)
