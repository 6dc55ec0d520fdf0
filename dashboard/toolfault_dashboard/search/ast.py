"""The query as a tree of frozen values; ``str()`` of each gives its canonical text.

Invariant, held by a property test: ``parse(str(query)) == query`` and ``str`` of both is equal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Final

from toolfault_dashboard.search.times import Moment

__all__ = ["TEXT", "Clause", "NumberRange", "Pattern", "Query", "Value"]

TEXT: Final = "text"
"""The key of bare words: a part of the text that the model saw."""

_BARE = re.compile(r'[^\s",*]+')
# What the parser reads as a word, or refuses without quotation marks, is written with them.
_WORD = re.compile(r'(?!(?:OR|AND|NOT)\Z)[^\s"\-!:(*][^\s":*]*')


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text with holes: literal parts, between which any characters may stand.

    ``Pattern(("claude", ""))`` is ``claude*``; one part alone is that very text.
    """

    parts: tuple[str, ...]

    @property
    def exact(self) -> str | None:
        """The text itself where there is no wildcard."""
        return self.parts[0] if len(self.parts) == 1 else None

    def __str__(self) -> str:
        if self.parts == ("",):
            return '""'
        return "*".join(
            part if not part or _BARE.fullmatch(part) else _quoted(part) for part in self.parts
        )


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


@dataclass(frozen=True, slots=True)
class NumberRange:
    """A range of numbers; an end that is None is open."""

    low: float | None = None
    high: float | None = None
    low_included: bool = True
    high_included: bool = True

    def __str__(self) -> str:
        if self.low is not None and self.high is not None:
            if self.low == self.high:
                return _number(self.low)
            return f"{_number(self.low)}..{_number(self.high)}"
        if self.low is not None:
            return f"{'>=' if self.low_included else '>'}{_number(self.low)}"
        assert self.high is not None, "a range has at least one end"
        return f"{'<=' if self.high_included else '<'}{_number(self.high)}"


Value = Pattern | NumberRange | Moment


@dataclass(frozen=True, slots=True)
class Clause:
    """One condition: a key and the values of which one must match, or its negation."""

    key: str  # canonical name, ``tag.NAME``, or TEXT for bare words
    values: tuple[Value, ...]
    negated: bool = False
    column: int = field(default=1, compare=False)

    def __str__(self) -> str:
        sign = "-" if self.negated else ""
        if self.key == TEXT:
            (pattern,) = self.values
            assert isinstance(pattern, Pattern), "free text is a pattern of one part"
            (text,) = pattern.parts
            return sign + (text if _WORD.fullmatch(text) else _quoted(text))
        return f"{sign}{self.key}:{','.join(str(value) for value in self.values)}"


@dataclass(frozen=True, slots=True)
class Query:
    """Clauses that must all hold. The empty query matches everything."""

    clauses: tuple[Clause, ...] = ()

    def __str__(self) -> str:
        return " ".join(str(clause) for clause in self.clauses)

    def has(self, *keys: str) -> bool:
        """Say whether any clause uses one of *keys*."""
        return any(clause.key in keys for clause in self.clauses)

    def of(self, key: str) -> tuple[Clause, ...]:
        """Return the clauses of *key* in their order."""
        return tuple(clause for clause in self.clauses if clause.key == key)

    def and_(self, other: Query) -> Query:
        """Return the query that both match; a clause said twice is kept once."""
        return Query(tuple(dict.fromkeys(self.clauses + other.clauses)))

    def without(self, *keys: str) -> Query:
        """Return the query without the clauses of *keys*."""
        return Query(tuple(clause for clause in self.clauses if clause.key not in keys))

    def selects(self, key: str, value: str) -> bool:
        """Say whether a positive clause of *key* names exactly *value*."""
        wanted = Pattern((value,))
        return any(wanted in clause.values for clause in self.of(key) if not clause.negated)

    def toggled(self, key: str, value: str) -> Query:
        """Return the query with *value* of *key* added, or taken away if it was there.

        A further value joins the first positive clause of the key, so that a facet widens.
        """
        wanted: Value = Pattern((value,))
        clauses: list[Clause] = []
        done = False
        for clause in self.clauses:
            if done or clause.key != key or clause.negated:
                clauses.append(clause)
                continue
            done = True
            if wanted in clause.values:
                values = tuple(each for each in clause.values if each != wanted)
            else:
                values = (*clause.values, wanted)
            if values:
                clauses.append(replace(clause, values=values))
        if not done:
            clauses.append(Clause(key=key, values=(wanted,)))
        return Query(tuple(clauses))
