"""What to do about a fix, in words and as code for the SDK."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from toolfault_dashboard.analysis.fixes.opportunities import FixKey

__all__ = ["REMEDIES", "Advice", "advice", "plain_name"]


@dataclass(frozen=True, slots=True)
class Advice:
    """One sentence that says what to do, and code that does it."""

    title: str
    code: str


_TYPES: Final = {
    "bool_from_string": ("Accept booleans written as text", "toolfault.coerce.LLMBool"),
    "int_from_string": ("Accept integers written as text", "toolfault.coerce.LLMInt"),
    "float_from_string": ("Accept numbers written as text", "toolfault.coerce.LLMFloat"),
    "json_from_string": ("Accept JSON written as text", "toolfault.coerce.LLMJson"),
    "wrap_in_list": ("Accept one item where a list is meant", "toolfault.coerce.LLMList[str]"),
    "strip": ("Ignore white space around the value", "toolfault.coerce.LLMStr"),
    "date_from_string": ("Accept dates in more ways of writing", "toolfault.coerce.LLMDate"),
}

_CHOICES: Final = {
    "close_choice": "Accept a close choice",
    "fold_case": "Ignore upper and lower case",
}

REMEDIES: Final = frozenset(
    {*_TYPES, *_CHOICES, "clamp", "alias", "default", "describe", "open"}
    | {"all_at_once", "reword", "expose"}
)
"""Remedies that are known by name; a sender may name others."""

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def advice(key: FixKey) -> Advice:
    """Return what to do about *key*.

    Names come from data: what is no plain identifier appears in no code, only in words.
    """
    field = plain_name(key.field)
    if key.remedy in _TYPES:
        title, kind = _TYPES[key.remedy]
        return Advice(f"{title} in {_shown(key)}", f"{field}: {kind}")
    if key.remedy in _CHOICES:
        return Advice(
            f"{_CHOICES[key.remedy]} in {_shown(key)}",
            f"{field}: Annotated[Choice, BeforeValidator(lambda value: str(value).lower())]",
        )
    if key.remedy == "clamp":
        return Advice(
            f"Cut the number to its bounds in {_shown(key)} instead of refusing it",
            f"{field}: Annotated[int, BeforeValidator(lambda value: min(max(value, LOW), HIGH))]",
        )
    if key.remedy == "alias":
        other = plain_name(key.detail)
        # What was picked is a fix of its argument, whatever models call it.
        name = f"{key.detail!r} as a name" if key.detail else "what models write as another name"
        return Advice(
            f"Accept {name} of {_shown(key)}",
            f'{field}: T = Field(validation_alias=AliasChoices("{field}", "{other}"))',
        )
    if key.remedy == "default":
        return Advice(
            f"Give {_shown(key)} a default, or say in its description what to write",
            f"{field}: T = DEFAULT",
        )
    if key.remedy == "describe":
        return Advice(
            f"Say in the description of {_shown(key)} that it is required, and what to write",
            f'{field}: Annotated[T, Field(description="Required. WHAT TO WRITE")]',
        )
    if key.remedy == "open":
        return Advice(f"{_who_fails(key)} with {key.detail or 'no code'}", "")
    return _of_tool(key)


def _of_tool(key: FixKey) -> Advice:
    tool = plain_name(key.tool)
    if key.remedy == "all_at_once":
        return Advice(
            f"Report every problem of a call of {key.tool} at once",
            f"@toolfault.tool(model=Parameters)\ndef {tool}(...): ...",
        )
    if key.remedy == "reword":
        return Advice(
            f"Reword this message of {key.tool}: say which argument to change, and to what",
            'raise ToolError("field: what is wrong; write X instead", code=...)',
        )
    if key.remedy == "expose":
        return Advice(
            f"The model calls {key.tool}, which it does not have: offer it, or let the name lead "
            "to the right tool",
            f'manager.alias("{tool}", "the_right_tool")',
        )
    return Advice(f"Accept the value of {_shown(key)} ({key.remedy})", "")


def _who_fails(key: FixKey) -> str:
    if not key.others:
        return f"{_shown(key)} fails"
    return f"{', '.join((key.tool, *key.others[:-1]))} and {key.others[-1]} fail"


def _shown(key: FixKey) -> str:
    return f"{key.tool}.{key.field}" if key.field else key.tool


def plain_name(name: str) -> str:
    """Return the last part of a dotted *name* where it is a plain identifier, else ``NAME``."""
    last = name.rsplit(".", 1)[-1]
    return last if _NAME.fullmatch(last) else "NAME"
