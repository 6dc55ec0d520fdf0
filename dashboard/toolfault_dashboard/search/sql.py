"""The few operators that SQLite, PostgreSQL and ClickHouse write differently.

Those of texts are case-exact or fold ASCII only, so that the same query finds the same rows on all.
"""

from __future__ import annotations

from typing import Any, Self

from sqlalchemy import Boolean, ColumnElement, String, Text, cast, func, literal
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.operators import OperatorType

from toolfault_dashboard.search.ast import Clause, Pattern

__all__ = [
    "arms_match",
    "by_storage",
    "contains_folded",
    "json_list_holds",
    "matches_any",
    "patterns_of",
    "rare",
]


class _Like(FunctionElement[bool]):
    """``GLOB`` with the first pattern on SQLite, ``LIKE`` with the second elsewhere."""

    name = "toolfault_like"
    type = Boolean()
    inherit_cache = True


@compiles(_Like)
def _like(element: _Like, compiler: SQLCompiler, **kw: Any) -> str:
    column, _, like = element.clauses
    return f"({compiler.process(column, **kw)} LIKE {compiler.process(like, **kw)} ESCAPE '!')"


@compiles(_Like, "sqlite")
def _glob(element: _Like, compiler: SQLCompiler, **kw: Any) -> str:
    column, glob, _ = element.clauses
    return f"({compiler.process(column, **kw)} GLOB {compiler.process(glob, **kw)})"


class _Contains(FunctionElement[bool]):
    """Whether a text contains a part, upper and lower ASCII letters alike."""

    name = "toolfault_contains"
    type = Boolean()
    inherit_cache = True


@compiles(_Contains)
def _strpos(element: _Contains, compiler: SQLCompiler, **kw: Any) -> str:
    column, part = (compiler.process(clause, **kw) for clause in element.clauses)
    # The C collation folds ASCII letters only, as SQLite's lower() does.
    return f'(strpos(lower({column} COLLATE "C"), {part}) > 0)'


@compiles(_Contains, "sqlite")
def _instr(element: _Contains, compiler: SQLCompiler, **kw: Any) -> str:
    column, part = (compiler.process(clause, **kw) for clause in element.clauses)
    return f"(instr(lower({column}), {part}) > 0)"


@compiles(_Contains, "clickhousedb")
def _position(element: _Contains, compiler: SQLCompiler, **kw: Any) -> str:
    column, part = (compiler.process(clause, **kw) for clause in element.clauses)
    return f"(position(lower({column}), {part}) > 0)"


class _ContainsLate(_Contains):
    """The same, looked at in the order of the conditions that look into other tables.

    SQLite looks at what needs no other table first, in whatever order it is written. Reading the
    row of a failure and its text takes longer than one look at its issues.
    """

    inherit_cache = True


@compiles(_ContainsLate)
def _strpos_late(element: _ContainsLate, compiler: SQLCompiler, **kw: Any) -> str:
    return _strpos(element, compiler, **kw)


@compiles(_ContainsLate, "sqlite")
def _instr_late(element: _ContainsLate, compiler: SQLCompiler, **kw: Any) -> str:
    return f"(SELECT {_instr(element, compiler, **kw)})"


@compiles(_ContainsLate, "clickhousedb")
def _position_late(element: _ContainsLate, compiler: SQLCompiler, **kw: Any) -> str:
    return _position(element, compiler, **kw)


class _ByStorage(FunctionElement[bool]):
    """One of two conditions that say the same: see `by_storage`."""

    name = "toolfault_by_storage"
    type = Boolean()
    inherit_cache = True

    def self_group(self, against: OperatorType | None = None) -> Self:
        """Return the condition as it is: SQLite uses none that is compared with 1."""
        return self


@compiles(_ByStorage)
def _of_rows(element: _ByStorage, compiler: SQLCompiler, **kw: Any) -> str:
    rows, _ = element.clauses
    return f"({compiler.process(rows, **kw)})"


@compiles(_ByStorage, "clickhousedb")
def _of_columns(element: _ByStorage, compiler: SQLCompiler, **kw: Any) -> str:
    _, columns = element.clauses
    return f"({compiler.process(columns, **kw)})"


def by_storage(rows: ColumnElement[bool], columns: ColumnElement[bool]) -> ColumnElement[bool]:
    """Return one condition, written in the way that suits the engine.

    Args:
        rows: For engines that find single rows by an index: looks into another table for each row.
        columns: The same for ClickHouse, which reads columns whole: is the row among those that a
            query of its own finds? It must not refer to the statement around it.
    """
    return _ByStorage(rows, columns)


class _Rare(FunctionElement[bool]):
    """The condition itself; SQLite is told that it holds for few rows."""

    name = "toolfault_rare"
    type = Boolean()
    inherit_cache = True

    def self_group(self, against: OperatorType | None = None) -> Self:
        """Return the condition as it is: SQLite sees the hint in none that is compared with 1."""
        return self


@compiles(_Rare)
def _itself(element: _Rare, compiler: SQLCompiler, **kw: Any) -> str:
    (condition,) = element.clauses
    return f"({compiler.process(condition, **kw)})"


@compiles(_Rare, "sqlite")
def _unlikely(element: _Rare, compiler: SQLCompiler, **kw: Any) -> str:
    (condition,) = element.clauses
    return f"unlikely({compiler.process(condition, **kw)})"


def rare(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """Say of *condition* that an index that finds its rows beats one that finds a window.

    SQLite has no statistics and takes the index with the most columns that are asked for.
    """
    return _Rare(condition)


def _glob_pattern(pattern: Pattern) -> str:
    return "*".join(
        part.replace("[", "[[]").replace("*", "[*]").replace("?", "[?]") for part in pattern.parts
    )


def _like_pattern(pattern: Pattern) -> str:
    return "%".join(
        part.replace("!", "!!").replace("%", "!%").replace("_", "!_") for part in pattern.parts
    )


def _fold_ascii(text: str) -> str:
    return "".join(chr(ord(each) + 32) if "A" <= each <= "Z" else each for each in text)


def contains_folded(column: ColumnElement[Any], part: str) -> ColumnElement[bool]:
    """Match texts that contain *part*, ASCII letters in any case; nothing in it is special."""
    return _ContainsLate(column, literal(_fold_ascii(part), String()))


def matches_any(
    column: ColumnElement[Any], patterns: tuple[Pattern, ...]
) -> list[ColumnElement[bool]]:
    """Return the conditions of which one must hold for *column* to match one of *patterns*.

    The empty pattern matches rows that carry nothing there.
    """
    exact = [pattern.exact for pattern in patterns if pattern.exact]
    found: list[ColumnElement[bool]] = []
    if len(exact) == 1:
        found.append(column == exact[0])
    elif exact:
        found.append(column.in_(exact))
    if any(pattern.exact == "" for pattern in patterns):
        found.append(column.is_(None) | (column == ""))
    found.extend(
        _Like(
            column,
            literal(_glob_pattern(pattern), String()),
            literal(_like_pattern(pattern), String()),
        )
        for pattern in patterns
        if pattern.exact is None
    )
    return found


def arms_match(
    column: ColumnElement[Any], patterns: tuple[Pattern, ...]
) -> list[ColumnElement[bool]]:
    """Like `matches_any`, where *column* is a list separated by commas: any item may match.

    A conversation in two trials carries ``coerce=on,wording=new``.
    """
    items: list[Pattern] = []
    for pattern in patterns:
        items.append(pattern)
        if pattern.exact != "":
            first, *rest = pattern.parts
            *inner, last = pattern.parts
            items.append(Pattern((*inner, f"{last},", "")))
            items.append(Pattern(("", f",{first}", *rest)))
            ends = Pattern((f",{first}", *rest)).parts
            items.append(Pattern(("", *ends[:-1], f"{ends[-1]},", "")))
    return matches_any(column, tuple(items))


def patterns_of(clause: Clause) -> tuple[Pattern, ...]:
    """Return the values of *clause* that are patterns: all of them where its key takes text."""
    return tuple(value for value in clause.values if isinstance(value, Pattern))


def json_list_holds(column: ColumnElement[Any], pattern: Pattern) -> ColumnElement[bool]:
    """Match JSON lists of names that hold one matching *pattern*; JSON null and ``[]`` hold none.

    Works on the JSON text, since every name of such a list is a plain identifier.
    """
    text = cast(column, Text)
    if pattern.exact is not None:
        return _Contains(text, literal(f'"{_fold_ascii(pattern.exact)}"', String()))
    inner = Pattern(("", *_enclosed(pattern), ""))
    return func.coalesce(
        _Like(
            text,
            literal(_glob_pattern(inner), String()),
            literal(_like_pattern(inner), String()),
        ),
        literal(False, Boolean()),
    )


def _enclosed(pattern: Pattern) -> tuple[str, ...]:
    first, *rest = pattern.parts
    if not rest:
        return (f'"{first}"',)
    return (f'"{first}', *rest[:-1], f'{rest[-1]}"')
