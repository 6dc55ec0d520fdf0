"""The ``tool`` decorator."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, overload

from toolfault.errors import ConfigError
from toolfault.tools._direct import wrap_async, wrap_generator, wrap_sync
from toolfault.tools._protocols import AsyncTool, P, R, SyncTool, ToolDecorator
from toolfault.tools._signature import names_in_scope
from toolfault.tools._tool import Adapter, Tool

_Context = str | Iterable[str] | Mapping[str, Any] | None
_Passthrough = type[BaseException] | tuple[type[BaseException], ...]


# A coroutine is also "any R", so the overloads overlap; the first one wins, as meant.
@overload
def tool(  # type: ignore[overload-overlap]
    fn: Callable[P, Coroutine[Any, Any, R]],
    /,
    *,
    name: str | None = None,
    model: Any = None,
    parameters: Mapping[str, Any] | None = None,
    context: _Context = None,
    coerce: bool | None = None,
    hints: str | Mapping[str, str] | None = None,
    echo: str | Iterable[str] = (),
    error_defaults: Mapping[str, Any] | None = None,
    adapt_error: Adapter | None = None,
    timeout: float | None = None,
    idempotent: bool | None = None,
    passthrough: _Passthrough = (),
) -> AsyncTool[P, R]: ...


@overload
def tool(
    fn: Callable[P, R],
    /,
    *,
    name: str | None = None,
    model: Any = None,
    parameters: Mapping[str, Any] | None = None,
    context: _Context = None,
    coerce: bool | None = None,
    hints: str | Mapping[str, str] | None = None,
    echo: str | Iterable[str] = (),
    error_defaults: Mapping[str, Any] | None = None,
    adapt_error: Adapter | None = None,
    timeout: float | None = None,
    idempotent: bool | None = None,
    passthrough: _Passthrough = (),
) -> SyncTool[P, R]: ...


@overload
def tool(
    fn: None = None,
    /,
    *,
    name: str | None = None,
    model: Any = None,
    parameters: Mapping[str, Any] | None = None,
    context: _Context = None,
    coerce: bool | None = None,
    hints: str | Mapping[str, str] | None = None,
    echo: str | Iterable[str] = (),
    error_defaults: Mapping[str, Any] | None = None,
    adapt_error: Adapter | None = None,
    timeout: float | None = None,
    idempotent: bool | None = None,
    passthrough: _Passthrough = (),
) -> ToolDecorator: ...


def tool(fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:  # noqa: D417
    """Make a function a tool: same function, plus ``call`` for what a model sends.

    Calling the decorated function runs it as written: same value, same exceptions. ``call``
    takes a JSON string, a mapping or keywords, validates everything at once, and returns a
    ``ToolResult`` that says to the model exactly what to fix. Both leave one record per call.

    Args:
        fn: The function; left out when options are given: ``@tool(timeout=5)``.
        name: Name the model calls it by; the function's own by default.
        model: Validates the arguments: a pydantic model or TypeAdapter, a msgspec Struct, a
            dataclass or a TypedDict. Its fields reach the function as keyword arguments.
        parameters: JSON schema of the arguments, instead of the type hints.
        context: Names of parameters the host fills (never the model), or what error texts call
            the arguments (``"HTTP request"``); see ``read_context``.
        coerce: Repair bool, int, float and JSON given as strings; None follows ``init``.
        hints: ``"derived"`` for did-you-mean and examples, or authored hints: one text, or texts
            by field (``"*"`` for the tool as a whole).
        echo: Parameters that the contract dict repeats.
        error_defaults: Data keys of the contract dict on failure.
        adapt_error: ``adapt_error(ToolInvocationError) -> ToolError``, called once per failed call.
        timeout: Seconds a call may take; see ``toolfault.tools._threads`` for the limits.
        idempotent: Whether the tool, executed twice with the same arguments, does no more than
            executed once: True too for one that only reads. False for one that sends, pays or
            creates: its repeated executions are counted. None where you do not say.
        passthrough: Exception types that are recorded and go on to the caller.

    Raises:
        ConfigError: An option cannot work, or there is nothing to call.
    """
    if fn is None:
        return lambda given: _decorated(given, options)
    return _decorated(fn, options)


def _decorated(fn: Any, options: dict[str, Any]) -> Any:
    if isinstance(fn, Tool) or isinstance(getattr(fn, "tool", None), Tool):
        raise ConfigError("this function is a tool already")
    if isinstance(fn, staticmethod):
        return staticmethod(_decorated(fn.__func__, options))
    if isinstance(fn, classmethod):
        return ToolMethod(fn.__func__, options, names_in_scope(fn.__func__, depth=2), by_class=True)
    if not callable(fn):
        raise ConfigError(f"tool() decorates a function, not {type(fn).__name__}")
    unknown = set(options) - _OPTIONS
    if unknown:
        raise TypeError(f"tool() got unexpected options {sorted(unknown)}")
    scope = names_in_scope(fn, depth=2)
    if _is_method(fn):
        return ToolMethod(fn, options, scope)
    return _wrapped(Tool(fn, scope=scope, **options))


_OPTIONS = {
    "name",
    "model",
    "parameters",
    "context",
    "coerce",
    "hints",
    "echo",
    "error_defaults",
    "adapt_error",
    "timeout",
    "idempotent",
    "passthrough",
}


def _wrapped(core: Tool) -> Any:
    """Return a real function around the tool, so that frameworks see what they expect."""
    if core.yields:
        face: Any = wrap_generator(core)
    else:
        face = wrap_async(core) if core.is_async else wrap_sync(core)
    face.tool = core
    face.call = core.call
    face.spec = core.spec
    return face


def _is_method(fn: Callable[..., Any]) -> bool:
    """Say whether ``fn`` is being defined in a class body and takes the instance."""
    code = getattr(fn, "__code__", None)
    owner = getattr(fn, "__qualname__", "").rpartition(".")[0]
    if code is None or not owner or owner.endswith("<locals>"):
        return False
    return bool(code.co_argcount) and code.co_varnames[0] in ("self", "cls")


class ToolMethod:
    """A decorated method: each access gives the tool of that instance, or class, as with methods.

    Nothing is kept on the instance, so that it can be copied, pickled and overridden; how the
    arguments are validated is worked out once for all of them.

    Args:
        fn: The function in the class body.
        options: Options of the decorator.
        scope: Local names that its annotations mention.
        by_class: Whether it is a class method.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        options: dict[str, Any],
        scope: Mapping[str, Any],
        *,
        by_class: bool = False,
    ) -> None:
        functools.update_wrapper(self, fn)
        self._fn = fn
        self._tool = Tool(fn, scope=scope, **options)
        self._by_class = by_class

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        # Up to Python 3.12 a classmethod around this one asks for the class as the instance.
        if self._by_class or isinstance(instance, type):
            instance = instance if isinstance(instance, type) else owner
        elif instance is None:
            return self
        return _wrapped(self._tool.bound_to(self._fn.__get__(instance, owner)))

    def __call__(self, instance: object, /, *args: Any, **kwargs: Any) -> Any:
        return self.__get__(instance, type(instance))(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in ("call", "tool"):
            # From Python 3.13 on, a classmethod around this one no longer says which class it is.
            raise AttributeError(
                f"'{self._fn.__name__}' is a tool of an instance or a class: reach it through one, "
                "and write @tool above @classmethod"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def as_tool(fn: Any) -> Tool:
    """Return the tool behind a decorated function; a bare function is decorated first.

    Raises:
        ConfigError: ``fn`` is nothing that can be called.
    """
    if isinstance(fn, Tool):
        return fn
    known = getattr(fn, "tool", None)
    if isinstance(known, Tool):
        return known
    made: Tool = _decorated(fn, {}).tool
    return made
