"""Process-wide defaults of tools, which ``toolfault.init`` may set."""

from __future__ import annotations

__all__ = ["DEFAULTS", "Defaults", "set_defaults"]


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


def set_defaults(*, coerce: bool | None = None, hints: str | None = None) -> None:
    """Set what applies to every tool that does not decide for itself, also to existing ones.

    Args:
        coerce: Repair bool, int, float and JSON strings; None leaves the setting as it is.
        hints: ``"derived"`` or ``"off"``; None leaves the setting as it is.

    Raises:
        ConfigError: ``hints`` is neither ``"derived"`` nor ``"off"``.
    """
    if hints is not None:
        if hints not in ("derived", "off"):
            from toolfault.errors import ConfigError

            raise ConfigError(f"hints must be 'derived' or 'off', not {hints!r}")
        DEFAULTS.hints = hints
    if coerce is not None:
        DEFAULTS.coerce = bool(coerce)
