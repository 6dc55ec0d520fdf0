"""What a check finds wrong, before it becomes issues (a cost that only failures pay)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolfault.errors import Issue

__all__ = ["ABSENT", "ANYTHING", "MAX_DEPTH", "Check", "Finding", "Findings", "Loc"]

Loc = tuple[Any, ...]

# Deeper values are refused, so that a cycle or a hostile nesting ends in an issue, not in a
# RecursionError of the host. 64 levels are far beyond what a model writes.
MAX_DEPTH = 64


class _Absent:
    """The type of ABSENT."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()
"""Stands for "no value": a missing parameter has received nothing, not None."""


class Finding:
    """One thing wrong with one value.

    Attributes:
        loc: Keys and indexes from the arguments to the value; ``()`` is the arguments as a whole.
        code: Wire code of the issue.
        message: The sentence; the words are pydantic's where pydantic has one, so that a model
            reads the same text whoever validates.
        expected: Short expectation in JSON words, or None.
        value: The value the model sent, or ABSENT.
        issue: The issue itself, where a foreign model found it.
    """

    __slots__ = ("code", "expected", "issue", "loc", "message", "value")

    def __init__(
        self,
        loc: Loc,
        code: str,
        message: str,
        *,
        expected: str | None,
        value: object,
        issue: Issue | None = None,
    ) -> None:
        self.loc = loc
        self.code = code
        self.message = message
        self.expected = expected
        self.value = value
        self.issue = issue


class Findings:
    """Collects everything wrong and every repair of one validation.

    Attributes:
        coerce: Whether bool, int, float and JSON strings may be repaired.
        found: What is wrong, in the order of the parameters.
        repairs: ``(loc, value before, value after)`` of every repair.
    """

    __slots__ = ("coerce", "found", "repairs")

    def __init__(self, coerce: bool = False) -> None:
        self.coerce = coerce
        self.found: list[Finding] = []
        self.repairs: list[tuple[Loc, object, object]] = []

    def add(
        self,
        loc: Loc,
        code: str,
        message: str,
        *,
        expected: str | None = None,
        value: object = ABSENT,
    ) -> None:
        """Note one thing that is wrong."""
        self.found.append(Finding(loc, code, message, expected=expected, value=value))

    def add_issue(self, loc: Loc, issue: Issue) -> None:
        """Note an issue that a foreign model found at ``loc``."""
        self.found.append(
            Finding(
                loc,
                issue.code.value,
                issue.message,
                expected=issue.expected,
                value=ABSENT,
                issue=issue,
            )
        )

    def trial(self, *, coerce: bool) -> Findings:
        """Return an empty collection to try one of several alternatives on."""
        return Findings(coerce=coerce)

    def absorb(self, other: Findings) -> None:
        """Take over what ``other`` collected."""
        self.found.extend(other.found)
        self.repairs.extend(other.repairs)


class Check:
    """Checks one value against one declared type; this one accepts everything.

    Attributes:
        exact: A value of exactly this type passes unchanged; lets containers skip the call.
        kind: The JSON word for what is expected: ``integer``, ``array`` ...
    """

    __slots__ = ()
    exact: type | None = None
    kind: str = "value"

    def check(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Return the value to use; what is wrong goes into ``findings``."""
        return value

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of what this check accepts."""
        return {}


ANYTHING = Check()
"""Accepts every value: no annotation, or one this validator does not know."""
