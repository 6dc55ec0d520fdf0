"""Several grouped selects in one statement: SQLite has no GROUPING SETS, so a union of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import CompoundSelect, Connection, Select, literal, select, union_all

from toolfault_collector.storage.database.engine import is_columnar
from toolfault_dashboard.queries.counting.segments import is_asked_at_once
from toolfault_dashboard.queries.scope import Scope

__all__ = ["Question", "are_asked_together", "ask_together"]


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A select whose first columns are texts, and whose others are numbers.

    Attributes:
        statement: The select.
        names: How many columns are texts.
    """

    statement: Select[Any] | CompoundSelect[Any]
    names: int


def are_asked_together(conn: Connection, scope: Scope) -> bool:
    """Say whether to ask of *scope* with one statement what pages need sooner or later.

    Of a large window most may be known, and to ClickHouse rows cost more than statements do.
    """
    return is_asked_at_once(conn, scope) and not is_columnar(conn)


def ask_together(conn: Connection, questions: Sequence[Question]) -> list[list[tuple[Any, ...]]]:
    """Return the rows of each of *questions*, all of them asked by one statement.

    Columns of one place must be of one type in a union: texts stand with texts, numbers with
    numbers, and where a select has fewer of them than another they are filled up and cut off.
    """
    if not questions:
        return []
    columns = [list(each.statement.subquery().c) for each in questions]
    names = max(each.names for each in questions)
    width = max(len(own) - each.names for own, each in zip(columns, questions, strict=True))
    filled = [
        select(
            literal(number),
            *own[: each.names],
            *(literal("") for _ in range(names - each.names)),
            *own[each.names :],
            *(literal(0) for _ in range(width - len(own) + each.names)),
        )
        for number, (each, own) in enumerate(zip(questions, columns, strict=True))
    ]
    found: list[list[tuple[Any, ...]]] = [[] for _ in questions]
    for number, *row in conn.execute(filled[0] if len(filled) == 1 else union_all(*filled)):
        own_names, own_width = questions[number].names, len(columns[number])
        numbers = row[names : names + own_width - own_names]
        found[number].append((*row[:own_names], *numbers))
    return found
