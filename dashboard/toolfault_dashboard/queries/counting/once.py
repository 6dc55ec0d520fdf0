"""Answers that one page needs in several places, asked for once per snapshot.

Within one read transaction the same question has the same answer, so a page need not know which of
its tables has asked already.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import Connection

__all__ = ["once"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

_ANSWERS: Final[WeakKeyDictionary[Connection, tuple[object, dict[Any, Any]]]] = WeakKeyDictionary()
"""Of each open connection: its transaction, and what was answered in it."""


def once(
    function: Callable[Concatenate[Connection, _P], _R],
) -> Callable[Concatenate[Connection, _P], _R]:
    """Remember the answers of *function* until the read transaction ends.

    Its further arguments must be hashable, and nobody may change its answer. Outside a transaction,
    and in one that may write, every call asks again.
    """

    @wraps(function)
    def asked(conn: Connection, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        transaction = conn.get_transaction()
        if transaction is None or conn.get_execution_options().get("toolfault_write", False):
            return function(conn, *args, **kwargs)
        known = _ANSWERS.get(conn)
        if known is None or known[0] is not transaction:
            known = _ANSWERS[conn] = (transaction, {})
        answers = known[1]
        key = (function, args, tuple(sorted(kwargs.items())))
        if key not in answers:
            answers[key] = function(conn, *args, **kwargs)
        found: _R = answers[key]
        return found

    return asked
