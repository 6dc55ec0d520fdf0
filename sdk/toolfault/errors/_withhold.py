"""A failure without the values of the call: their type and size stand in for them.

What the model is told keeps the values; what leaves the process does not, unless the host says so.
Parts that hold a value are replaced whole, and the texts are composed of them again. Only texts
that nobody wrote for a reader (of an exception, of a validator of the host) are searched for the
values of the call: no more is known of them. What an author wrote into a failure stays.
"""

from __future__ import annotations

from toolfault.errors._jsonschema import KEYWORD_CODES
from toolfault.errors._leak import STANDARD_WORDS, values_in_repr, wordish
from toolfault.errors._pydantic import TYPE_CODES
from toolfault.errors._repr import safe_repr, type_and_size
from toolfault.errors._types import is_a, items_of
from toolfault.errors._words import REDACTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolfault.errors._error import ToolError
    from toolfault.errors._issue import Issue

__all__ = ["Withheld", "withhold"]

_MOST_VALUES = 500
_DEPTH = 16
_HEAD = 16  # characters of a value that a text which was cut must still have
_SHORTEST = 4  # of a value that is found without quotes around it
_QUOTES = ("'", '"', "`")
# The types of pydantic whose message holds the text of an exception of the host.
_OF_THE_HOST = frozenset(
    {"assertion_error", "get_attribute_error", "iteration_error", "mapping_type", "value_error"}
)
_WORDED = (TYPE_CODES.keys() - _OF_THE_HOST) | KEYWORD_CODES.keys()
# The types whose message quotes from the value after this sign.
_QUOTING_AFTER = {"uuid_parsing": ",", "bytes_invalid_encoding": ":"}


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
    if error._from_exception:  # noqa: SLF001
        for name in ("_message", "llm_message"):
            state[name] = values.cut_out(state[name])
    state["_issues"] = tuple(_without_value(issue, values) for issue in state["_issues"])
    error.received = _stand_in(error, error._stand_in)  # noqa: SLF001
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
        self._found: list[tuple[str, str]] | None = None

    def cut_out(self, text: str, issue: Issue | None = None) -> str:
        """*text* with type and size in the place of values: `no user <str, 6 characters>`.

        Found are texts and numbers of four characters and more, and shorter or ordinary words in
        quotes, also where the text ends inside of them. What was made of a value is not.

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
            for value in values_in_repr(own)[1 if own[:1] in _QUOTES else 0 :]:
                text = _replaced(text, value, stand_in, shortest=1)
        if self._found is None:
            self._found = _known(self._arguments)
        if len(self._found) > _MOST_VALUES:
            return ""  # too many to look for: the text is left out
        allowed = "" if issue is None else issue.expected or ""
        for value, stand_in in self._found:
            if value not in allowed:
                text = _replaced(text, value, stand_in, shortest=_SHORTEST)
        return text


def _known(arguments: object) -> list[tuple[str, str]]:
    """The values as a text may show them, each with its stand-in, the longest first."""
    if is_a(arguments, str):
        import json

        text = arguments
        try:
            arguments = json.loads(text)
        except (ValueError, RecursionError):
            return [(value, "value") for value in values_in_repr(text)]
    found: dict[str, str] = {}
    for value in _leaves(arguments, _DEPTH):
        for shown in _forms(value) if type(value) is str else (safe_repr(value),):
            found.setdefault(shown, type_and_size(value))
        if len(found) > _MOST_VALUES:
            break
    return sorted(found.items(), key=lambda one: -len(one[0]))


def _leaves(value: object, depth: int) -> Iterator[str | int | float]:
    """The texts and numbers in *value*; names are no values."""
    if type(value) in (str, int, float):
        yield value  # type: ignore[misc]
    elif depth:
        inside = dict.values(value) if is_a(value, dict) else items_of(value)
        for member in inside:
            yield from _leaves(member, depth - 1)


def _forms(text: str) -> Iterator[str]:
    """*text* as it is, without the space around it, escaped as Python and JSON do, by lines."""
    yield from (text, text.strip())
    if not text.isascii() or not text.isprintable() or "\\" in text or "'" in text or '"' in text:
        import json

        yield from (repr(text)[1:-1], json.dumps(text)[1:-1])
        yield from (line for line in text.splitlines() if line.strip())


def _replaced(text: str, value: str, stand_in: str, *, shortest: int) -> str:
    """*text* with ``<stand_in>`` wherever *value*, or the beginning of it, stands by itself."""
    head = value[:_HEAD]
    plain = len(value) >= shortest and value.lower() not in STANDARD_WORDS
    at = text.find(head) if head.strip() else -1
    while at >= 0:
        end = at + len(head)
        while end < len(text) and end - at < len(value) and text[end] == value[end - at]:
            end += 1
        before, after = text[at - 1 : at], text[end : end + 1]
        if (before in _QUOTES and after in _QUOTES) or (
            plain and _alone(before, text[at:end], after)
        ):
            text = f"{text[:at]}<{stand_in}>{text[end:]}"
            end = at + len(stand_in) + 2
        at = text.find(head, end)
    return text


def _alone(before: str, value: str, after: str) -> bool:
    """Whether *value* is no part of a longer word or number."""
    return not (wordish(before) and wordish(value[:1])) and not (
        wordish(after) and wordish(value[-1:])
    )
