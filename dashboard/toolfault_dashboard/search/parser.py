"""From query text to its tree: the grammar is ``query.lark``, the meaning of values is here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from typing import Final

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from toolfault_dashboard.search.ast import TEXT, Clause, NumberRange, Pattern, Query, Value
from toolfault_dashboard.search.errors import QueryError
from toolfault_dashboard.search.keys import ALIASES, KEYS, TAG_PREFIX, Key
from toolfault_dashboard.search.times import parse_moment

__all__ = ["MAX_CLAUSES", "MAX_LENGTH", "MAX_VALUES", "parse"]

MAX_LENGTH: Final = 8_192
"""Characters: what still fits into a URL that proxies accept."""

MAX_CLAUSES: Final = 50
"""Conditions: far more than a person writes, few enough to stay fast."""

MAX_VALUES: Final = 100
"""Values of one key."""

_NUMBER = r"(\d{1,15}(?:\.\d{1,6})?)"
_COMPARED = re.compile(rf"(>=|<=|>|<|){_NUMBER}")
_BETWEEN = re.compile(rf"{_NUMBER}?\.\.{_NUMBER}?")
_WITH_UNIT = re.compile(rf"{_NUMBER}(ms|s|m|h)\b")
_MILLISECONDS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}

_Piece = tuple[str, bool]
"""Part of a value as written: its text, and whether it was quoted."""


@lru_cache(maxsize=1)
def _grammar() -> Lark:
    text = resources.files(__package__).joinpath("query.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", lexer="contextual", propagate_positions=True)


def parse(text: str) -> Query:
    """Read a query; the empty text is the query that matches everything.

    Args:
        text: At most 8,192 characters, 50 conditions, 100 values each.

    Raises:
        QueryError: The text is no valid query; the error says where and what was likely meant.
    """
    if len(text) > MAX_LENGTH:
        raise QueryError(f"Shorten the query to at most {MAX_LENGTH} characters.", MAX_LENGTH)
    _refuse_unsendable(text)
    try:
        tree = _grammar().parse(text)
    except UnexpectedInput as error:
        raise _syntax_error(text, error) from None
    if len(tree.children) > MAX_CLAUSES:
        raise QueryError(f"Use at most {MAX_CLAUSES} conditions.", 1)
    clauses = (_clause(child) for child in _trees(tree))
    return Query(tuple(dict.fromkeys(clauses)))


def _refuse_unsendable(text: str) -> None:
    # NUL cannot be bound on PostgreSQL, lone surrogates cannot be encoded; nothing stored has them.
    # Other control characters may be in names, and a link to such a name is a query.
    for index, character in enumerate(text):
        if character == "\0" or "\ud800" <= character <= "\udfff":
            raise QueryError("Remove the character that no text can hold.", index + 1)


def _trees(tree: Tree[Token]) -> Iterable[Tree[Token]]:
    return (child for child in tree.children if isinstance(child, Tree))


def _syntax_error(text: str, error: UnexpectedInput) -> QueryError:
    column = (error.pos_in_stream or 0) + 1 if not isinstance(error, UnexpectedEOF) else len(text)
    if isinstance(error, UnexpectedCharacters) and text[column - 1 : column] == '"':
        return QueryError("Close the quotation mark.", column)
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        column = len(text)
    before = re.search(r"(\S+)$", text[:column].rstrip())
    word = before[1] if before is not None else ""
    if word.endswith(":"):
        return QueryError(f"{word} needs a value, for example {word}x.", column)
    if "," in word:
        return QueryError("Remove the comma that no value follows or precedes.", column)
    return QueryError("Put this text in quotation marks.", column)


def _clause(tree: Tree[Token]) -> Clause:
    negated = isinstance(tree.children[0], Token)
    (body,) = _trees(tree)
    column = body.meta.column
    if body.data == "text":
        pieces = _pieces(body)
        _refuse_operators(pieces, column)
        text = "".join(piece for piece, _ in pieces)
        if not text:
            raise QueryError("Leave empty quotation marks out.", column)
        return Clause(TEXT, (Pattern((text,)),), negated, column)
    name = str(body.children[0])[:-1].lower()
    values = [_pieces(value) for value in _trees(body)]
    if len(values) > MAX_VALUES:
        raise QueryError(f"Give {name} at most {MAX_VALUES} values.", column)
    if name == "no":
        name, negated = "has", not negated
    return _keyed(ALIASES.get(name, name), values, negated, column)


def _refuse_operators(pieces: list[_Piece], column: int) -> None:
    """Refuse words that other languages read as an operator: here they would find nothing.

    Raises:
        QueryError: It is an operator, a parenthesis or a second sign, or has a wildcard.
    """
    word, quoted = pieces[0]
    if quoted:
        return
    if len(pieces) == 1 and word in {"OR", "AND", "NOT"}:
        raise QueryError(f"Write {_INSTEAD[word]}; {_QUOTE} to search for {word}.", column)
    if word.startswith("("):
        raise QueryError(
            f"Write conditions without parentheses; {_QUOTE} to search for it.", column
        )
    if word.startswith(("-", "!")):
        raise QueryError(
            f"Write one minus to leave something out; {_QUOTE} to search for it.", column
        )
    if any("*" in piece for piece, each_quoted in pieces if not each_quoted):
        raise QueryError(
            f"Use * in the value of a key only, for example tool:http*; {_QUOTE} to search for it.",
            column,
        )


_QUOTE: Final = "put the text in quotation marks"
_INSTEAD: Final = {
    "OR": "alternatives of one key as tool:a,b",
    "AND": "conditions that must all hold beside each other",
    "NOT": "a minus before what to leave out, as -tool:a",
}


def _pieces(tree: Tree[Token]) -> list[_Piece]:
    """Return the parts of a value or text; a bare ``*`` stays unquoted, so that it is a hole."""
    pieces: list[_Piece] = []
    for token in tree.children:
        assert isinstance(token, Token)
        if token.type == "QUOTED":
            pieces.append((re.sub(r'\\(["\\])', r"\1", token[1:-1]), True))
        else:
            pieces.append((str(token), False))
    return pieces


def _keyed(name: str, values: list[list[_Piece]], negated: bool, column: int) -> Clause:
    if name.startswith(TAG_PREFIX) and len(name) > len(TAG_PREFIX):
        return Clause(name, tuple(_pattern(value) for value in values), negated, column)
    key = KEYS.get(name)
    if key is None:
        raise QueryError(
            f"There is no query key {name[:64]!r}; put the text in quotation marks to look for it.",
            column,
            _nearest(name, KEYS),
        )
    if key.kind == "time" and (negated or len(values) > 1):
        raise QueryError(f"Give {name} one moment, without negation.", column)
    read = tuple(dict.fromkeys(_value(key, value, column) for value in values))
    return Clause(name, read, negated, column)


def _value(key: Key, pieces: list[_Piece], column: int) -> Value:
    if key.kind in {"pattern", "message"}:
        return _pattern(pieces)
    text = "".join(piece for piece, _ in pieces)
    if key.kind == "choice":
        return _choice(key, text, key.choices, column)
    if key.kind == "presence":
        return _choice(key, ALIASES.get(text, text), _PRESENT, column)
    if key.kind == "time":
        moment = parse_moment(text)
        if moment is None:
            raise QueryError(
                f"Give {key.name} an age such as 7d, 24h or 30m, or a date such as 2026-11-01.",
                column,
            )
        return moment
    found = _range(_in_milliseconds(text) if key.kind == "milliseconds" else text)
    if found is None:
        raise QueryError(f"Give {key.name} a number or a range: 5, >5, >=5 or 5..10.", column)
    return found


_PRESENT: Final = tuple(name for name, key in KEYS.items() if key.kind not in {"time", "presence"})


def _pattern(pieces: list[_Piece]) -> Pattern:
    parts = [""]
    for text, quoted in pieces:
        if text == "*" and not quoted:
            if len(parts) == 1 or parts[-1]:  # ** is *
                parts.append("")
        else:
            parts[-1] += text
    return Pattern(tuple(parts))


def _choice(key: Key, text: str, choices: tuple[str, ...], column: int) -> Pattern:
    folded = text.lower()
    if folded not in choices:
        raise QueryError(
            f"{key.name} is one of {', '.join(choices)}.", column, _nearest(folded, choices)
        )
    return Pattern((folded,))


def _in_milliseconds(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        value = float(match[1]) * _MILLISECONDS[match[2]]
        return str(int(value)) if value.is_integer() else f"{value:.6f}".rstrip("0")

    return _WITH_UNIT.sub(plain, text)


def _range(text: str) -> NumberRange | None:
    between = _BETWEEN.fullmatch(text)
    if between is not None and (between[1] or between[2]):
        low = float(between[1]) if between[1] else None
        high = float(between[2]) if between[2] else None
        return NumberRange(low=low, high=high)
    compared = _COMPARED.fullmatch(text)
    if compared is None:
        return None
    sign, number = compared[1], float(compared[2])
    if not sign:
        return NumberRange(low=number, high=number)
    if sign.startswith(">"):
        return NumberRange(low=number, low_included=sign == ">=")
    return NumberRange(high=number, high_included=sign == "<=")


def _nearest(word: str, known: Iterable[str]) -> str | None:
    from rapidfuzz import process
    from rapidfuzz.distance import JaroWinkler

    found = process.extractOne(
        word[:64], list(known), scorer=JaroWinkler.similarity, score_cutoff=0.75
    )
    return found[0] if found is not None else None
