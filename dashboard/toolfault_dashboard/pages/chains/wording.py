"""One text against another, word by word, for readers."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Final

__all__ = ["word_changes"]

_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]")
MOST_WORDS: Final = 600
"""Words and signs of a text that is compared; the comparison may cost their product."""


def word_changes(before: str, after: str) -> tuple[tuple[str, str], ...]:
    """Return the parts that make up both texts: ``=`` in both, ``-`` before, ``+`` after.

    Source: Ratcliff and Metzener, Pattern matching: the gestalt approach (1988), by ``difflib``.

    Returns:
        (mark, text) pairs in order; nothing where the texts are too long or have nothing in common.
    """
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    if max(len(old), len(new)) > MOST_WORDS:
        return ()
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    found: list[tuple[str, str]] = []
    for name, i, j, k, m in matcher.get_opcodes():
        if name == "equal":
            found.append(("=", "".join(old[i:j])))
            continue
        found += [
            (mark, "".join(words)) for mark, words in (("-", old[i:j]), ("+", new[k:m])) if words
        ]
    return tuple(found) if any(mark == "=" for mark, _ in found) else ()
