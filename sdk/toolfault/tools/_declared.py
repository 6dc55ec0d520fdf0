"""Reading what the decorator was given, while a mistake can still be shown at the decoration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any

from toolfault.errors import ConfigError

__all__ = ["argument_names", "checked_model", "checked_schema", "checked_timeout", "read_context"]

_MODEL_MARKS = (
    "model_validate",
    "validate_python",
    "parse_obj",
    "__pydantic_validator__",
    "__struct_fields__",
    "__dataclass_fields__",
    "__required_keys__",
)


def checked_timeout(timeout: float | None) -> float | None:
    """Return the timeout.

    Raises:
        ConfigError: It is no positive number of seconds.
    """
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
        raise ConfigError(f"timeout= takes a positive number of seconds, not {timeout!r}")
    return float(timeout)


def checked_model(model: Any) -> Any:
    """Return the model.

    Raises:
        ConfigError: Nothing of it can validate arguments.
    """
    if model is None or any(hasattr(model, mark) for mark in _MODEL_MARKS):
        return model
    raise ConfigError(
        "model= takes a pydantic model or TypeAdapter, a msgspec Struct, a dataclass or a "
        f"TypedDict, not {model!r}"
    )


def checked_schema(schema: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the JSON schema.

    Raises:
        ConfigError: It is none, or there is nothing to validate by it.
    """
    if schema is not None:
        try:
            from toolfault.tools._schema import validator_of
        except ImportError:
            raise ConfigError(
                "parameters= needs the package jsonschema: pip install 'toolfault[jsonschema]'"
            ) from None
        validator_of(schema)
    return schema


def read_context(
    fn: Callable[..., Any], context: str | Iterable[str] | Mapping[str, Any] | None
) -> tuple[str, tuple[str, ...], dict[str, Any]]:
    """Return what ``context=`` says: label, injected parameters, their values.

    One word serves both meanings of "context" in the contract: a string that names a parameter of
    the function is filled by the host and never by the model; any other string is what error texts
    call the arguments (``"HTTP request"``). A mapping names injected parameters with values.

    Raises:
        ConfigError: A name is no parameter, or there are two labels.
    """
    if context is None:
        return "parameters", (), {}
    names = argument_names(fn)
    if isinstance(context, Mapping):
        _all_known(context, names, fn)
        return "parameters", tuple(context), dict(context)
    given = [context] if isinstance(context, str) else list(context)
    labels = [text for text in given if text not in names]
    if len(labels) > 1:
        _all_known([text for text in labels if text.isidentifier()] or labels, names, fn)
    label = labels[0] if labels else "parameters"
    return label, tuple(text for text in given if text in names), {}


def _all_known(given: Iterable[str], names: tuple[str, ...], fn: Callable[..., Any]) -> None:
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ConfigError(
            f"context= names {unknown!r}, but {getattr(fn, '__name__', fn)} has no such parameter"
        )


def argument_names(fn: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the parameters of ``fn``."""
    if type(fn) is FunctionType and not hasattr(fn, "__wrapped__"):
        code = fn.__code__
        return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    import inspect

    try:
        return tuple(inspect.signature(fn).parameters)
    except (TypeError, ValueError):
        return ()
