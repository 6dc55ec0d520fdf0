"""One tool: what was declared of it, how its arguments are validated, and how it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import cache, partial
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any, Generic, TypeVar

from toolfault._forks import loading
from toolfault.errors import (
    ConfigError,
    Issue,
    ToolError,
    ToolInvocationError,
    ToolResult,
    safe_repr,
)
from toolfault.tools import _call
from toolfault.tools._arguments import parse_arguments
from toolfault.tools._call import RUNNING, Call, leave
from toolfault.tools._checks import Findings, Hints, HintsPlan, Plan, schema_hash, secret_names
from toolfault.tools._models import is_validation_error, model_check, plan_of_model
from toolfault.tools._outcome import (
    failed,
    fallback_aborted,
    fallback_failure,
    fallback_success,
    flow,
    log_unchecked,
    record_aborted,
    rejected_by_checks,
    repairs_of,
    returned,
    with_broken_json,
)
from toolfault.tools._settings import DEFAULTS
from toolfault.tools._signature import (
    Parameters,
    is_coroutine_function,
    read_parameters,
)
from toolfault.tools._specs import spec_of
from toolfault.tools._threads import await_within, call_in_thread, call_within

T = TypeVar("T")

# Reading what the decorator was given, while a mistake can still be shown at the decoration.


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


def checked_mark(idempotent: bool | None) -> bool | None:
    """Return the mark.

    Raises:
        ConfigError: It is neither true, false nor None.
    """
    if idempotent is None or isinstance(idempotent, bool):
        return idempotent
    raise ConfigError(f"idempotent= takes True, False or None, not {idempotent!r}")


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
        module = schema_module()
        if module is None:
            raise ConfigError("parameters= needs the package jsonschema: pip install jsonschema")
        module.validator_of(schema)
    return schema


@cache
def schema_module() -> ModuleType | None:
    """Load what validates by JSON schemas; None where its package is not installed."""
    with loading:
        try:
            return import_module("toolfault.tools._schema")
        except ImportError:
            return None


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
    try:
        return tuple(inspect.signature(fn).parameters)
    except (TypeError, ValueError):
        return ()


# A tool made ready to be called, once: its plan of validation and how its function is invoked.


class _once(Generic[T]):  # noqa: N801 - a decorator
    """A `cached_property` without a lock.

    Before Python 3.12 that one has a lock for all objects of a class, which a process that is
    forked while another thread looks at a schema would never get again.
    """

    def __init__(self, find: Callable[[Any], T]) -> None:
        self._find = find

    def __get__(self, owner: Any, _: object = None) -> T:
        found = self._find(owner)
        owner.__dict__[self._find.__name__] = found
        return found


class Compiled:
    """What is worked out once per tool, on its first call.

    Attributes:
        plan: Validates the arguments.
        parameters: The parameters the model fills.
    """

    def __init__(self, plan: Plan, parameters: Parameters) -> None:
        self.plan = plan
        self.parameters = parameters

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arguments the model may send."""
        try:
            properties = self.plan.schema().get("properties")
        except Exception:  # noqa: BLE001 - a model that cannot say its schema
            properties = None
        return tuple(properties or self.parameters.annotations)

    @_once
    def secret_fields(self) -> frozenset[str]:
        """Names of the fields that the schema marks as secret, as pydantic does a ``SecretStr``."""
        try:
            return frozenset(secret_names(self.plan.schema()))
        except Exception:  # noqa: BLE001 - a model that cannot say its schema
            return frozenset()

    @_once
    def schema_hash(self) -> str | None:
        """Hash of the parameter schema, 16 hex digits."""
        return schema_hash(self.plan.schema)

    def misbound(
        self, tool: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> ToolError | None:
        """Return the failure of a direct call whose arguments do not fit the function."""
        names = list(self.parameters.annotations)
        given = {*names[: len(args)], *kwargs}
        issues = [
            Issue(name, "missing_field") for name in self.parameters.required if name not in given
        ]
        if not self.parameters.takes_extra:
            issues += [Issue(name, "unknown_field") for name in kwargs if name not in names]
        return ToolError.from_issues(tool, issues) if issues else None


def _plan(tool: Tool, parameters: Parameters) -> Plan:
    if tool.model is not None:
        return plan_of_model(tool.model, parameters)
    if tool.schema is not None:
        module = schema_module()
        assert module is not None, "`checked_schema` has seen to that"
        plan: Plan = module.SchemaPlan(tool.schema, parameters)
        return plan
    hints = Hints(model_check)
    plan = HintsPlan(parameters, hints)
    unknown = [
        each.__qualname__ if isinstance(each, type) else safe_repr(each, 64)
        for each in hints.unchecked
    ]
    if unknown or parameters.unresolved:
        log_unchecked(tool.name, unknown, parameters.unresolved)
    return plan


# The tool.


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
        idempotent: Whether executing it again changes nothing more; None where nobody says.
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
        idempotent: bool | None = None,
        passthrough: type[BaseException] | tuple[type[BaseException], ...] = (),
        scope: Mapping[str, Any] | None = None,
    ) -> None:
        self.fn = fn
        self.name = str(name or getattr(fn, "__name__", type(fn).__name__))
        self.description: str | None = getattr(fn, "__doc__", None)
        yields_async = inspect.isasyncgenfunction(fn)
        self.yields = yields_async or inspect.isgeneratorfunction(fn)
        self.is_async = yields_async or is_coroutine_function(fn)
        self.model = checked_model(model)
        self.schema = checked_schema(parameters)
        self.label, self.injected, self._values = read_context(fn, context)
        self.coerce = coerce
        self.hints = hints
        self.echo = (echo,) if isinstance(echo, str) else tuple(echo)
        self.error_defaults = dict(error_defaults or {})
        self.adapt_error = adapt_error
        self.timeout = checked_timeout(timeout)
        self.idempotent = checked_mark(idempotent)
        self.passthrough = passthrough if isinstance(passthrough, tuple) else (passthrough,)
        self.scope = dict(scope or {})
        self._late = _Late()

    @property
    def compiled(self) -> Compiled:
        """How arguments are validated; compiled when it is first needed."""
        if self._late.compiled is None:
            parameters = read_parameters(self.fn, self.scope, frozenset(self.injected))
            self._late.compiled = Compiled(_plan(self, parameters), parameters)
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
            kwargs = self.prepare(call)
            invoke = self._invoker(call, kwargs)
            token = RUNNING.set(call)
            try:
                if self.timeout is None:
                    value = invoke(**kwargs)
                else:
                    value = call_within(partial(invoke, **kwargs), self.timeout)
            finally:
                leave(token)
        except Exception as exc:  # noqa: BLE001 - the boundary: handlers raise, calls do not
            return self._raised(call, exc)
        except BaseException as exc:
            self._aborted(call, exc)
            raise
        return self._returned(call, value)

    async def run_async(self, call: Call, *, threads: bool = False) -> ToolResult[Any]:
        """Run a call to its end without blocking the event loop for an async tool.

        Args:
            call: The call.
            threads: Whether a synchronous function runs in a thread.
        """
        try:
            kwargs = self.prepare(call)
            invoke = self._invoker(call, kwargs)
            token = RUNNING.set(call)
            try:
                if not self.is_async:
                    value = await self._await_sync(invoke, kwargs, threads=threads)
                elif self.timeout is None:
                    value = await invoke(**kwargs)
                else:
                    value = await await_within(invoke(**kwargs), self.timeout)
            finally:
                leave(token)
        except Exception as exc:  # noqa: BLE001 - the boundary: handlers raise, calls do not
            return self._raised(call, exc)
        except BaseException as exc:
            self._aborted(call, exc)
            raise
        return self._returned(call, value)

    def prepare(self, call: Call) -> dict[str, Any]:
        """Return the keyword arguments the model sent, validated.

        Raises:
            ToolError: The arguments are wrong; it says everything that is.
            Exception: What the parser or a model raises, see ``call.phase``.
        """
        compiled = self._late.compiled or self.compiled
        plan = compiled.plan
        if self.idempotent is not None:
            call.idempotent = self.idempotent
        raw = call.raw
        if type(raw) is not dict:
            call.phase = "parse"
            raw = parse_arguments(raw, optional=plan.optional)
            call.phase = "validation"
        call.arguments = raw
        call.validation_mode = plan.mode
        if _call.observers:
            call.schema_hash = compiled.schema_hash
        findings = call.findings = Findings(DEFAULTS.coerce if self.coerce is None else self.coerce)
        kwargs = plan.prepare(raw, findings)
        if findings.repairs:
            call.coercions = repairs_of(findings)
        if findings.phantoms is not None:
            call.phantom_arguments = tuple(findings.phantoms)
        if findings.found:
            call.rejection = rejected_by_checks(
                call.tool, findings, self.label, secret=compiled.secret_fields
            )
            raise call.rejection
        return kwargs

    def rejection(self, call: Call, exc: Exception) -> ToolError | None:
        """Return the failure a model's validation error means; None for any other exception."""
        if not is_validation_error(exc):
            return None
        compiled = self._late.compiled or self.compiled
        failure = ToolError.from_validation_error(
            call.tool,
            exc,
            call.arguments,
            self.label,
            parameters=tuple(compiled.parameters.annotations),
            secret_fields=compiled.secret_fields,
        )
        if call.findings is not None and call.findings.coerce:
            failure = with_broken_json(failure, call.arguments, self.label)
        call.rejection = failure
        return failure

    def _invoker(self, call: Call, kwargs: dict[str, Any]) -> Callable[..., Any]:
        """Return what runs the function by keywords, and add those that the host fills."""
        if self.injected:
            self._inject(call, kwargs)
        call.phase = "handler"
        flow("Executing tool '%s'", call.tool)
        invoke = self.fn
        positional = self.compiled.parameters.positional_only
        if positional:
            invoke = _by_position(invoke, positional)
        if self.yields:
            invoke = _collecting_async(invoke) if self.is_async else _collecting(invoke)
        return invoke

    def _inject(self, call: Call, kwargs: dict[str, Any]) -> None:
        for name in self.injected:
            if name in call.injected:
                kwargs[name] = call.injected[name]
            elif name in self._values:
                kwargs[name] = self._values[name]
            elif name not in self.compiled.parameters.optional_context:
                raise ToolError(
                    call.tool,
                    f"the host gave no value for the context parameter {name!r}",
                    "configuration_error",
                )

    async def _await_sync(
        self, invoke: Callable[..., Any], kwargs: dict[str, Any], *, threads: bool
    ) -> Any:
        if threads or self.timeout is not None:
            value = await call_in_thread(partial(invoke, **kwargs), self.timeout)
        else:
            value = invoke(**kwargs)
        # A plain function may still return something to be awaited.
        return await value if hasattr(type(value), "__await__") else value

    def _raised(self, call: Call, exc: Exception) -> ToolResult[Any]:
        if isinstance(exc, self.passthrough):
            self._aborted(call, exc)
            raise exc
        try:
            return failed(call, exc, self)
        except Exception as broken:  # noqa: BLE001 - the SDK never raises into the host
            return fallback_failure(call, exc, broken)

    def _aborted(self, call: Call, exc: BaseException) -> None:
        try:
            record_aborted(call, exc, passed_through=isinstance(exc, self.passthrough))
        except Exception as broken:  # noqa: BLE001 - the host's own exception goes on
            fallback_aborted(call, broken)

    def _returned(self, call: Call, value: Any) -> ToolResult[Any]:
        try:
            return returned(call, value, self)
        except Exception as broken:  # noqa: BLE001 - the tool did its work
            return fallback_success(call, value, broken)

    def __repr__(self) -> str:
        return f"<Tool {self.name!r}>"


def _by_position(fn: Callable[..., Any], positional: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a way to call ``fn`` by keywords, although it takes some by position only."""

    def invoke(**kwargs: Any) -> Any:
        given = [kwargs.pop(name, default) for name, default in positional.items()]
        return fn(*given, **kwargs)

    return invoke


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
