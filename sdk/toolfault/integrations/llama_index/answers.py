"""What LlamaIndex answers the model for a call."""

from __future__ import annotations

from typing import Any

from toolfault.integrations.seen import Seen, schema_of

__all__ = ["answered"]


def answered(agent: Any, seen: Seen, output: Any) -> None:
    """Fill in what the tool returned, or why it did not and what the model reads instead."""
    tool, seen.fn = seen.fn, getattr(seen.fn, "fn", None)
    if not output.is_error:
        seen.result = output.raw_output
        return
    seen.error, seen.told = getattr(output, "exception", None), str(output.content)
    seen.known_tools = _names(agent)
    schema = None if tool is None else schema_of(tool.metadata.fn_schema)
    if schema is not None:
        seen.schema = {**schema, "additionalProperties": False}
    if tool is None:
        seen.stage = "unknown"
    elif seen.error is None:
        seen.stage = "returned"
    else:
        seen.stage = "validation" if _is_misbound(seen) else "exec"


def _is_misbound(seen: Seen) -> bool:
    """Whether Python refused the arguments: LlamaIndex calls the function with them as they are."""
    if not isinstance(seen.error, TypeError) or seen.schema is None:
        return False
    given, names = set(seen.arguments), set(seen.schema.get("properties", ()))
    return bool(given - names or set(seen.schema.get("required", ())) - given)


def _names(agent: Any) -> tuple[str, ...]:
    tools = getattr(agent, "tools", None) or ()
    return tuple(tool.metadata.name for tool in tools if hasattr(tool, "metadata"))
