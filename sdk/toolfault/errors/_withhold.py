"""A failure without the values of the call: their type and size stand in for them.

What the model is told keeps the values; what leaves the process does not, unless the host says so.
Parts that hold a value are replaced whole, and the texts are composed of them again. Only texts
that nobody wrote for a reader (of an exception, of a validator of the host) are searched for the
values of the call: no more is known of them. What an author wrote into a failure stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from toolfault.errors._cleaning import (
    is_marker,
    redact_text,
    safe_repr,
    to_jsonable,
    type_and_size,
    without,
)
from toolfault.errors._codes import REDACTED
from toolfault.errors._error import STANDARD_WORDS, ToolError, stands_alone, values_in_repr, wordish
from toolfault.errors._foreign import KEYWORD_CODES, TYPE_CODES
from toolfault.errors._issue import Issue
from toolfault.errors._types import is_a, is_any, items_of

_QUOTING = ("_message", "llm_message", "told", "retry_hint", "expected", "received", "snippet")
_MOST_VALUES = 20_000
_DEPTH = 16
_FRAGMENT = 16  # characters of a value that are found wherever they stand
_WINDOW = 8  # of these, every one of some fragment of `_FRAGMENT` begins at a multiple of it
_SHORTEST = 4  # of a value that is found without quotes around it
_MOST_SOUGHT = 20_000_000  # windows of a text times characters of the values: some ten milliseconds
_OCCURRENCES = 8  # of a window among the values that are tried
_TOO_LARGE = "text withheld: the arguments are too large to look for them in it"
_QUOTES = ("'", '"', "`")
# The types of pydantic whose message holds the text of an exception of the host.
_OF_THE_HOST = frozenset(
    {"assertion_error", "get_attribute_error", "iteration_error", "mapping_type", "value_error"}
)
_WORDED = (TYPE_CODES.keys() - _OF_THE_HOST) | KEYWORD_CODES.keys()
# The types whose message quotes from the value after this sign.
_QUOTING_AFTER = {"uuid_parsing": ",", "bytes_invalid_encoding": ":"}


def hide(error: ToolError, values: Sequence[str]) -> None:
    """Take *values* out of the texts of *error*, which whoever wrote them may quote."""
    state = error.__dict__
    for name in _QUOTING:
        if state.get(name):
            state[name] = without(state[name], values)
    error.args = (error.tool, error._message)  # noqa: SLF001 - changed in place
    state["_issues"] = tuple(issue.without(values) for issue in state.get("_issues", ()))


def withhold(error: ToolError, arguments: object) -> Withheld:
    """Take the values of a call out of *error*, a copy; texts of its exceptions remain.

    Args:
        error: The failure; changed in place.
        arguments: What the tool was called with, or its JSON text; None when that is not known.

    Returns:
        What takes the values out of further texts.
    """
    values = Withheld(arguments)
    state = error.__dict__
    if error.quotes_exception:
        for name in ("_message", "llm_message"):
            state[name] = values.cut_out(getattr(error, name))
    if error.told:  # frameworks quote the arguments in what they tell the model
        state["told"] = values.cut_out(error.told)
    state["_issues"] = tuple(_without_value(issue, values) for issue in state.get("_issues", ()))
    error.received = _stand_in(error, error.stand_in)
    if error.snippet is not None:
        error.snippet = type_and_size(error.snippet)
    return values


def _stand_in(of: ToolError | Issue, known: str | None) -> str | None:
    """What is told in the place of the received value; a hidden one keeps its mark."""
    if of.received is None or of.received == REDACTED:
        return of.received
    return known or of.received_type or type_and_size(of.received)


def _without_value(issue: Issue, values: Withheld) -> Issue:
    """*issue* with a stand-in for its value, in its message too."""
    copy = issue.with_()
    copy.received = _stand_in(issue, issue.stand_in)
    kind = issue.type
    if kind == "union_tag_invalid":
        copy.message = f"Input tag does not match any of the expected tags: {issue.expected}"
    elif kind == "timezone_offset":
        copy.message = f"Input should have the {issue.expected}"
    elif kind in _QUOTING_AFTER:
        copy.message = issue.message.partition(_QUOTING_AFTER[kind])[0]
    elif kind is not None and kind not in _WORDED:
        copy.message = values.cut_out(issue.message, issue)
    return copy


class Withheld:
    """The values of one call, to be taken out of texts that may quote them.

    Args:
        arguments: What the tool was called with, or its JSON text; None when that is not known.
    """

    def __init__(self, arguments: object) -> None:
        self._arguments = arguments
        self._known: _Known | None = None

    def cut_out(self, text: str, issue: Issue | None = None) -> str:
        """*text* with type and size in the place of values: `no user <str, 6 characters>`.

        Found are values of four characters and more, shorter ones and ordinary words in quotes,
        and any sixteen characters of a longer value. What was made of a value is not.

        Args:
            text: A text that nobody wrote for a reader; None stays None.
            issue: What the text is the message of: its own value is found however short it is.
        """
        if not text:
            return text
        own = None if issue is None else issue.received
        if issue is not None and own is not None and own != REDACTED:
            stand_in = _stand_in(issue, issue.stand_in) or ""
            # Of a text not its representation: the quotes around it tell readers that it is one.
            values = values_in_repr(own)[1 if own[:1] in _QUOTES else 0 :]
            text = _without_short(text, dict.fromkeys(values, stand_in), shortest=1)
        if self._known is None:
            self._known = _Known(self._arguments)
        return self._known.cut_out(text, allowed=(issue.expected or "") if issue else "")


class _Known:
    """The values of a call as a text may show them, each with its stand-in."""

    def __init__(self, arguments: object) -> None:
        self._short: dict[str, str] = {}
        self._long: list[str] = []
        self._stand_ins: list[str] = []
        self.too_many = False
        for form, stand_in in _shown(arguments):
            if len(form) <= _FRAGMENT:
                self._short.setdefault(form, stand_in)
            else:
                self._long.append(form)
                self._stand_ins.append(stand_in)
            if len(self._short) + len(self._long) > _MOST_VALUES:
                self.too_many = True
                break
        self._all = "\0".join(self._long)

    def cut_out(self, text: str, *, allowed: str) -> str:
        """*text* without the values, but those that are part of *allowed*."""
        windows = len(text) // _WINDOW
        if self.too_many or windows * len(self._all) > _MOST_SOUGHT:
            return _TOO_LARGE
        if any(is_marker(form) for form in self._short if form in text):
            text = redact_text(text)  # which nobody could any more, without that value
        if self._long:
            text = self._without_fragments(text)
        return _without_short(text, self._short, shortest=_SHORTEST, allowed=allowed)

    def _without_fragments(self, text: str) -> str:
        parts: list[str] = []
        done = at = 0
        while at + _WINDOW <= len(text):
            start, end, place = self._longest_at(text, at, done)
            if end - start < _FRAGMENT:
                at += _WINDOW
                continue
            number = self._all.count("\0", 0, place)
            parts += (text[done:start], f"<{self._stand_ins[number]}>")
            at = done = end
        return "".join((*parts, text[done:]))

    def _longest_at(self, text: str, at: int, least: int) -> tuple[int, int, int]:
        """Where what *text* shares with a value around *at* begins and ends, and its place."""
        found = (at, at, 0)
        window, place = text[at : at + _WINDOW], -1
        for _ in range(_OCCURRENCES):
            place = self._all.find(window, place + 1)
            if place < 0:
                break
            start, end = at, at + _WINDOW
            while start > least and place > at - start and _same(text, start, self._all, place, at):
                start -= 1
            while (
                end < len(text)
                and text[end : end + 1] == self._all[place + end - at : place + end - at + 1]
            ):
                end += 1
            if end - start > found[1] - found[0]:
                found = (start, end, place)
        return found


def _without_short(text: str, forms: Mapping[str, str], *, shortest: int, allowed: str = "") -> str:
    """*text* with stand-ins for the *forms* that stand in it by themselves, or in quotes.

    Args:
        text: A text.
        forms: What is taken out, each with its stand-in.
        shortest: Characters of what is found without quotes around it.
        allowed: What is part of this is left alone.
    """
    if not any(form in text for form in forms):
        return text
    lengths = sorted({len(form) for form in forms}, reverse=True)
    parts: list[str] = []
    done = at = 0
    while at < len(text):
        before = text[at - 1 : at] if at else ""
        if wordish(before) and wordish(text[at]):  # inside of a word
            at += 1
            continue
        for length in lengths:
            value, after = text[at : at + length], text[at + length : at + length + 1]
            if value not in forms or value in allowed:
                continue
            in_quotes = before in _QUOTES and after in _QUOTES
            plain = len(value) >= shortest and value.lower() not in STANDARD_WORDS
            if in_quotes or (plain and stands_alone(before, value, after)):
                parts += (text[done:at], f"<{forms[value]}>")
                at = done = at + length
                break
        else:
            at += 1
    return "".join((*parts, text[done:]))


def _same(text: str, start: int, values: str, place: int, at: int) -> bool:
    """Whether the characters before *start* and before its place among *values* are the same."""
    return text[start - 1] == values[place - (at - start) - 1]


def _shown(arguments: object) -> Iterator[tuple[str, str]]:
    """The values as a text may show them, each with its stand-in."""
    if is_a(arguments, str):
        text = arguments
        try:
            arguments = json.loads(text)
        except (ValueError, RecursionError):
            yield from ((value, "value") for value in values_in_repr(text))
            return
    for value in _leaves(arguments, _DEPTH):
        for shown in _forms(value) if type(value) is str else (safe_repr(value),):
            if shown.strip():
                yield shown, type_and_size(value)


def _leaves(value: object, depth: int) -> Iterator[str | int | float]:
    """The texts and numbers in *value*, dates and models as JSON has them; names are no values."""
    if type(value) in (str, int, float):
        yield value  # type: ignore[misc]
        return
    if not depth:
        yield safe_repr(value)
        return
    if is_a(value, dict):
        inside: object = dict.values(value)
    elif is_any(value, list, tuple):
        inside = items_of(value)
    else:
        plain = to_jsonable(value, max_depth=_DEPTH, max_items=_MOST_VALUES, max_string=None)
        inside = () if plain is None or type(plain) is bool else (plain,)
    for member in inside:  # type: ignore[attr-defined]
        yield from _leaves(member, depth - 1)


def _forms(text: str) -> Iterator[str]:
    """*text* as it is, without the space around it, escaped as Python and JSON do."""
    yield text
    if text[:1].isspace() or text[-1:].isspace():
        yield text.strip()
    if text[4:5] == "-" and text[10:11] == "T":
        yield text.replace("T", " ", 1)  # a moment, as Python prints it
    if not text.isascii() or not text.isprintable() or "\\" in text or "'" in text or '"' in text:
        yield from (repr(text)[1:-1], json.dumps(text)[1:-1])
