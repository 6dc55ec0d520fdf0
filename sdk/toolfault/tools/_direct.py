"""Direct calls of decorated functions: exactly the bare function, plus the record.

The same return value, the same exceptions, nothing validated, nothing logged: whoever calls the
function directly deals with its exceptions. A framework that calls it for a model is no such
caller: there ``coerce`` and ``timeout`` of the tool hold.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from types import FunctionType
from typing import Any

from toolfault.errors import ToolError, ToolResult
from toolfault.tools import _call
from toolfault.tools._call import RUNNING, Call, Frame, finished, leave, mark_reported
from toolfault.tools._checks import Findings
from toolfault.tools._outcome import describe, fallback_aborted, record_aborted, repairs_of
from toolfault.tools._settings import DEFAULTS
from toolfault.tools._threads import await_within, call_within
from toolfault.tools._tool import Tool


def wrap_sync(tool: Tool) -> Callable[..., Any]:
    """Return the function of ``tool``, recording every call that somebody listens to."""
    fn = tool.fn

    @functools.wraps(fn)
    def direct(*args: Any, **kwargs: Any) -> Any:
        framed = type(RUNNING.get()) is Frame
        if not framed and not _call.observers:
            return fn(*args, **kwargs)
        call = _begun(tool, args, kwargs)
        if framed:
            kwargs = _mended(call, tool, args, kwargs)
        token = RUNNING.set(call)
        try:
            if framed and tool.timeout is not None:
                value = call_within(functools.partial(fn, *args, **kwargs), tool.timeout)
            else:
                value = fn(*args, **kwargs)
        except BaseException as exc:
            RUNNING.reset(token)  # first: what is around the call decides who reports it
            _note_raise(call, exc, tool, (args, kwargs))
            raise
        RUNNING.reset(token)
        _note_return(call, value, tool)
        return value

    return direct


def wrap_async(tool: Tool) -> Callable[..., Any]:
    """Return the coroutine function of ``tool``, recording every call that somebody listens to."""
    fn = tool.fn

    @functools.wraps(fn)
    async def direct(*args: Any, **kwargs: Any) -> Any:
        framed = type(RUNNING.get()) is Frame
        if not framed and not _call.observers:
            return await fn(*args, **kwargs)
        call = _begun(tool, args, kwargs)
        if framed:
            kwargs = _mended(call, tool, args, kwargs)
        token = RUNNING.set(call)
        try:
            if framed and tool.timeout is not None:
                value = await await_within(fn(*args, **kwargs), tool.timeout)
            else:
                value = await fn(*args, **kwargs)
        except BaseException as exc:
            leave(token)  # first: what is around the call decides who reports it
            _note_raise(call, exc, tool, (args, kwargs))
            raise
        leave(token)
        _note_return(call, value, tool)
        return value

    return direct


def _begun(tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """Return the record of a call that begins, without what the host fills."""
    call = Call(tool.name, tool.name)
    call.phase = "handler"
    if tool.idempotent is not None:
        call.idempotent = tool.idempotent
    call.arguments = kwargs
    if args or tool.injected:
        named = {**dict(zip(tool.argument_names, args, strict=False)), **kwargs}
        call.arguments = {name: value for name, value in named.items() if name not in tool.injected}
    return call


def wrap_generator(tool: Tool) -> Callable[..., Any]:
    """Return the (async) generator function of ``tool``; its record is left when it has ended.

    A generator that its caller stops reading early has done what it was asked for: a success.
    """
    return _async_generator(tool) if tool.is_async else _generator(tool)


@contextlib.contextmanager
def _recorded(tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[None]:
    """Leave the record of a generator once it has ended, or its caller reads no further."""
    if not _call.observers:
        yield
        return
    call = _begun(tool, args, kwargs)
    try:
        yield
    except GeneratorExit:
        _note_return(call, None, tool)
        raise
    except BaseException as exc:
        _note_raise(call, exc, tool, (args, kwargs))
        raise
    _note_return(call, None, tool)


def _generator(tool: Tool) -> Callable[..., Any]:
    fn = tool.fn

    @functools.wraps(fn)
    def direct(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with _recorded(tool, args, kwargs):
            return (yield from fn(*args, **kwargs))

    return direct


def _async_generator(tool: Tool) -> Callable[..., Any]:
    fn = tool.fn

    @functools.wraps(fn)
    async def direct(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        with _recorded(tool, args, kwargs):
            # What ``yield from`` would do, which an async generator may not say.
            source = fn(*args, **kwargs)
            step = source.__anext__()
            while True:
                try:
                    item = await step
                except StopAsyncIteration:
                    return
                try:
                    sent = yield item
                except GeneratorExit:
                    await source.aclose()
                    raise
                except BaseException as thrown:  # noqa: BLE001 - the generator's, to be handled
                    step = source.athrow(thrown)
                else:
                    step = source.asend(sent)

    return direct


def _mended(
    call: Call, tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments repaired as the tool's ``coerce`` says, where that makes them right.

    Only a framework's call is repaired: whoever calls the function directly gets it as written.
    """
    coerce = DEFAULTS.coerce if tool.coerce is None else tool.coerce
    if args or not coerce:
        return kwargs
    try:
        findings = Findings(True)
        sent = tool.compiled.plan.prepare(dict(call.arguments or {}), findings)
        if findings.found or not findings.repairs:
            return kwargs
        call.coercions = repairs_of(findings)
        return {**kwargs, **{name: sent[name] for name in call.arguments or {} if name in sent}}
    except Exception:  # noqa: BLE001 - what cannot be repaired goes on as it came
        return kwargs


def _note_return(call: Call, value: Any, tool: Tool) -> None:
    try:
        kind = type(value)
        if kind is dict or issubclass(kind, ToolResult):
            error = _returned_error(call, value)
            finished(call, value, None if error is None else describe(call, error, tool))
        else:
            finished(call, value, None)
    except Exception as broken:  # noqa: BLE001 - the SDK never raises into the host
        fallback_aborted(call, broken)


def _returned_error(call: Call, value: Any) -> ToolError | None:
    """Return the failure that a returned value reports, or None."""
    if type(value) is dict and value.get("success") is False:
        return ToolError.from_returned(call.tool, value)
    if issubclass(type(value), ToolResult) and not value.success:
        return value.error or ToolError.from_returned(call.tool, {"error": value.message})
    return None


def _note_raise(
    call: Call, exc: BaseException, tool: Tool, given: tuple[tuple[Any, ...], dict[str, Any]]
) -> None:
    try:
        if not isinstance(exc, Exception) or isinstance(exc, tool.passthrough):
            record_aborted(call, exc, passed_through=isinstance(exc, tool.passthrough))
            return
        mark_reported(exc, tool.name)
        cause: Exception = exc
        if _is_binding_error(exc, tool):
            call.phase = "validation"
            cause = tool.compiled.misbound(tool.name, *given) or exc
        finished(call, None, describe(call, cause, tool))
    except Exception as broken:  # noqa: BLE001 - the host's own exception goes on
        fallback_aborted(call, broken)


def _is_binding_error(exc: BaseException, tool: Tool) -> bool:
    """Say whether Python refused the arguments: the function's own frame was never entered."""
    if type(exc) is not TypeError or type(tool.fn) is not FunctionType:
        return False
    return exc.__traceback__ is not None and exc.__traceback__.tb_next is None
