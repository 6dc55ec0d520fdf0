"""What a framework's account of a failed call means, as a ``ToolError``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from toolfault.errors import (
    REDACTED,
    ConfigError,
    ErrorCategory,
    ToolError,
    ToolInvocationError,
    ToolResult,
    default_adapt_error,
    exception_text,
    hide,
    is_secret_key,
    is_validation_error,
    secret_values,
    with_tools,
    without,
)
from toolfault.errors._types import has
from toolfault.integrations._declared import function_of
from toolfault.tools import Tool
from toolfault.tools._arguments import parse_arguments, parsed
from toolfault.tools._call import Call
from toolfault.tools._checks import secret_names
from toolfault.tools._outcome import advised
from toolfault.tools._threads import TIMED_OUT

if TYPE_CHECKING:
    from toolfault.integrations.seen import Seen

_MOST_CAUSES = 10  # a chain of causes may be circular
_LONGEST_JSON = 100_000
# Exceptions with which frameworks steer a run, by name: none of them is imported for this.
_CONTROL_FLOW = {
    "langgraph": {"GraphBubbleUp", "GraphInterrupt", "NodeInterrupt", "ParentCommand"},
    "pydantic_ai": {"CallDeferred", "ApprovalRequired", "ModelRetry", "ToolRetryError"},
    "fastmcp": {"UrlElicitationRequiredError"},
    "mcp": {"UrlElicitationRequiredError"},
    "strands": {"InterruptException"},
    "agent_framework": {"MiddlewareTermination", "UserInputRequiredException"},
    "llama_index": {"WaitingForEvent"},
    "workflows": {"WaitingForEvent"},  # of LlamaIndex, since it is a package of its own
}
# Packages that wrap what a body raised into an exception of their own; `workflows` does not, and
# hosts have packages of that name.
_WRAPPERS = frozenset(
    {*_CONTROL_FLOW, "agents", "crewai", "langchain", "langchain_core", "smolagents", "google"}
) - {"workflows"}
_SIDES = ("__cause__", "__context__")
_INPUT = re.compile(
    r"^(?P<field>\S[^\n]*)\n(?P<said>  [^\n]*?\[type=\w+, input_value=)(?P<value>[^\n]*?)"
    r"(?=, input_type=\w+\])",
    re.MULTILINE,
)


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and what it came from, outermost first."""
    for _ in range(_MOST_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def is_control_flow(error: BaseException | None) -> bool:
    """Whether ``error`` only steers the run: an interrupt, a deferred call, an approval."""
    if error is None:
        return False
    for base in type(error).__mro__:
        names = _CONTROL_FLOW.get(base.__module__.partition(".")[0])
        if names is not None and base.__name__ in names:
            return True
    return False


def failure_of(seen: Seen, arguments: dict[Any, Any] | None) -> ToolError | None:
    """Return the failure of a call; None where it succeeded.

    Args:
        seen: What the framework tells.
        arguments: What the model sent, parsed; None when it could not be.
    """
    error = _failure(seen, arguments)
    if error is None:
        return None
    secrets = secret_values(arguments)
    if secrets:
        hide(error, secrets)
    if error.category is ErrorCategory.PARAMETER:
        ours = not isinstance(seen.error, ToolError)
        error = advised(error, arguments, _tool_of(seen), ours=ours)
    return error


def _failure(seen: Seen, arguments: dict[Any, Any] | None) -> ToolError | None:
    tool = str(seen.tool)
    if seen.stage == "ok":
        return reported_failure(seen)
    if seen.stage == "unknown":
        return ToolError.unavailable(tool)
    if seen.stage == "cancelled":
        text = "the call was cancelled"
        return ToolError(tool, text, "cancelled", cause=seen.error, kind="exec", phase="handler")
    if seen.stage == "timeout":
        return _timed_out(seen)
    if seen.stage in ("parse", "validation"):
        found = _wrong_arguments(seen, arguments)
        if found is not None:
            return found
    if seen.stage == "returned" or seen.error is None:
        return reported_failure(seen) or _told_failure(seen)
    return _raised(seen)


def _timed_out(seen: Seen) -> ToolError:
    text = (exception_text(seen.error) if seen.error is not None else "") or seen.told
    error = ToolError(
        str(seen.tool),
        text or "the framework stopped waiting for the tool",
        "timeout",
        cause=seen.error,
        kind="exec",
        phase="handler",
    )
    error.quotes_exception = True  # nobody wrote this text for a reader
    return error


def _raised(seen: Seen) -> ToolError:
    """Return the failure of a body that raised, by what it raised itself."""
    tool = str(seen.tool)
    own: BaseException | None = None
    for cause in causes(seen.error):
        if isinstance(cause, ToolError):
            return cause.with_(tool=tool, event_id=None)
        if own is None or type(own).__module__.partition(".")[0] in _WRAPPERS:
            own = cause
    assert own is not None
    return ToolError.from_exception(tool, own).with_(kind="exec", phase="handler")


def _told_failure(seen: Seen) -> ToolError:
    """Return a failure of which only the text for the model is known."""
    text = seen.told or "the tool reported an error"
    error = ToolError.from_returned(str(seen.tool), {"error": text})
    error.quotes_exception = True  # it may quote the arguments
    return error.with_(kind="exec", phase="handler")


# Wrong arguments


def _wrong_arguments(seen: Seen, arguments: dict[Any, Any] | None) -> ToolError | None:
    """Return every issue of the arguments; None where it was not the arguments."""
    tool = str(seen.tool)
    if arguments is None and seen.arguments is not None:
        return _unreadable(seen)
    for cause in causes(seen.error):
        if is_validation_error(cause):
            if not _is_about_arguments(cause, seen.schema):
                return None  # the body validated something of its own
            secret = _secret_fields(seen.schema)
            error = ToolError.from_validation_error(tool, cause, arguments, secret_fields=secret)
            return error.with_(kind="validation", phase="validation")
        if isinstance(cause, ToolError) and cause.category is ErrorCategory.PARAMETER:
            return cause.with_(tool=tool, event_id=None)
    found = _checked_again(tool, seen.schema, arguments)
    if found is not None:
        return found
    text = seen.told or (exception_text(seen.error) if seen.error is not None else "")
    error = ToolError(
        tool,
        text or "the framework refused the arguments",
        "invalid_input",
        cause=seen.error,
        kind="validation",
        phase="validation",
    )
    error.quotes_exception = True  # it may quote the arguments
    return error


def _unreadable(seen: Seen) -> ToolError:
    source: BaseException = ValueError("not valid JSON")
    try:
        parse_arguments(seen.arguments, optional=True)
    except Exception as error:  # noqa: BLE001 - this is what is asked for
        source = error
    invocation = ToolInvocationError.deserialize(source, seen.arguments, tool=str(seen.tool))
    return default_adapt_error(invocation).with_(phase="parse")


def _is_about_arguments(error: Any, schema: Mapping[str, Any] | None) -> bool:
    """Whether a validation error names arguments of the tool.

    A body may validate data of its own: then no issue begins with a property of the schema.
    """
    properties = (schema or {}).get("properties")
    if not isinstance(properties, Mapping):
        return True
    issues = ToolError.from_validation_error("unknown", error).issues
    roots = [issue for issue in issues if issue.loc]
    if not roots:
        return True
    named = {str(issue.loc[0]) for issue in roots}
    extra = all(issue.code.value == "unknown_field" for issue in roots)
    return extra or not named.isdisjoint(properties)


def _checked_again(
    tool: str, schema: Mapping[str, Any] | None, arguments: dict[Any, Any] | None
) -> ToolError | None:
    """Return what our own checks say of the arguments, where the framework hides the details.

    Frameworks take ``"4"`` for a number and fill in defaults, so neither is said to be wrong.
    None without a schema, and where nothing is found.
    """
    if not schema or arguments is None:
        return None
    try:
        checked = _checker(tool, _as_read(schema))
    except Exception:  # noqa: BLE001 - no schema that can be used
        return None

    call = Call(tool, tool, arguments)
    call.arguments = arguments
    try:
        checked.prepare(call)
    except ToolError as error:
        return error.with_(kind="validation", phase="validation")
    except Exception as error:  # noqa: BLE001 - a library's error, or a schema that cannot work
        found = checked.rejection(call, error)
        return None if found is None else found.with_(kind="validation", phase="validation")
    return None


def _checker(tool: str, schema: dict[str, Any]) -> Tool:
    try:
        return Tool(_any_arguments, name=tool, parameters=schema, coerce=True)
    except ConfigError:  # the package jsonschema is not installed
        return Tool(function_of(schema), name=tool, coerce=True)


def _any_arguments(**arguments: Any) -> None:
    """Stand in for the function of a tool of which only the schema is known."""


def _as_read(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema as frameworks read it: what has a default may be left out."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return dict(schema)
    required = [
        name
        for name in schema.get("required", ())
        if not (isinstance(properties.get(name), Mapping) and "default" in properties[name])
    ]
    return {**schema, "required": required}


def _secret_fields(schema: Mapping[str, Any] | None) -> frozenset[str]:
    try:
        return frozenset(secret_names(dict(schema or {})))
    except Exception:  # noqa: BLE001 - a schema of an unusual form
        return frozenset()


# What a tool returned


def reported_failure(seen: Seen) -> ToolError | None:
    """Return the failure that a tool returned instead of raising, or None."""
    tool, result = str(seen.tool), seen.result
    # Never isinstance: it would read ``__class__`` of whatever the tool returned.
    if issubclass(type(result), ToolResult):
        if result.success:
            return None
        return result.error or ToolError.from_returned(tool, {"error": result.message})
    if type(result) is str and result.startswith("{") and '"success"' in result:
        result = _object_in(result)
    if type(result) is dict and result.get("success") is False:
        return ToolError.from_returned(tool, result).with_(kind="exec", phase="handler")
    for name in ("isError", "is_error"):
        if type(result) is dict:
            marked = result.get(name)
        else:
            marked = getattr(result, name) if has(result, name) else None
        if marked is True:
            return _told_failure(seen)
    return None


def _object_in(text: str) -> Any:
    try:
        return json.loads(text) if len(text) <= _LONGEST_JSON else None
    except (ValueError, RecursionError):
        return None


# What the model reads


def improved(seen: Seen, error: ToolError) -> str | None:
    """Return a better text than the framework's; None where its words stay.

    Only arguments that are wrong and names that do not exist are answered anew: everything at
    once, with what was received and hints. To a time-out is added how long the tool had.
    """
    if seen.stage == "unknown":
        return _with_tools(seen)
    if error.code == "timeout":
        return _with_limit(seen)
    if seen.stage not in ("parse", "validation") or error.category is not ErrorCategory.PARAMETER:
        return None
    if error.phase not in ("parse", "validation"):
        return None
    return _with_hints(seen, error).render("llm")


def _with_hints(seen: Seen, error: ToolError) -> ToolError:
    tool = _tool_of(seen) or cast("Tool", _Declared(seen.schema))
    arguments = parsed(seen.arguments)
    return error if arguments is None else advised(error.with_(), arguments, tool, ours=False)


class _Declared:
    """As much of a tool as hints need, where only its schema is known."""

    hints = "derived"

    def __init__(self, schema: Mapping[str, Any] | None) -> None:
        properties = (schema or {}).get("properties")
        self.names = tuple(properties) if isinstance(properties, Mapping) else ()

    @property
    def compiled(self) -> _Declared:
        """Itself: it knows the names of the arguments."""
        return self


def _with_tools(seen: Seen) -> str | None:
    told = seen.told or f"Error: there is no tool {str(seen.tool)[:128]!r}."
    text = with_tools(told, str(seen.tool), [str(name) for name in seen.known_tools])
    return text if text != seen.told else None


def _with_limit(seen: Seen) -> str | None:
    """Return the framework's words with the limit of a decorated tool, which most leave out."""
    said = next((s for s in map(str, causes(seen.error)) if s.startswith(TIMED_OUT)), None)
    if said is None or not seen.told or said.removeprefix(TIMED_OUT) in seen.told:
        return None
    end = "" if seen.told.endswith((".", "!", "?")) else "."
    return f"{seen.told}{end} {said}."


def shown(told: str, arguments: dict[Any, Any] | None) -> str:
    """Return what the model was told as it may be kept: without the secrets of the call."""
    return _without_inputs(str(without(told, secret_values(arguments))))


def _without_inputs(text: str) -> str:
    """Return pydantic's text without the values of secret fields, which follow on the next line."""

    def hidden(found: re.Match[str]) -> str:
        if not any(is_secret_key(part) for part in found["field"].split(".")):
            return found[0]
        return f"{found['field']}\n{found['said']}{REDACTED}"

    return _INPUT.sub(hidden, text) if "input_value=" in text else text


def _tool_of(seen: Seen) -> Tool | None:
    """Return the decorated tool behind a framework's tool, or None."""
    found = getattr(seen.fn, "tool", None)
    return found if isinstance(found, Tool) else None
