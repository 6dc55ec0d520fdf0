"""Answers about days that are over, stored, so that a server that has just started knows them.

What was counted of a day, or of a quarter of one, is true while its version stays what it was
(``toolfault_collector.storage.cache_versions``): whatever is stored, repaired or removed raises it
in the same transaction. So an answer is stored beside its version, and an answer of another version
is as good as none. Nothing has to be taken back where rows change, and nobody who stores calls
knows of these answers.

An answer belongs to the code that counted it: after an upgrade all of them are counted anew.

They are pickled, since they are sums in many shapes. Who reads one follows no name in it but those
of the classes that count, of counters and of numbers (see "Restricting Globals" in the
documentation of ``pickle``), so nothing it names is run. It is no defence against who may write to
the database: such a one could change these classes, as any number that is shown.
"""

from __future__ import annotations

import io
import pickle
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from sqlalchemy import Connection, Engine, bindparam, delete, or_, select

import toolfault_collector
from toolfault_collector.clock import DAY_US
from toolfault_collector.storage.cache_versions import QUARTER_US
from toolfault_collector.storage.database.dialect import insert_ignore
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.tables import stored_answer

__all__ = [
    "StoredAnswer",
    "StoredAnswers",
    "counting_code",
    "forget_answers",
    "forget_stale",
    "question_of",
    "store_answers",
    "stored_versions",
    "whole_of",
]

_OURS: Final = ("toolfault_dashboard.queries.", "toolfault_dashboard.analysis.")
_OTHERS: Final = {("collections", "Counter"): Counter, ("decimal", "Decimal"): Decimal}
_KEY: Final = ("project_id", "question", "starts_at", "ends_at")
_COLUMNS: Final = (*_KEY, "version", "counted_by", "answer")
_BROKEN: Final = (
    pickle.UnpicklingError, AttributeError, EOFError, ImportError, IndexError, KeyError, TypeError,
    ValueError, zlib.error,
)  # fmt: skip


class StoredAnswer(NamedTuple):
    """What was counted of the time from *starts_at* to *ends_at*, in microseconds."""

    project_id: int
    question: str
    starts_at: int
    ends_at: int
    version: int
    answer: Any


def whole_of(begin: int | None, end: int | None) -> tuple[int, int] | None:
    """Return [begin, end) if it is a day or a quarter of one, of which answers are stored."""
    if begin is None or end is None or end - begin not in (DAY_US, QUARTER_US):
        return None
    return None if begin % (end - begin) else (begin, end)


def question_of(read: Callable[..., Any], args: tuple[Any, ...], query: str) -> str:
    """Return what names a question: who counts it, with which arguments, and of which calls."""
    asked = (read.__module__, read.__qualname__, args, query)
    return sha256(repr(asked).encode()).hexdigest()[:32]


class StoredAnswers:
    """The stored answers to one question within a window, read at the first look.

    Args:
        conn: Open connection in a read transaction.
        project_id: Whose.
        question: `question_of` it.
        begin: First microsecond of the window; None where it is open.
        end: The one behind its last, or now.
    """

    def __init__(
        self, conn: Connection, project_id: int, question: str, begin: int | None, end: int
    ) -> None:
        self._conn, self._project_id, self._question = conn, project_id, question
        self._window = begin, end
        self._rows: dict[tuple[int, int], tuple[int, bytes]] | None = None

    def get(self, begin: int, end: int, version: int) -> Any:
        """Return what was counted of [begin, end) at *version*; None if that is not stored."""
        if self._rows is None:
            self._rows = self._read()
        known, packed = self._rows.get((begin, end), (None, b""))
        if known != version:
            return None
        try:
            return _unpacked(packed)
        except _BROKEN:
            return None  # it is counted anew

    def _read(self) -> dict[tuple[int, int], tuple[int, bytes]]:
        row, (begin, end) = stored_answer.c, self._window
        # Whole days are known as such, but for those in which the window begins and ends.
        at_edges = [row.starts_at >= end // DAY_US * DAY_US]
        conditions = [
            row.project_id == self._project_id,
            row.question == self._question,
            row.counted_by == counting_code(),
            row.ends_at <= end,
        ]
        if begin is not None:
            conditions.append(row.starts_at >= begin)
            at_edges.append(row.starts_at < -(-begin // DAY_US) * DAY_US)
        conditions.append(or_(row.ends_at - row.starts_at == DAY_US, *at_edges))
        rows = self._conn.execute(
            select(row.starts_at, row.ends_at, row.version, row.answer).where(*conditions)
        )
        return {(each[0], each[1]): (each[2], each[3]) for each in rows}


def stored_versions(conn: Connection, project_id: int) -> dict[tuple[str, int, int], int]:
    """Return the versions of the answers that are stored, by question, beginning and end."""
    row = stored_answer.c
    rows = conn.execute(
        select(row.question, row.starts_at, row.ends_at, row.version).where(
            row.project_id == project_id, row.counted_by == counting_code()
        )
    )
    return {(each[0], each[1], each[2]): each[3] for each in rows}


def store_answers(engine: Engine, answers: Iterable[StoredAnswer]) -> int:
    """Store *answers* instead of those that are stored of the same; return how many."""
    rows = [
        dict(zip(_COLUMNS, (*each[:-1], counting_code(), _packed(each.answer)), strict=True))
        for each in sorted(answers, key=lambda each: each[:4])
    ]
    row = stored_answer.c
    if rows:
        key = [row[name] == bindparam(f"own_{name}") for name in _KEY]
        own = [{f"own_{name}": each[name] for name in _KEY} for each in rows]
        with write_transaction(engine) as conn:
            conn.execute(delete(stored_answer).where(*key), own)
            conn.execute(insert_ignore(conn, stored_answer), rows)  # another server may do the same
    return len(rows)


def forget_stale(engine: Engine, project_id: int, is_true: Callable[[int, int, int], bool]) -> None:
    """Remove the answers that other code counted, or that are true no more.

    Args:
        engine: The server's database; nothing is written where nothing has to go.
        project_id: Whose.
        is_true: Says of beginning, end and version whether such an answer is true and wanted.
    """
    row = stored_answer.c
    names = ("question", "starts_at", "ends_at", "version", "counted_by")
    with read_connection(engine) as conn:
        stored = conn.execute(
            select(*(row[name] for name in names)).where(row.project_id == project_id)
        ).all()
    stale = [
        {f"own_{name}": value for name, value in zip(names, each, strict=True)}
        for each in stored
        if each.counted_by != counting_code()
        or not is_true(each.starts_at, each.ends_at, each.version)
    ]
    if stale:
        own = [row[name] == bindparam(f"own_{name}") for name in names]
        with write_transaction(engine) as conn:
            conn.execute(delete(stored_answer).where(row.project_id == project_id, *own), stale)


def forget_answers(engine: Engine, project_id: int) -> None:
    """Remove all answers about a project."""
    with write_transaction(engine) as conn:
        conn.execute(delete(stored_answer).where(stored_answer.c.project_id == project_id))


@cache
def counting_code() -> str:
    """Return a digest of the code that answers hang on: all of the server's.

    A server asks for it as it starts: an upgrade changes the files below one that runs.
    """
    digest = sha256(str(sys.version_info[:2]).encode())
    for package in (Path(__file__).parents[2], Path(toolfault_collector.__file__).parent):
        for path in sorted(package.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


def _packed(answer: Any) -> bytes:
    found = io.BytesIO()
    _Writer(found, protocol=5).dump(answer)
    return zlib.compress(found.getvalue(), level=1)


def _unpacked(packed: bytes) -> Any:
    return _Reader(io.BytesIO(zlib.decompress(packed))).load()


class _Writer(pickle.Pickler):
    """Writes an array as its type and its bytes, so that who reads it needs no code of numpy."""

    def persistent_id(self, value: Any) -> tuple[str, str, bytes] | None:
        if type(value).__module__ != "numpy":
            return None
        if type(value).__name__ != "ndarray" or value.ndim != 1:
            message = "an answer holds plain numbers, and arrays of one dimension"
            raise pickle.PicklingError(message)
        narrow = _narrow(value)
        return value.dtype.str, narrow.dtype.str, narrow.tobytes()


def _narrow(values: Any) -> Any:
    """Return the same numbers with as few bytes for each as hold them: most are small and whole."""
    if len(values) and values.min() >= 0:
        for kind, end in (("|u1", 1 << 8), ("<u2", 1 << 16), ("<u4", 1 << 32)):
            if values.max() < end and ((small := values.astype(kind)) == values).all():
                return small
    return values


class _Reader(pickle.Unpickler):
    """Makes no object but those that answers consist of."""

    def persistent_load(self, array: tuple[str, str, bytes]) -> Any:
        kind, narrow, values = array
        return np.frombuffer(values, dtype=np.dtype(narrow)).astype(np.dtype(kind))

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _OTHERS:
            return _OTHERS[module, name]
        if module.startswith(_OURS):
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__.startswith(_OURS):
                return found
        message = f"{module}.{name} is no part of an answer"
        raise pickle.UnpicklingError(message)
