"""How decorated functions look to a type checker: their own signature, plus ``call``.

A decorated function is a real function at run time; these protocols say what else it has. Like any
function it binds when it is reached through an instance, so that tools may be methods.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from toolfault.errors import ToolResult
from toolfault.tools._tool import Tool

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")


class _Decorated(Protocol):
    """What every decorated function has."""

    tool: Tool
    __name__: str
    __doc__: str | None

    def spec(self, provider: str = "openai") -> dict[str, Any]:
        """Return what a model provider is told of the tool."""
        ...


class SyncTool(_Decorated, Protocol[P, R]):
    """A decorated function: called like the function itself, or guarded through ``call``."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function as written."""
        ...

    def call(self, arguments: object = None, /, **fields: Any) -> ToolResult[R]:
        """Validate, run, and return a result; never raises."""
        ...

    @overload
    def __get__(self, instance: None, owner: type[Any], /) -> SyncTool[P, R]: ...

    @overload
    def __get__(
        self: SyncTool[Concatenate[S, Q], R], instance: S, owner: type[S] | None = None, /
    ) -> SyncTool[Q, R]: ...


class AsyncTool(_Decorated, Protocol[P, R]):
    """A decorated coroutine function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Run the coroutine function as written."""
        ...

    def call(
        self, arguments: object = None, /, **fields: Any
    ) -> Coroutine[Any, Any, ToolResult[R]]:
        """Validate, run, and return a result; never raises."""
        ...

    @overload
    def __get__(self, instance: None, owner: type[Any], /) -> AsyncTool[P, R]: ...

    @overload
    def __get__(
        self: AsyncTool[Concatenate[S, Q], R], instance: S, owner: type[S] | None = None, /
    ) -> AsyncTool[Q, R]: ...


class ToolDecorator(Protocol):
    """What ``tool(...)`` with options alone returns."""

    # A coroutine is also "any R", so the two overloads overlap; the first one wins, as meant.
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, fn: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncTool[P, R]: ...

    @overload
    def __call__(self, fn: Callable[P, R], /) -> SyncTool[P, R]: ...
