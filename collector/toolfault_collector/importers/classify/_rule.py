"""One rule by which a failure that is only text is classified."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Audience", "Category", "Rule", "ignoring_case"]

Audience: TypeAlias = Literal["user", "llm", "system"]
Category: TypeAlias = Literal["availability", "parameter", "internal"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the table.

    Args:
        name: Name of the rule, unique.
        pattern: Searched for; a group ``field`` names the argument.
        code: Code of the failure.
        category: Category of the failure.
        examples: Texts for which this rule is the first that fits.
        audience: Where it differs from the category's default.
        field: Argument meant by every text of this rule.
        of_subject: Whether a sentence that begins with one name speaks of that argument.
        shell_only: Whether only the output of a tool that runs command lines is meant.
    """

    name: str
    pattern: re.Pattern[str]
    code: str
    category: Category
    examples: tuple[str, ...]
    audience: Audience | None = None
    field: str | None = None
    of_subject: bool = False
    shell_only: bool = False


def ignoring_case(pattern: str) -> re.Pattern[str]:
    """Compile a pattern; tools write the same sentence in any case."""
    return re.compile(pattern, re.IGNORECASE)
