"""Read what a toolfault server knows: the same query text and the same rows as on its pages.

    from toolfault import query

    for row in query.failures("tool:http_request code:wrong_type since:7d"):
        print(row["occurred_at"], row["field"], row["text"])
    table = query.frequency("code", "since:7d").to_frame()      # where pandas is importable

Where to read is an address with a *read* key, ``http://READ_KEY@127.0.0.1:8321``: the argument
``dsn``, or ``TOOLFAULT_READ_DSN``. Standard library only; nothing is asked before the first row is
wanted, and lists come page by page. Nothing of this is loaded by ``import toolfault``.

Errors::

    ReadError (a ToolfaultError)
      KeyRefusedError   no read key, or of another kind
      BadQueryError     the query text cannot be read: column and suggestion say where and what
      NotFoundError     no change, trial or project of that name
      ServerGoneError   nobody answers there, or the answer broke off
      ServerBusyError   the server could not answer in time; ``retry_after`` seconds may help
"""

from __future__ import annotations

from toolfault.query._comparison import Comparison
from toolfault.query._errors import (
    BadQueryError,
    KeyRefusedError,
    NotFoundError,
    ReadError,
    ServerBusyError,
    ServerGoneError,
)
from toolfault.query._reader import (
    Reader,
    chains,
    changes,
    compare,
    experiment,
    failures,
    fix_next,
    frequency,
    messages,
    summary,
)
from toolfault.query._rows import Row, Rows

__all__ = [
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
