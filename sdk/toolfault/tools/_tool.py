"""One tool: a function, how its arguments are validated, and what its failures say."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from toolfault.errors import ToolError, ToolInvocationError, ToolResult
from toolfault.tools import _fork  # noqa: F401 - forks wait for what this module loads late
from toolfault.tools._call import RUNNING, Call, leave
from toolfault.tools._declared import (
    argument_names,
    checked_model,
    checked_schema,
    checked_timeout,
    read_context,
)
from toolfault.tools._log import flow
from toolfault.tools._outcome import (
    failed,
    returned,
    salvaged_failure,
    salvaged_success,
    salvaged_tear,
    torn_off,
)
from toolfault.tools._settings import DEFAULTS
from toolfault.tools._signature import (
    is_async_generator_function,
    is_coroutine_function,
    is_generator_function,
)

if TYPE_CHECKING:
    from toolfault.tools._compiled import Compiled

__all__ = ["Adapter", "Tool"]

Adapter = Callable[[ToolInvocationError], ToolError]


class _Late:
    """What is worked out when it is first needed, once for all twins of a tool."""

    __slots__ = ("compiled", "names")

    def __init__(self) -> None:
        self.compiled: Compiled | None = None
        self.names: tuple[str, ...] | None = None


class Tool:
    """A function that a model may call, with everything that was declared about it.

    Made by the ``tool`` decorator and reached as ``decorated.tool``. The arguments are those of
    the decorator; ``scope`` holds local names that the annotations mention.

    Attributes:
        name: Name the model calls it by.
        fn: The function as written.
        is_async: Whether it is a coroutine function, or an async generator function.
        yields: Whether it is a generator function, async or not; ``call`` gives a list of all.
        description: Its docstring.
        label: What error texts call its arguments (``parameters``).
        injected: Parameters that the host fills, never the model.
        echo: Parameters that the contract dict repeats.
        error_defaults: Data keys of the contract dict on failure.
        hints: Authored hints by field, or ``"derived"``, or None.
        adapt_error: The tool's own adapter, or None.
        timeout: Seconds a call may take, or None.
        passthrough: Exception types that go on to the caller.
    """

    def __init__(  # noqa: PLR0913 - the decorator's options, all keyword-only
        self,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        model: Any = None,
        parameters: Mapping[str, Any] | None = None,
        context: str | Iterable[str] | Mapping[str, Any] | None = None,
        coerce: bool | None = None,
        hints: str | Mapping[str, str] | None = None,
        echo: str | Iterable[str] = (),
        error_defaults: Mapping[str, Any] | None = None,
        adapt_error: Adapter | None = None,
        timeout: float | None = None,
        passthrough: type[BaseException] | tuple[type[BaseException], ...] = (),
        scope: Mapping[str, Any] | None = None,
    ) -> None:
        self.fn = fn
        self.name = str(name or getattr(fn, "__name__", type(fn).__name__))
        self.description: str | None = getattr(fn, "__doc__", None)
        self.yields = is_generator_function(fn) or is_async_generator_function(fn)
        self.is_async = is_coroutine_function(fn) or is_async_generator_function(fn)
        self.model = checked_model(model)
        self.schema = checked_schema(parameters)
        self.label, self.injected, self._values = read_context(fn, context)
        self.coerce = coerce
        self.hints = hints
        self.echo = (echo,) if isinstance(echo, str) else tuple(echo)
        self.error_defaults = dict(error_defaults or {})
        self.adapt_error = adapt_error
        self.timeout = checked_timeout(timeout)
        self.passthrough = passthrough if isinstance(passthrough, tuple) else (passthrough,)
        self.scope = dict(scope or {})
        self._late = _Late()

    @property
    def compiled(self) -> Compiled:
        """How arguments are validated; compiled when it is first needed."""
        if self._late.compiled is None:
            from toolfault.tools._compiled import compile_tool

            self._late.compiled = compile_tool(self)
        return self._late.compiled

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the arguments, to be shown to the model."""
        return self.compiled.plan.schema()

    def spec(self, provider: str = "openai") -> dict[str, Any]:
        """Return what a model provider is told of the tool: name, description, parameters.

        The description is the docstring without its sections; what ``Args:`` says of a parameter
        becomes the description of that parameter.

        Args:
            provider: ``openai``, ``openai-responses``, ``anthropic`` or ``mcp``.

        Raises:
            ConfigError: The provider is another one.
        """
        from toolfault.tools._specs import spec_of

        return spec_of(self, provider)

    @property
    def argument_names(self) -> tuple[str, ...]:
        """Names of all parameters of the function, in order."""
        if self._late.names is None:
            self._late.names = argument_names(self.fn)
        return self._late.names

    def with_context(self, **values: Any) -> Tool:
        """Return the same tool with values for its context parameters."""
        twin = self.bound_to(self.fn)
        twin._values = {**self._values, **values}  # noqa: SLF001 - its own twin
        return twin

    def bound_to(self, fn: Callable[..., Any]) -> Tool:
        """Return the same tool around ``fn``, which takes the same arguments."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.fn = fn
        return twin

    def named(self, name: str) -> Tool:
        """Return the same tool under another name."""
        if name == self.name:
            return self
        twin = self.bound_to(self.fn)
        twin.name = name
        return twin

    def call(
        self, arguments: object = None, /, **fields: Any
    ) -> ToolResult[Any] | Coroutine[Any, Any, ToolResult[Any]]:
        """Validate the arguments, run the function, and return a result; never raises.

        A coroutine function's call is a coroutine. ``BaseException``s that are no ``Exception``
        and the ``passthrough`` types are recorded and raised.

        Args:
            arguments: JSON string, mapping, or None.
            fields: The arguments as keywords instead.

        Raises:
            TypeError: A JSON string and keywords were given at once.
        """
        if fields:
            arguments = _with_fields(arguments, fields)
        call = Call(self.name, self.name, arguments)
        return self.run_async(call) if self.is_async else self.run(call)

    __call__ = call

    def run(self, call: Call) -> ToolResult[Any]:
        """Run a call of a synchronous tool to its end."""
        try:
            kwargs, invoke = self._prepare(call)
            token = RUNNING.set(call)
            try:
                if self.timeout is None:
                    value = invoke(**kwargs)
                else:
                    value = self._run_within(invoke, kwargs, self.timeout)
            finally:
                leave(token)
        except Exception as exc:  # noqa: BLE001 - the boundary: handlers raise, calls do not
            return self._raised(call, exc)
        except BaseException as exc:
            self._torn(call, exc)
            raise
        return self._returned(call, value)

    async def run_async(self, call: Call, *, threads: bool = False) -> ToolResult[Any]:
        """Run a call to its end without blocking the event loop for an async tool.

        Args:
            call: The call.
            threads: Whether a synchronous function runs in a thread.
        """
        try:
            kwargs, invoke = self._prepare(call)
            token = RUNNING.set(call)
            try:
                if not self.is_async:
                    value = await self._await_sync(invoke, kwargs, threads=threads)
                elif self.timeout is None:
                    value = await invoke(**kwargs)
                else:
                    from toolfault.tools._threads import await_within

                    value = await await_within(invoke(**kwargs), self.timeout)
            finally:
                leave(token)
        except Exception as exc:  # noqa: BLE001 - the boundary: handlers raise, calls do not
            return self._raised(call, exc)
        except BaseException as exc:
            self._torn(call, exc)
            raise
        return self._returned(call, value)

    def _prepare(self, call: Call) -> tuple[dict[str, Any], Callable[..., Any]]:
        """Return the keyword arguments of the function and what to call with them."""
        compiled = self._late.compiled or self.compiled
        coerce = DEFAULTS.coerce if self.coerce is None else self.coerce
        kwargs = compiled.prepare(call, coerce, self.label)
        if self.injected:
            self._inject(call, kwargs)
        call.phase = "handler"
        flow("Executing tool '%s'", call.tool)
        invoke = compiled.invoker(self.fn)
        if self.yields:
            invoke = _collecting_async(invoke) if self.is_async else _collecting(invoke)
        return kwargs, invoke

    def _inject(self, call: Call, kwargs: dict[str, Any]) -> None:
        for name in self.injected:
            if name in call.injected:
                kwargs[name] = call.injected[name]
            elif name in self._values:
                kwargs[name] = self._values[name]
            elif name not in self.compiled.optional_context:
                raise ToolError(
                    call.tool,
                    f"the host gave no value for the context parameter {name!r}",
                    "configuration_error",
                )

    def _run_within(
        self, invoke: Callable[..., Any], kwargs: dict[str, Any], seconds: float
    ) -> Any:
        from toolfault.tools._threads import call_within

        return call_within(lambda: invoke(**kwargs), seconds)

    async def _await_sync(
        self, invoke: Callable[..., Any], kwargs: dict[str, Any], *, threads: bool
    ) -> Any:
        if threads or self.timeout is not None:
            from toolfault.tools._threads import call_in_thread

            value = await call_in_thread(lambda: invoke(**kwargs), self.timeout)
        else:
            value = invoke(**kwargs)
        # A plain function may still return something to be awaited.
        return await value if hasattr(type(value), "__await__") else value

    def _raised(self, call: Call, exc: Exception) -> ToolResult[Any]:
        if isinstance(exc, self.passthrough):
            self._torn(call, exc)
            raise exc
        try:
            return failed(call, exc, self)
        except Exception as broken:  # noqa: BLE001 - the SDK never raises into the host
            return salvaged_failure(call, exc, broken)

    def _torn(self, call: Call, exc: BaseException) -> None:
        try:
            torn_off(call, exc, passed_through=isinstance(exc, self.passthrough))
        except Exception as broken:  # noqa: BLE001 - the host's own exception goes on
            salvaged_tear(call, broken)

    def _returned(self, call: Call, value: Any) -> ToolResult[Any]:
        try:
            return returned(call, value, self)
        except Exception as broken:  # noqa: BLE001 - the tool did its work
            return salvaged_success(call, value, broken)

    def __repr__(self) -> str:
        return f"<Tool {self.name!r}>"


def _collecting(invoke: Callable[..., Any]) -> Callable[..., list[Any]]:
    """Return a way to call a generator function that gives all it yields: a model reads a whole."""

    def collect(**kwargs: Any) -> list[Any]:
        return list(invoke(**kwargs))

    return collect


def _collecting_async(
    invoke: Callable[..., Any],
) -> Callable[..., Coroutine[Any, Any, list[Any]]]:
    async def collect(**kwargs: Any) -> list[Any]:
        return [item async for item in invoke(**kwargs)]

    return collect


def _with_fields(arguments: object, fields: dict[str, Any]) -> dict[str, Any]:
    if arguments is None:
        return fields
    if isinstance(arguments, Mapping):
        return {**arguments, **fields}
    raise TypeError("pass the arguments as one JSON string or as keywords, not both")
