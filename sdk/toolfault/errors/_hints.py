"""Derived hints: did-you-mean for names and choices, and an example of the expected form.

They are computed only where somebody asked for them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from toolfault.errors._cleaning import one_line, plain, redact_text, safe_repr
from toolfault.errors._issue import Issue
from toolfault.errors._types import is_a

_MOST_OPTIONS = 500
_LONGEST_WORD = 64
_CLOSE = 0.7
_SHORTEST_KIN = 3
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_EXAMPLES: dict[str, object] = {
    "boolean": True,
    "integer": 1,
    "number": 1.5,
    "string": "text",
    "object": {"key": "value"},
    "array": ["item"],
    "date (YYYY-MM-DD)": "2024-01-31",
    "time (HH:MM:SS)": "12:30:00",
    "datetime (ISO 8601)": "2024-01-31T12:30:00Z",
    "duration (ISO 8601)": "PT30M",
    "URL": "https://example.com/path",
    "UUID": "123e4567-e89b-12d3-a456-426614174000",
}


def closest(word: str, options: Iterable[str], *, most: int = 1) -> list[str]:
    """The *options* most like *word*, best first; none when nothing is close.

    Case and the separators `-`, `_` and space do not count. Abbreviations (`expr`) and parts
    (`path` for `file_path`) come first, after the name with two neighbouring letters swapped
    (`ulr`: one edit by Damerau's distance, which likeness misses in a short word); then likeness
    by the ratio of Ratcliff and Obershelp (`difflib`), at least 0.7.
    """
    wanted = _folded(word)
    folded: dict[str, str] = {}
    for count, option in enumerate(options):
        if count >= _MOST_OPTIONS:
            break
        if is_a(option, str):
            folded.setdefault(_folded(option), option)
    swapped = [name for name in folded if _is_swapped(wanted, name)]
    kin = sorted((name for name in folded if _is_kin(wanted, name)), key=len)
    similar = get_close_matches(wanted, list(folded), n=most, cutoff=_CLOSE)
    best = dict.fromkeys([*([wanted] if wanted in folded else []), *swapped, *kin, *similar])
    return [folded[name] for name in best][:most]


def _folded(word: str) -> str:
    snake = _CAMEL.sub("_", word[:_LONGEST_WORD])
    return snake.casefold().replace("-", "_").replace(" ", "_")


def _is_swapped(word: str, option: str) -> bool:
    """Whether the two differ by one swap of neighbouring letters."""
    if len(word) != len(option) or len(word) < 2:
        return False
    at = [place for place, pair in enumerate(zip(word, option, strict=True)) if len({*pair}) == 2]
    if len(at) != 2 or at[1] != at[0] + 1:
        return False
    first, second = at
    return word[first] == option[second] and word[second] == option[first]


def _is_kin(word: str, option: str) -> bool:
    """Whether one is an abbreviation of the other, or made of some of its words."""
    if min(len(word), len(option)) < _SHORTEST_KIN:
        return False
    if word.startswith(option) or option.startswith(word):
        return True
    words, others = set(word.split("_")), set(option.split("_"))
    return words <= others or others <= words


def did_you_mean(word: object, options: Iterable[str]) -> str | None:
    """`Did you mean 'port'?`, or None when nothing is close."""
    if not is_a(word, str) or not word.strip():
        return None
    found = closest(word, options)
    return f"Did you mean '{one_line(plain(found[0], _LONGEST_WORD))}'?" if found else None


def with_tools(text: str, called: str, known: Sequence[str]) -> str:
    """Return *text*, which says that the tool *called* does not exist, with those that do.

    Args:
        text: One that names some of them already is only told a close one.
        called: The name as the model wrote it.
        known: The names of the tools that there are.
    """
    said = text.replace(called, "")  # the wrong name may contain a right one
    named = any(name in said for name in known)
    more = [] if named or not known else [f"Available tools: {', '.join(known)}."]
    close = did_you_mean(called, known)
    more += [close] if close else []
    end = "." if more and text[-1:] not in (".", "!", "?") else ""
    return " ".join([f"{text}{end}", *more])


def example_of(issue: Issue) -> str | None:
    """An example of what *issue* expected: `Example: {"port": 1}`; None where there is none."""
    shown = _EXAMPLES.get(issue.expected or "")
    if shown is None or issue.is_root:
        return None
    name = str(issue.loc[-1]) if issue.loc else issue.field
    text = json.dumps({name: shown}, ensure_ascii=False)
    return f"Example: {one_line(redact_text(text, 200))}"


def listed(choices: Iterable[object], *, most: int = 20) -> str:
    """Choices as pydantic lists them: `'a', 'b' or 'c'`."""
    shown: list[str] = []
    more = False
    for choice in choices:
        if len(shown) >= most:
            more = True
            break
        shown.append(safe_repr(choice, _LONGEST_WORD))
    if more:
        return ", ".join([*shown, "…"])
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} or {shown[-1]}"
