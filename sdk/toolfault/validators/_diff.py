"""Unified diffs: headers, hunks, and counts that add up."""

from __future__ import annotations

import re

from toolfault.errors._types import is_a
from toolfault.validators._raise import fail

__all__ = ["validate_unified_diff"]

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.ASCII)
_EXPECTED = "unified diff with ---/+++ and @@"
_MALFORMED = "expected unified diff with ---/+++ headers and @@ hunks"
_LONGEST_NUMBER = 9


def validate_unified_diff(
    *, tool: str, field: str, diff: object = None, value: object = None
) -> str:
    """*diff*, one or several files as a unified diff (also given as *value*).

    Every file needs a `---` and a `+++` header and a hunk `@@ -l,n +l,n @@` whose line counts are
    those of its lines. Lines between files (`diff --git`, `index`) are ignored.

    Raises:
        ToolError: `wrong_type` or `malformed_diff`, with the diff as snippet.

    Source: the format as written by GNU diffutils ("Detailed Description of Unified Format").
    """
    given = value if diff is None else diff
    if not is_a(given, str):
        raise fail(
            tool, field, given, "wrong_type", f"{field} must be a string", expected=_EXPECTED
        )
    problem = _Reader(given).problem()
    if problem is not None:
        raise fail(tool, field, given, "malformed_diff", problem, expected=_EXPECTED, snippet=given)
    return given


class _Reader:
    """Reads a diff line by line; the counts of a hunk decide where it ends."""

    def __init__(self, diff: str) -> None:
        self._lines = [line.rstrip("\r") for line in diff.split("\n")]
        self._at = 0
        self._hunks = 0

    def problem(self) -> str | None:
        """What is wrong, or None."""
        headed = False
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith("--- ") and self._next_starts("+++ "):
                headed = True
                self._at += 2
                if not self._next_starts("@@", ahead=0):
                    return _MALFORMED
            elif line.startswith("@@"):
                found = self._hunk() if headed else _MALFORMED
                if found is not None:
                    return found
            elif line[:1] in {" ", "+", "-"} and self._hunks:
                return f"hunk {self._hunks} has more lines than its header counts"
            elif line.startswith(("--- ", "+++ ")):
                return _MALFORMED
            else:
                headed = headed and not line.startswith("diff ")
                self._at += 1
        return None if self._hunks else _MALFORMED

    def _next_starts(self, prefix: str, ahead: int = 1) -> bool:
        place = self._at + ahead
        return place < len(self._lines) and self._lines[place].startswith(prefix)

    def _hunk(self) -> str | None:
        match = _HUNK.match(self._lines[self._at])
        if match is None or any(len(n) > _LONGEST_NUMBER for n in match.groups("")):
            return _MALFORMED
        self._at += 1
        self._hunks += 1
        old = int(match.group(2) or 1)
        new = int(match.group(4) or 1)
        if old + new == 0:
            return f"hunk {self._hunks} has no lines"
        return self._body(old, new)

    def _body(self, old: int, new: int) -> str | None:
        """Read the lines of a hunk of *old* and *new* lines."""
        wanted = (old, new)
        while old > 0 or new > 0:
            line = self._lines[self._at] if self._at < len(self._lines) else None
            # A context line that is empty has often lost its leading space on the way.
            mark = None if line is None else line[:1] or " "
            if mark == " " and old > 0 and new > 0 and not self._only_blank_left():
                old, new = old - 1, new - 1
            elif mark == "-" and old > 0:
                old -= 1
            elif mark == "+" and new > 0:
                new -= 1
            elif mark != "\\":
                return self._miscounted(wanted, (wanted[0] - old, wanted[1] - new))
            self._at += 1
        if self._next_starts("\\", ahead=0):
            self._at += 1
        return None

    def _only_blank_left(self) -> bool:
        return self._at == len(self._lines) - 1 and not self._lines[self._at]

    def _miscounted(self, wanted: tuple[int, int], found: tuple[int, int]) -> str:
        return (
            f"hunk {self._hunks} counts {wanted[0]} old and {wanted[1]} new lines in its header "
            f"but has {found[0]} old and {found[1]} new lines"
        )
