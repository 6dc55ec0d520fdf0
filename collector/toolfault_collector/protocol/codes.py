"""Codes, categories and audiences as the server understands them.

Both are open on the wire: an unknown code is stored as it came. The SDK has its own copy of these
names; the contract between both is the golden files, not shared code.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = ["AUDIENCES", "CATEGORIES", "SIDES", "canonical_code", "default_category"]

AUDIENCES: Final = frozenset({"user", "llm", "system"})
CATEGORIES: Final = frozenset({"availability", "parameter", "internal"})
SIDES: Final = frozenset({"agent", "server"})

_PARAMETER: Final = frozenset(
    {"missing_field", "unknown_field", "wrong_type", "invalid_format", "invalid_choice"}
    | {"field_too_large", "field_too_small", "malformed_json", "malformed_diff"}
    | {"not_found", "invalid_input"}
)
# Spellings found in the wild for codes of the contract.
_ALIASES: Final = {
    "internal": "internal_error",
    "missing_required_field": "missing_field",
    "unknown_tool_name": "not_available",
}
_PASCAL: Final = re.compile(r"(?:[A-Z][a-z0-9]+)+", re.ASCII)
_HUMP: Final = re.compile(r"(?<!^)(?=[A-Z])")


@lru_cache(maxsize=1_024)
def canonical_code(code: str) -> str:
    """Return the contract's spelling of *code*: ``WrongType`` is ``wrong_type``."""
    snake = _HUMP.sub("_", code).lower() if _PASCAL.fullmatch(code) else code
    return _ALIASES.get(snake, snake)


def default_category(code: str) -> str:
    """Return the category of *code* where the sender names none."""
    if code == "not_available":
        return "availability"
    return "parameter" if code in _PARAMETER else "internal"
