"""The tools that exist, which of them may be called now, and the calls of a model to them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from toolfault.errors import AvailabilityReason, ConfigError, ToolResult, safe_repr
from toolfault.tools._batch import BatchedCall, checked_batch, new_turn, settle
from toolfault.tools._call import Call
from toolfault.tools._decorator import as_tool
from toolfault.tools._outcome import (
    blocked,
    flow,
    log_undecided,
    record_aborted,
    supplied,
    unavailable,
)
from toolfault.tools._threads import run_coroutine
from toolfault.tools._tool import Tool

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
        return await ToolManager(self).call_tool(name, arguments)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._entries

    def __iter__(self) -> Iterator[RegisteredTool]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)


# The manager.

Gate = Callable[[str, Any], Any]
"""A policy or a hook: called with the resolved name and the arguments as they came in."""

_MAX_ALIASES = 16  # an alias may name another alias; a circle ends here


class ToolManager:
    """Answers the calls of a model: checks that the tool is available, then runs it.

    Every registered tool is enabled unless ``enabled`` says which are. A tool that is not
    available is answered with one and the same sentence, whatever the reason, before its arguments
    are looked at.

    Args:
        registry: The tools, as a registry or as an iterable of tools.
        enabled: Names of the tools that may be called; None enables all, also later ones.
        access: Access level of this manager: read, write or admin.
        policy: ``policy(name, arguments) -> bool``, may be async: False denies the call. It sees
            the arguments as the model sent them. One that raises denies.
        before_call: ``before_call(name, arguments)``, may be async: None lets the call go on,
            False blocks it, anything else is its result (the handler does not run).
        context: Values for the parameters that tools declare with ``context=``.
        threads: Whether ``await call_tool(...)`` runs synchronous tools in a thread, so that they
            do not block the event loop.
        known_tools: Whether a model that calls a tool which is not available is told which are,
            and a close name. By default it is told one sentence, the same whatever the reason.
    """

    def __init__(
        self,
        registry: ToolRegistry | Iterable[Callable[..., Any]] = (),
        *,
        enabled: Iterable[str] | None = None,
        access: str = "admin",
        policy: Gate | None = None,
        before_call: Gate | None = None,
        context: Mapping[str, Any] | None = None,
        threads: bool = True,
        known_tools: bool = False,
    ) -> None:
        if access not in ACCESS_LEVELS:
            raise ConfigError(f"access must be one of {ACCESS_LEVELS}, not {access!r}")
        self.registry = registry if isinstance(registry, ToolRegistry) else ToolRegistry(registry)
        self.access = access
        self.policy = policy
        self.before_call = before_call
        self.context = dict(context or {})
        self.threads = threads
        self.known_tools = known_tools
        # Sets and dicts are replaced, never changed: other threads read them without a lock.
        self._enabled = None if enabled is None else frozenset(enabled)
        self._disabled: frozenset[str] = frozenset()
        self._paused: frozenset[str] = frozenset()
        self._aliases: dict[str, str] = {}

    def enable(self, name: str) -> None:
        """Let the model call a tool."""
        name = self.resolve(name)
        self._disabled -= {name}
        if self._enabled is not None:
            self._enabled |= {name}

    def disable(self, name: str) -> None:
        """Keep the model from calling a tool until it is enabled."""
        name = self.resolve(name)
        self._disabled |= {name}
        if self._enabled is not None:
            self._enabled -= {name}

    def pause(self, name: str) -> None:
        """Keep the model from calling an enabled tool for a while."""
        self._paused |= {self.resolve(name)}

    def resume(self, name: str) -> None:
        """End the pause of a tool."""
        self._paused -= {self.resolve(name)}

    def alias(self, alias: str, name: str) -> None:
        """Let the model call the tool ``name`` as ``alias``; calls are counted under ``name``."""
        self._aliases = {**self._aliases, alias: name}

    def resolve(self, name: str) -> str:
        """Return the name of the tool that ``name`` stands for; unknown names stay."""
        for _ in range(_MAX_ALIASES):
            if name not in self._aliases:
                break
            name = self._aliases[name]
        return name

    def availability(self, name: str) -> AvailabilityReason | None:
        """Return why a tool cannot be called now, or None if it can (a policy is not asked)."""
        resolved = self.resolve(name)
        return self._reason(resolved, self.registry.get(resolved))

    def _reason(self, resolved: str, entry: RegisteredTool | None) -> AvailabilityReason | None:
        if entry is None:
            return AvailabilityReason.NOT_REGISTERED
        disabled = self._enabled is not None and resolved not in self._enabled
        if disabled or resolved in self._disabled:
            return AvailabilityReason.NOT_ENABLED
        if resolved in self._paused:
            return AvailabilityReason.PAUSED
        if ACCESS_LEVELS.index(entry.access) > ACCESS_LEVELS.index(self.access):
            return AvailabilityReason.ACCESS_DENIED
        if entry.tool is None:
            return AvailabilityReason.NO_HANDLER
        return None

    def _told_names(self) -> list[str]:
        """Return what a model is told that calls a tool which is not available."""
        names = self.registry.names() if self.known_tools else ()
        return [name for name in names if self.availability(name) is None]

    def as_langchain(self) -> list[Any]:
        """Return the available tools as tools of LangChain; see ``integrations.native``."""
        return self._handed_over("langchain")

    def as_openai_agents(self) -> list[Any]:
        """Return the available tools as tools of the OpenAI Agents SDK."""
        return self._handed_over("openai_agents")

    def as_pydantic_ai(self) -> list[Any]:
        """Return the available tools as tools of Pydantic AI."""
        return self._handed_over("pydantic_ai")

    def as_mcp(self) -> list[Any]:
        """Return the available tools as tools of a high-level server of the MCP SDK."""
        return self._handed_over("mcp")

    def as_fastmcp(self) -> list[Any]:
        """Return the available tools as tools of a FastMCP server."""
        return self._handed_over("fastmcp")

    def _handed_over(self, framework: str) -> list[Any]:
        from toolfault.integrations.native import handed_over  # noqa: PLC0415 - needs a framework

        return handed_over(self, framework)

    async def call_tool(
        self,
        name: str,
        arguments: object = None,
        *,
        call_id: str | None = None,
        context: Mapping[str, Any] | None = None,
        turn: str | None = None,
    ) -> ToolResult[Any]:
        """Call a tool for the model and return what to tell it; never raises an ``Exception``.

        Args:
            name: Name as the model wrote it; an alias is resolved.
            arguments: JSON string, mapping, or None.
            call_id: The provider's id of the call.
            context: Values for context parameters, beside those of the manager.
            turn: Opaque id of the model turn; calls of one turn are parallel.

        Returns:
            The result, failed or not. ``BaseException``s that are no ``Exception`` (cancellation,
            interrupt, exit) and the tool's ``passthrough`` types are recorded and raised.
        """
        call, tool = self._open(name, arguments, call_id=call_id, turn=turn, context=context)
        if tool is None:
            return unavailable(call, self._told_names())
        answered = self._answered(call, await self._gate(self.policy, call))
        if answered is None:
            answered = self._answered(call, await self._gate(self.before_call, call), hook=True)
        if answered is not None:
            return answered
        return await tool.run_async(call, threads=self.threads)

    def call_tool_sync(
        self,
        name: str,
        arguments: object = None,
        *,
        call_id: str | None = None,
        context: Mapping[str, Any] | None = None,
        turn: str | None = None,
    ) -> ToolResult[Any]:
        """Do the same from synchronous code; an async tool runs to its end in a loop of its own.

        A synchronous tool runs in the calling thread. The arguments are those of ``call_tool``.
        """
        call, tool = self._open(name, arguments, call_id=call_id, turn=turn, context=context)
        if tool is None:
            return unavailable(call, self._told_names())
        answered = self._answered(call, self._gate_sync(self.policy, call))
        if answered is None:
            answered = self._answered(call, self._gate_sync(self.before_call, call), hook=True)
        if answered is not None:
            return answered
        if not tool.is_async:
            return tool.run(call)

        return run_coroutine(lambda: tool.run_async(call))

    async def call_tools(
        self,
        calls: Iterable[tuple[str | None, str, object]],
        *,
        context: Mapping[str, Any] | None = None,
        turn: str | None = None,
    ) -> list[BatchedCall]:
        """Run the calls of one model turn at the same time; one that fails affects no other.

        Args:
            calls: ``(call_id, name, arguments)`` of every call.
            context: Values for context parameters, beside those of the manager.
            turn: Opaque id of the model turn; one is made if it is missing.

        Returns:
            ``(call_id, result)`` of every call, in the given order.

        Raises:
            ConfigError: An element of ``calls`` is no triple; nothing was run.
        """
        batch = checked_batch(calls)
        turn = turn or new_turn()
        tasks = [
            asyncio.ensure_future(
                self.call_tool(name, arguments, call_id=call_id, context=context, turn=turn)
            )
            for call_id, name, arguments in batch
        ]
        results = await settle(tasks)
        return [
            BatchedCall(call_id, result)
            for (call_id, _, _), result in zip(batch, results, strict=True)
        ]

    def _open(
        self,
        name: object,
        arguments: object,
        *,
        call_id: str | None,
        turn: str | None,
        context: Mapping[str, Any] | None,
    ) -> tuple[Call, Tool | None]:
        """Start the record of a call and find its tool; None if it is not available."""
        if type(name) is not str:
            given = issubclass(type(name), str)
            name = str.__str__(name) if given else safe_repr(name, 128)
        resolved = self.resolve(name)
        entry = self.registry.get(resolved)
        values = {**self.context, **context} if context else self.context
        call = Call(resolved, name, arguments)
        call.call_id = call_id
        call.turn = turn
        call.injected = values
        call.reason = self._reason(resolved, entry)
        flow("Calling tool '%s' (resolved to '%s')", name, resolved)
        if call.reason is not None or entry is None:
            return call, None
        return call, entry.tool

    async def _gate(self, gate: Gate | None, call: Call) -> Any:
        """Return what a policy or hook answers; one that raises denies."""
        if gate is None:
            return None
        try:
            answer = gate(call.tool, call.raw)
            return await answer if hasattr(type(answer), "__await__") else answer
        except Exception as error:  # noqa: BLE001 - deny what nobody could decide
            log_undecided(call, error)
            return False
        except BaseException as error:
            record_aborted(call, error)
            raise

    def _gate_sync(self, gate: Gate | None, call: Call) -> Any:
        """Do the same from synchronous code."""
        if gate is None:
            return None

        try:
            answer = gate(call.tool, call.raw)
            if hasattr(type(answer), "__await__"):
                return run_coroutine(lambda: _awaited(answer))
        except Exception as error:  # noqa: BLE001 - deny what nobody could decide
            log_undecided(call, error)
            return False
        except BaseException as error:
            record_aborted(call, error)
            raise
        return answer

    def _answered(self, call: Call, answer: Any, *, hook: bool = False) -> ToolResult[Any] | None:
        """Turn the answer of a policy or hook into a result; None lets the call go on."""
        if hook:
            if answer is False:
                return blocked(call, AvailabilityReason.BLOCKED_BY_HOOK)
            return None if answer is None or answer is True else supplied(call, answer)
        if answer is not None and not answer:
            return blocked(call, AvailabilityReason.POLICY_DENIED)
        return None


async def _awaited(answer: Any) -> Any:
    return await answer
