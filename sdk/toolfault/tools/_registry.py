"""The tools that exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from toolfault.errors import ConfigError
from toolfault.tools._decorator import as_tool
from toolfault.tools._tool import Tool

if TYPE_CHECKING:
    from toolfault.errors import ToolResult

__all__ = ["ACCESS_LEVELS", "RegisteredTool", "ToolRegistry"]

ACCESS_LEVELS = ("read", "write", "admin")
"""Access a tool may need, each including the ones before it."""


class RegisteredTool:
    """One entry of the registry.

    Attributes:
        name: Name it is registered under: the resolved name of its calls.
        tool: The tool, or None where it was only declared (its handler runs elsewhere).
        access: Access level it needs.
    """

    __slots__ = ("access", "name", "tool")

    def __init__(self, name: str, tool: Tool | None, *, access: str) -> None:
        if access not in ACCESS_LEVELS:
            raise ConfigError(f"access must be one of {ACCESS_LEVELS}, not {access!r}")
        self.name = name
        self.tool = tool
        self.access = access


class ToolRegistry:
    """The tools that exist, by name; whether one may be called now is the manager's business.

    Args:
        tools: Decorated functions, or bare ones, which are decorated without options.
    """

    def __init__(self, tools: Iterable[Callable[..., Any]] = ()) -> None:
        # Replaced as a whole on every change: calls in other threads read it without a lock.
        self._entries: dict[str, RegisteredTool] = {}
        for tool in tools:
            self.register(tool)

    def register(
        self, tool: Callable[..., Any], *, name: str | None = None, access: str = "read"
    ) -> Tool:
        """Add a tool; a tool of the same name is replaced.

        Args:
            tool: A decorated function, or a bare one.
            name: Name to register it under; the tool's own by default.
            access: Access level it needs: read, write or admin.

        Raises:
            ConfigError: It is nothing that can be called, or the access level is unknown.
        """
        known = as_tool(tool)
        entry = RegisteredTool(name or known.name, known, access=access)
        self._entries = {**self._entries, entry.name: entry}
        return known

    def declare(self, name: str, *, access: str = "read") -> None:
        """Add a tool that the model was told of but that has no handler here."""
        self._entries = {**self._entries, name: RegisteredTool(name, None, access=access)}

    def get(self, name: str) -> RegisteredTool | None:
        """Return the entry of ``name``, or None."""
        return self._entries.get(name)

    def names(self) -> tuple[str, ...]:
        """Return the registered names, in order of registration."""
        return tuple(self._entries)

    def specs(self, provider: str = "openai") -> list[dict[str, Any]]:
        """Return what a model provider is told of the tools that have a handler here.

        Each goes by the name it is registered under. See ``Tool.spec``.

        Raises:
            ConfigError: The provider is unknown.
        """
        return [
            entry.tool.named(entry.name).spec(provider) for entry in self if entry.tool is not None
        ]

    async def call_tool(self, name: str, arguments: object = None) -> ToolResult[Any]:
        """Call a tool whatever a manager says about it; see ``ToolManager.call_tool``."""
        from toolfault.tools._manager import ToolManager

        return await ToolManager(self).call_tool(name, arguments)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._entries

    def __iter__(self) -> Iterator[RegisteredTool]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)
