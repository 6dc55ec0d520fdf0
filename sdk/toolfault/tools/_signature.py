"""What a function takes, read once, when it is first called through the SDK."""

from __future__ import annotations

import contextlib
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any


def is_coroutine_function(fn: Any) -> bool:
    """Say whether calling ``fn`` gives a coroutine; ``inspect`` does not look into objects."""
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(_call_method(fn))


def _call_method(fn: Any) -> Any:
    """Return ``__call__`` as the class of ``fn`` defines it: the code of a callable object."""
    for base in type(fn).__mro__:
        if "__call__" in vars(base):
            return vars(base)["__call__"]
    return fn


def names_in_scope(fn: Any, depth: int) -> dict[str, Any]:
    """Return the local names of the decorating scope that the annotations of ``fn`` mention.

    ``from __future__ import annotations`` turns annotations into text; a class that was defined
    inside a function can then be found in that function's frame only, and only now.

    Args:
        fn: The function being decorated.
        depth: How many frames up the decorated function was defined.
    """
    if type(fn) is not FunctionType or "<locals>" not in fn.__qualname__:
        return {}
    try:
        texts = [text for text in fn.__annotations__.values() if isinstance(text, str)]
        scope = sys._getframe(depth + 1).f_locals if texts else {}  # noqa: SLF001
    except (NameError, ValueError):  # lazily evaluated annotations (PEP 649); no such frame
        return {}
    found: dict[str, Any] = {}
    for text in texts:
        for name in _names(text):
            if name in scope:
                found[name] = scope[name]
    return found


def _names(text: str) -> tuple[str, ...]:
    try:
        code: CodeType = compile(text, "<annotation>", "eval")
    except SyntaxError:
        return ()
    return code.co_names


class Parameters:
    """The parameters of a function, without those that the host fills.

    Attributes:
        annotations: Resolved annotation per parameter; Any where there is none or it cannot be
            resolved.
        defaults: Default value of those that have one.
        required: Names that have none.
        positional_only: Default value, by name and in order, of those that cannot be passed as
            keywords; without meaning where there is none.
        takes_extra: Whether the function takes any keyword.
        extra_annotation: Annotation of the values of those keywords.
        optional_context: Parameters the host fills that have a default.
        unresolved: Names of those whose annotation names what does not exist.
    """

    __slots__ = (
        "annotations",
        "defaults",
        "extra_annotation",
        "optional_context",
        "positional_only",
        "required",
        "takes_extra",
        "unresolved",
    )

    def __init__(self) -> None:
        self.annotations: dict[str, Any] = {}
        self.defaults: dict[str, Any] = {}
        self.required: list[str] = []
        self.positional_only: dict[str, Any] = {}
        self.takes_extra = False
        self.extra_annotation: Any = Any
        self.optional_context: list[str] = []
        self.unresolved: list[str] = []


def read_parameters(
    fn: Callable[..., Any], scope: Mapping[str, Any], injected: frozenset[str]
) -> Parameters:
    """Read the parameters of ``fn`` that the model fills.

    Args:
        fn: The function.
        scope: Names for resolving its annotations, see ``names_in_scope``.
        injected: Parameters that the host fills; left out.
    """
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # a builtin that does not say what it takes
        unknown = Parameters()
        unknown.takes_extra = True
        return unknown
    hints = _resolved(fn, scope)
    read = Parameters()
    for name, parameter in signature.parameters.items():
        annotation = hints.get(name, Any)
        if parameter.kind is parameter.VAR_POSITIONAL:
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            read.takes_extra = True
            read.extra_annotation = annotation
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            read.positional_only[name] = parameter.default
        if name in injected:
            if parameter.default is not parameter.empty:
                read.optional_context.append(name)
            continue
        read.annotations[name] = annotation
        if name not in hints and parameter.annotation is not parameter.empty:
            read.unresolved.append(name)
        if parameter.default is parameter.empty:
            read.required.append(name)
        else:
            read.defaults[name] = parameter.default
    return read


def _resolved(fn: Any, scope: Mapping[str, Any]) -> dict[str, Any]:
    """Return the annotations of ``fn``; one that cannot be resolved does not spoil the others."""
    target = fn if hasattr(fn, "__annotations__") else _call_method(fn)
    inner = target
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    known = {**getattr(inner, "__globals__", {}), **_closure(inner), **scope}
    try:
        return typing.get_type_hints(target, globalns=known, include_extras=True)
    except Exception:  # noqa: BLE001 - a name that does not exist here
        return _resolved_singly(target, known)


def _resolved_singly(target: Any, known: dict[str, Any]) -> dict[str, Any]:
    try:
        written = dict(target.__annotations__)
    except Exception:  # noqa: BLE001 - annotations that are evaluated on access (PEP 649)
        return {}
    found: dict[str, Any] = {}
    for name, annotation in written.items():
        holder = SimpleNamespace(__annotations__={name: annotation})
        with contextlib.suppress(Exception):  # this one stays unknown
            found.update(typing.get_type_hints(holder, globalns=known, include_extras=True))
    return found


def _closure(fn: Any) -> dict[str, Any]:
    code = getattr(fn, "__code__", None)
    cells = getattr(fn, "__closure__", None) or ()
    found: dict[str, Any] = {}
    for name, cell in zip(getattr(code, "co_freevars", ()), cells, strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # noqa: PERF203 - not filled yet
            continue
    return found
