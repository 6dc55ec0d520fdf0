"""Memoised answers: what one page needs in several places is asked for once per snapshot.

Within one read transaction the same question has the same answer, so a page need not know which of
its tables has asked already.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from inspect import unwrap
from typing import Any, Concatenate, Final, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Transaction

__all__ = ["answered", "memoised", "remember"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

_ANSWERS: Final[WeakKeyDictionary[Transaction, dict[Any, Any]]] = WeakKeyDictionary()
"""What was answered in each transaction. No answer may know its transaction or its connection, or
none of them would ever go."""


def memoised(
    function: Callable[Concatenate[Connection, _P], _R],
) -> Callable[Concatenate[Connection, _P], _R]:
    """Remember the answers of *function* until the read transaction ends.

    Its further arguments must be hashable, and nobody may change its answer. Outside a transaction,
    and in one that may write, every call asks again.
    """

    @wraps(function)
    def asked(conn: Connection, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        answers = _answers(conn)
        if answers is None:
            return function(conn, *args, **kwargs)
        key = (function, args, tuple(sorted(kwargs.items())))
        if key not in answers:
            answers[key] = function(conn, *args, **kwargs)
        found: _R = answers[key]
        return found

    return asked


def remember(conn: Connection, asked: Callable[..., _R], answer: _R, *args: Hashable) -> None:
    """Remember *answer* as what ``asked(conn, *args)`` gives: another statement has told it.

    Args:
        conn: Open connection.
        asked: A function that `memoised` decorates.
        answer: Nobody may change it.
        args: Further arguments, as its callers write them.
    """
    answers = _answers(conn)
    if answers is not None:
        answers[unwrap(asked), args, ()] = answer


def answered(conn: Connection, asked: Callable[..., _R], *args: Hashable) -> _R | None:
    """Return what ``asked(conn, *args)`` gave in this transaction; None if nobody asked."""
    found: _R | None = (_answers(conn) or {}).get((unwrap(asked), args, ()))
    return found


def _answers(conn: Connection) -> dict[Any, Any] | None:
    """Return what was answered in the transaction of *conn*; None where nothing may be kept."""
    transaction = conn.get_transaction()
    if transaction is None or conn.get_execution_options().get("toolfault_write", False):
        return None
    return _ANSWERS.setdefault(transaction, {})
