"""The open set of validators: a project adds its own and gets the same error surface."""

from __future__ import annotations

from toolfault.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    F = TypeVar("F", bound=Callable[..., object])

__all__ = ["register_validator", "registered_validators", "validate", "validator_named"]

_registered: dict[str, Callable[..., object]] = {}


def register_validator(name: str, validator: F) -> F:
    """Register *validator* under *name* and return it.

    A validator takes `tool`, `field` and `value` by keyword, and options of its own; it returns
    the value or raises `ToolError`.

    Raises:
        ConfigError: *validator* is no function, or *name* is taken by another one.
    """
    if not callable(validator):
        raise ConfigError(f"the validator {name!r} must be a function")
    if _registered.setdefault(name, validator) is not validator:
        raise ConfigError(f"a validator is registered as {name!r} already: choose another name")
    return validator


def registered_validators() -> dict[str, Callable[..., object]]:
    """All validators by name, the built-in ones included."""
    return dict(_registered)


def validator_named(name: str) -> Callable[..., object]:
    """The validator registered under *name*.

    Raises:
        ConfigError: There is none.
    """
    found = _registered.get(name)
    if found is None:
        from toolfault.errors import did_you_mean

        hint = did_you_mean(name, _registered) or "See registered_validators()."
        raise ConfigError(f"no validator is registered as {name!r}. {hint}")
    return found


def validate(name: str, *, tool: str, field: str, value: object, **options: object) -> object:
    """*value*, checked by the validator registered under *name*.

    Raises:
        ConfigError: There is no such validator.
        ToolError: The validator refused the value.
    """
    return validator_named(name)(tool=tool, field=field, value=value, **options)
