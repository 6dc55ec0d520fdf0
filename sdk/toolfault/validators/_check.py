"""Validators as annotations: in pydantic models, dataclasses and plain functions."""

from __future__ import annotations

import sys

from toolfault.errors import ConfigError, ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Check"]


class Check:
    """A validator with its options, to be written into a type.

    `Annotated[int, Check(validate_bounded_int, min=1, max=10)]` works in pydantic models (without
    this package importing pydantic: a failure becomes an error of the field, with its code, next
    to all other errors) and in the parameters of a tool function.

    Args:
        validator: A validator of this package, one of your own of the same form, or the name of
            a registered one.
        options: What it takes besides `tool`, `field` and `value`.

    Raises:
        ConfigError: No validator is registered under that name.
    """

    def __init__(self, validator: Callable[..., object] | str, **options: object) -> None:
        if isinstance(validator, str):
            from toolfault.validators._registry import validator_named

            validator = validator_named(validator)
        if not callable(validator):
            raise ConfigError("Check takes a validator function or the name of a registered one")
        self.validator = validator
        self.options = options

    def validate(self, *, tool: str, field: str, value: object) -> object:
        """*value*, checked.

        Raises:
            ToolError: The validator refused it.
        """
        return self.validator(tool=tool, field=field, value=value, **self.options)

    def __get_pydantic_core_schema__(
        self, source: object, handler: Callable[[object], dict[str, object]]
    ) -> dict[str, object]:
        return {
            "type": "function-after",
            "function": {**_wants_info(handler), "function": self._in_pydantic},
            "schema": handler(source),
        }

    def _in_pydantic(self, value: object, info: object) -> object:
        field = getattr(info, "field_name", None) or "value"
        try:
            return self.validate(tool="", field=field, value=value)
        except ToolError as error:
            raise _pydantic_error(error, field) from error

    def __repr__(self) -> str:
        return f"Check({getattr(self.validator, '__name__', 'validator')})"


def _wants_info(handler: object) -> dict[str, object]:
    """How pydantic-core's plain schemas say that a function is told the name of its field.

    Since pydantic 2.4 as `with_info_after_validator_function` writes it; before, a field and
    everything else had forms of their own.
    """
    schemas = sys.modules.get("pydantic_core.core_schema")
    if hasattr(schemas, "with_info_after_validator_function"):
        return {"type": "with-info"}
    try:
        return {"type": "field", "field_name": handler.field_name}  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 - the handler of a type that is no field
        return {"type": "general"}


def _pydantic_error(error: ToolError, field: str) -> Exception:
    """*error* as an error of the field; pydantic adds the field, so the message leaves it out."""
    message = error.message.removeprefix(f"{field} ")
    context = {"text": message}
    if error.expected is not None:
        context["expected"] = error.expected
    custom = getattr(sys.modules.get("pydantic_core"), "PydanticCustomError", None)
    if custom is None:
        return ValueError(message)
    made: Exception = custom(error.code.value, "{text}", context)
    return made
