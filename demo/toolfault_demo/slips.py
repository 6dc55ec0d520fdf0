"""How a model spoils arguments that it should have sent right.

A slip is a habit: where one model writes ``true`` another writes ``"true"``. Applying a slip is
pure; the agent keeps the slips of an attempt and drops those that an error text made it mend.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["BREAKS", "Slip", "as_sent"]

Arguments = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Slip:
    """One way of getting one field of one tool wrong.

    Attributes:
        tool: The tool whose arguments are spoilt.
        field: The field that is wrong.
        way: How; a key of ``WAYS``.
        rate: Share of the calls that an average model spoils, 0 to 1.
        detail: What the way needs: the wrong name, the wrong value.
        kind: Group of ways that models are prone to: ``type``, ``shape``, ``name``, ``choice``,
            ``range``, ``state``.
        in_haste: Whether it happens mostly when a model is in haste, along with other such slips:
            that is what makes several things wrong in one call. ``rate`` is then the share of
            hasty calls.
    """

    tool: str
    field: str
    way: str
    rate: float
    detail: str = ""
    kind: str = "type"
    in_haste: bool = False

    def fits(self, arguments: Mapping[str, Any]) -> bool:
        """Say whether there is anything in ``arguments`` to get wrong."""
        return self.way == "add" or self.field in arguments

    def shows_as(self) -> frozenset[str]:
        """Return the field names under which an error text may mention this slip."""
        return frozenset({self.field, self.detail} if self.way == "rename" else {self.field})


def _as_text(arguments: Arguments, slip: Slip) -> None:
    value = arguments[slip.field]
    arguments[slip.field] = json.dumps(value) if not isinstance(value, str) else value


def _first_item(arguments: Arguments, slip: Slip) -> None:
    arguments[slip.field] = arguments[slip.field][0]


def _rename(arguments: Arguments, slip: Slip) -> None:
    arguments[slip.detail] = arguments.pop(slip.field)


def _leave_out(arguments: Arguments, slip: Slip) -> None:
    arguments.pop(slip.field, None)


def _replace(arguments: Arguments, slip: Slip) -> None:
    arguments[slip.field] = slip.detail


def _replace_number(arguments: Arguments, slip: Slip) -> None:
    arguments[slip.field] = int(slip.detail)


def _lower_case(arguments: Arguments, slip: Slip) -> None:
    arguments[slip.field] = arguments[slip.field].lower()


def _digits_only(arguments: Arguments, slip: Slip) -> None:
    digits = "".join(character for character in arguments[slip.field] if character.isdigit())
    arguments[slip.field] = digits


def _misquote(arguments: Arguments, slip: Slip) -> None:
    wanted, written = slip.detail.split(">", 1)
    arguments[slip.field] = arguments[slip.field].replace(wanted, written)


def _bearer_text(arguments: Arguments, slip: Slip) -> None:
    """Write the headers as one line of text: the model's secret ends up in a rejected value."""
    headers = arguments[slip.field]
    arguments[slip.field] = "; ".join(f"{name}: {value}" for name, value in headers.items())


WAYS: Final[Mapping[str, Callable[[Arguments, Slip], None]]] = {
    "as_text": _as_text,
    "first_item": _first_item,
    "rename": _rename,
    "leave_out": _leave_out,
    "replace": _replace,
    "replace_number": _replace_number,
    "add": _replace,
    "lower_case": _lower_case,
    "digits_only": _digits_only,
    "misquote": _misquote,
    "bearer_text": _bearer_text,
}


def _cut(text: str) -> str:
    return text[: max(2, len(text) - 9)]


def _stray_marker(text: str) -> str:
    return f"```json\n{text}\n```"


def _single_quotes(text: str) -> str:
    return text.replace('"', "'")


def _trailing_comma(text: str) -> str:
    return f"{text[:-1]},}}"


# How models spoil the JSON itself.
BREAKS: Final[tuple[Callable[[str], str], ...]] = (
    _cut,
    _stray_marker,
    _single_quotes,
    _trailing_comma,
)


def as_sent(
    arguments: Mapping[str, Any], slips: tuple[Slip, ...], *, broken: Callable[[str], str] | None
) -> str:
    """Return the argument text a model sends: ``arguments`` spoilt by ``slips``.

    Args:
        arguments: The right arguments.
        slips: What is wrong in this attempt.
        broken: How the JSON text itself is spoilt, or None.
    """
    sent = dict(arguments)
    for slip in slips:
        WAYS[slip.way](sent, slip)
    text = json.dumps(sent)
    return text if broken is None else broken(text)
