"""The questions, as methods of a reader and as functions that read where the environment says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any
from urllib.parse import quote

from toolfault.errors import ConfigError
from toolfault.query._comparison import Comparison
from toolfault.query._http import Connection
from toolfault.query._rows import Page, Rows
from toolfault.telemetry._dsn import parse_dsn

__all__ = [
    "Reader",
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
        ConfigError: There is no such address; the text never shows it, since it holds the key.
    """

    def __init__(self, dsn: str | None = None, *, timeout: float = 60.0) -> None:
        text = dsn if dsn is not None else os.environ.get(ENVIRONMENT, "")
        if not text:
            raise ConfigError(
                f"Say where to read: dsn='http://READ_KEY@127.0.0.1:8321', or {ENVIRONMENT} in the"
                " environment. `toolfault keys create --kind read` makes a key."
            )
        try:
            parsed = parse_dsn(text)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        self._connection = Connection(parsed, timeout=timeout)
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
        """Return what to mend next, most round trips saved first."""
        return self._table("/fix-next", "rows", {"q": query, "limit": limit})

    def changes(self, query: str = "", *, detected: bool = False) -> Rows:
        """Return the changes, newest first; *detected* adds those that nobody recorded."""
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
        """Compare two queries, or the two sides of a change.

        Args:
            before: Query of one side.
            after: Query of the other side.
            change: Instead of both: event id of a change; see `changes`.
            query: Narrows both sides.
            confidence: Two-sided coverage of every interval.
            equal_mix: Weight tools, models and agents alike on both sides; None does so unless the
                sides differ in their variant alone, which was assigned at random.

        Raises:
            ValueError: Neither two sides nor a change are named, or both are.
        """
        asked: dict[str, str | int | float | bool | None] = {"q": query, "confidence": confidence}
        if change and not (before or after):
            path = f"/changes/{quote(change, safe='')}/effect"
            return Comparison(self._connection.get(path, asked))
        if change or not (before or after):
            raise ValueError("Name two sides (before=..., after=...), or change=... alone.")
        # A side without a condition of its own is everything: its parameter must still be there.
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


def changes(query: str = "", *, detected: bool = False, dsn: str | None = None) -> Rows:
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
    """Compare two queries, or the two sides of a change; see `Reader.compare`."""
    return Reader(dsn).compare(before, after, change=change, query=query, equal_mix=equal_mix)
