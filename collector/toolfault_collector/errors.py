"""Errors of the collector.

::

    CollectorError
    ├── AnotherShips          another process copies events to ClickHouse at the same time
    ├── BackupError           a backup cannot be made or restored
    ├── DatabaseInUse         another server has the SQLite file
    ├── DatabaseReplaced      another file stands where the open one was: open it anew
    ├── DatabaseUrlError      the database URL cannot be used
    ├── OverQuota             a project sent more than its quota: try again later
    ├── PruneRefused          retention removes nothing: the clock is doubted
    ├── SchemaError           the database has another schema than this version needs
    │   ├── SchemaTooOld      migrate it, or start anew: the message says which
    │   └── SchemaTooNew      written by a newer version: upgrade the program
    ├── StoreUnavailable      the database is full, busy or gone
    └── WriterBusy            the write queue is full or the collector is stopping: try again
"""

from __future__ import annotations

__all__ = [
    "AnotherShips",
    "BackupError",
    "CollectorError",
    "DatabaseInUse",
    "DatabaseReplaced",
    "DatabaseUrlError",
    "OverQuota",
    "PruneRefused",
    "SchemaError",
    "SchemaTooNew",
    "SchemaTooOld",
    "StoreUnavailable",
    "WriterBusy",
]


class CollectorError(Exception):
    """Base of every error the collector raises on purpose."""


class AnotherShips(CollectorError):  # noqa: N818
    """Another process copies events to ClickHouse from the same database."""

    def __init__(self) -> None:
        super().__init__(
            "Another process copies events to ClickHouse, as a running server does: leave it to"
            " that one."
        )


class BackupError(CollectorError):
    """A backup cannot be made or restored; the message says why."""


class DatabaseInUse(CollectorError):  # noqa: N818
    """Another server has the SQLite file; the message says what to do."""


class DatabaseReplaced(CollectorError):  # noqa: N818
    """The SQLite file was removed or replaced while it was open: what is written goes nowhere."""


class DatabaseUrlError(CollectorError):
    """The database URL names no engine or file that can be used."""


class PruneRefused(CollectorError):  # noqa: N818
    """The clock of this machine is doubted, so nothing was removed; the message says why."""


class SchemaError(CollectorError):
    """The database has another schema than this version needs."""


class SchemaTooOld(SchemaError):  # noqa: N818 - the tree reads as states
    """The database must be migrated first, or cannot be; the message says what to do."""


class SchemaTooNew(SchemaError):  # noqa: N818
    """The database was written by a newer version of the program."""


class StoreUnavailable(CollectorError):  # noqa: N818
    """A batch was not stored.

    Attributes:
        kind: ``full`` (no space) or ``unavailable`` (busy, gone).
        partly: Some of its events are stored; they are known when it is sent again.
    """

    def __init__(self, kind: str, *, partly: bool = False) -> None:
        self.kind = "full" if kind == "full" else "unavailable"
        stored = "not all" if partly else "nothing"
        super().__init__(f"the database is {self.kind}; {stored} was stored")
        self.partly = partly


class WriterBusy(CollectorError):  # noqa: N818
    """Nothing was stored: the write queue is full or the collector is stopping."""


class OverQuota(CollectorError):  # noqa: N818
    """A project has sent more events than its quota lets in.

    Attributes:
        limit: Events a minute.
        wait: Seconds until the events would be let in.
    """

    def __init__(self, limit: int, wait: int) -> None:
        super().__init__(f"over the quota of {limit} events a minute; send again in {wait} s")
        self.limit = limit
        self.wait = wait
