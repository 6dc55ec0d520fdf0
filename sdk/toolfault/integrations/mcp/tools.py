"""What a server says of its tools, read alike in 1.x and 2.x."""

from __future__ import annotations

from typing import Any

__all__ = ["idempotent", "member", "schema_of"]


def schema_of(tool: Any) -> Any:
    """Return the schema of the arguments of a tool that was listed."""
    return member(tool, "input_schema", "inputSchema")


def idempotent(tool: Any) -> bool | None:
    """Return whether calling a listed tool again changes nothing more; None where it does not say.

    By its annotations. A server that says anything of what a tool does leaves the rest at the
    defaults of the specification (2025-06-18, ``ToolAnnotations``), by which a tool that writes is
    not idempotent.
    """
    said = getattr(tool, "annotations", None)
    reads = member(said, "read_only_hint", "readOnlyHint")
    is_idempotent = member(said, "idempotent_hint", "idempotentHint")
    if reads or is_idempotent:
        return True
    destroys = member(said, "destructive_hint", "destructiveHint")
    return None if reads is is_idempotent is destroys is None else False


def member(owner: Any, name: str, name_in_1: str) -> Any:
    """Return an attribute by its name in 2.x or in 1.x; asked for by both, FastMCP warns."""
    return getattr(owner, name if hasattr(owner, name) else name_in_1, None)
