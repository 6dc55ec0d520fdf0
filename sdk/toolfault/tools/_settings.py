"""Process-wide defaults of tools, which ``toolfault.init`` may set."""

from __future__ import annotations

from typing import Any

from toolfault.errors import ConfigError


class Defaults:
    """What applies to tools that do not say otherwise.

    Attributes:
        coerce: Whether bool, int, float and JSON strings are repaired before validation.
        hints: ``"derived"`` adds did-you-mean and an example of the expected form to failures;
            ``"off"`` leaves them out.
    """

    __slots__ = ("coerce", "hints")

    def __init__(self) -> None:
        self.coerce = False
        self.hints = "off"


DEFAULTS = Defaults()
"""What applies now: what ``init`` was given, else what ``set_defaults`` was, else nothing."""

_chosen: dict[str, Any] = {}
_overriding: dict[str, Any] = {}


def set_defaults(*, coerce: bool | None = None, hints: str | None = None) -> None:
    """Set what applies to every tool that does not decide for itself, also to existing ones.

    Args:
        coerce: Repair bool, int, float and JSON strings; None leaves the setting as it is.
        hints: ``"derived"`` or ``"off"``; None leaves the setting as it is.

    Raises:
        ConfigError: ``hints`` is neither ``"derived"`` nor ``"off"``.
    """
    if hints not in (None, "derived", "off"):
        raise ConfigError(f"hints must be 'derived' or 'off', not {hints!r}")
    _chosen.update(_given(coerce, hints))
    _apply()


def override_defaults(*, coerce: bool | None, hints: str | None) -> None:
    """Put the settings of ``init`` over the others; what an earlier ``init`` set is forgotten."""
    _overriding.clear()
    _overriding.update(_given(coerce, hints))
    _apply()


def _given(coerce: bool | None, hints: str | None) -> dict[str, Any]:
    both = {"coerce": coerce, "hints": hints}
    return {name: value for name, value in both.items() if value is not None}


def _apply() -> None:
    settings = {"coerce": False, "hints": "off", **_chosen, **_overriding}
    DEFAULTS.coerce = bool(settings["coerce"])
    DEFAULTS.hints = settings["hints"]
