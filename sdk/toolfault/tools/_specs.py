"""A tool as model providers want to be told of it."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, Final

from toolfault.errors import ConfigError

if TYPE_CHECKING:
    from toolfault.tools._tool import Tool

PROVIDERS: Final = ("openai", "openai-responses", "anthropic", "mcp")

# The headings that end the description and, of these, those whose entries are parameters: Google
# style (Google Python Style Guide 3.8.3), NumPy style (numpydoc) and reStructuredText fields.
_HEADING: Final = re.compile(
    r"^(args|arguments|parameters|params|returns?|yields?|raises|examples?|notes?|attributes"
    r"|see also|warnings?|references|todo)\s*:?\s*$",
    re.IGNORECASE,
)
_OF_PARAMETERS: Final = frozenset({"args", "arguments", "parameters", "params"})
_ENTRY: Final = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY_ENTRY: Final = re.compile(r"^\*{0,2}(\w+)(?:\s*:.*)?$")
_FIELD: Final = re.compile(r"^:(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)$")
_OTHER_FIELD: Final = re.compile(r"^:(?:return|returns|rtype|raises?|type|yields?)\b")


def spec_of(tool: Tool, provider: str) -> dict[str, Any]:
    """Return the declaration of ``tool`` for a provider: name, description, parameter schema.

    Args:
        tool: The tool.
        provider: ``openai`` (Chat Completions), ``openai-responses``, ``anthropic`` (Messages) or
            ``mcp`` (an entry of ``tools/list``).

    Raises:
        ConfigError: The provider is another one.
    """
    described, parameters = _described(tool)
    base: dict[str, Any] = {"name": tool.name}
    if described:
        base["description"] = described
    if provider == "openai":
        return {"type": "function", "function": {**base, "parameters": parameters}}
    if provider == "openai-responses":
        return {"type": "function", **base, "parameters": parameters}
    if provider == "anthropic":
        return {**base, "input_schema": parameters}
    if provider == "mcp":
        return {**base, "inputSchema": parameters}
    raise ConfigError(f"spec() knows {', '.join(PROVIDERS)}; not {provider!r}")


def _described(tool: Tool) -> tuple[str, dict[str, Any]]:
    text, of_parameters = summary_of(tool.description)
    schema = tool.parameters
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return text, {**schema, "type": "object", "properties": {}}
    told = {
        name: {**part, "description": of_parameters[name]}
        if isinstance(part, dict) and name in of_parameters and "description" not in part
        else part
        for name, part in properties.items()
    }
    return text, {**schema, "properties": told}


def summary_of(docstring: str | None) -> tuple[str, dict[str, str]]:
    """Return what a docstring says of the function, and of each parameter.

    Sections (``Args:``, ``Returns:``, ...) are cut off, as is the indentation. Google, NumPy and
    reStructuredText docstrings are understood.
    """
    body: list[str] = []
    entries: dict[str, list[str]] = {}
    current: list[str] | None = None
    section: str | None = None
    lines = inspect.cleandoc(docstring or "").splitlines()
    for number, line in enumerate(lines):
        heading = _HEADING.match(line)
        underlined = number + 1 < len(lines) and bool(re.match(r"^-{3,}\s*$", lines[number + 1]))
        if heading and (line.rstrip().endswith(":") or underlined):
            section, current = heading.group(1).lower(), None
        elif field := _FIELD.match(line):
            section, current = "field", entries.setdefault(field.group(1), [field.group(2)])
        elif _OTHER_FIELD.match(line):
            section, current = "field", None
        elif section is None:
            body.append(line)
        elif section in _OF_PARAMETERS:
            current = _entry(line, entries, current)
        elif current is not None and line.strip():
            current.append(line.strip())
    text = "\n".join(body).strip()
    return text, {name: " ".join(" ".join(parts).split()) for name, parts in entries.items()}


def _entry(line: str, entries: dict[str, list[str]], current: list[str] | None) -> list[str] | None:
    """Read a line of a section of parameters; return the entry that the next lines go on with."""
    if not line.strip() or re.match(r"^-{3,}\s*$", line):
        return current
    indent = len(line) - len(line.lstrip())
    google = _ENTRY.match(line.strip())
    if google and 0 < indent <= 4:
        return entries.setdefault(google.group(1), [google.group(2)])
    numpy = _NUMPY_ENTRY.match(line)
    if numpy and indent == 0:
        return entries.setdefault(numpy.group(1), [])
    if current is not None:
        current.append(line.strip())
    return current
