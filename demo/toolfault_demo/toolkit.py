"""The tools an agent has at a moment, behind the SDK's manager."""

from __future__ import annotations

from typing import Any

from toolfault import ToolManager, ToolRegistry, tool
from toolfault_demo.agent import CallTool
from toolfault_demo.code_tools import code_tools
from toolfault_demo.office_tools import office_tools
from toolfault_demo.problems import Phase
from toolfault_demo.travel_tools import travel_tools
from toolfault_demo.world import World

__all__ = ["Toolkit"]


class Toolkit:
    """Makes the tools of each phase and experiment arm once, and calls them by name.

    ``web_search`` is not among them, though models keep calling it, and ``delete_records`` is
    registered but not enabled: both answer that they are not available.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self._managers: dict[tuple[Phase, str], ToolManager] = {}

    def caller(self, phase: Phase, arm: str) -> CallTool:
        """Return what calls a tool as agents of ``phase`` in experiment ``arm`` have it."""
        manager = self._managers.get((phase, arm))
        if manager is None:
            manager = self._managers[phase, arm] = self._manager(phase, arm)

        async def call_tool(name: str, arguments: str, call_id: str) -> Any:
            return await manager.call_tool(name, arguments, call_id=call_id)

        return call_tool

    def _manager(self, phase: Phase, arm: str) -> ToolManager:
        registry = ToolRegistry(
            [
                *travel_tools(self.world, worsened=phase.worsened),
                *office_tools(self.world, all_at_once=arm == "treatment"),
                *code_tools(self.world, improved=phase.improved),
                delete_records,
            ]
        )
        # In threads the order of parallel calls, and with it every chance, would be luck.
        manager = ToolManager(registry, threads=False)
        manager.disable("delete_records")
        return manager


@tool(idempotent=True)  # what is gone stays gone
def delete_records(table: str, id: int) -> str:  # noqa: A002 - the name models use
    """Delete rows for good; no agent of the demo may."""
    return f"{table}/{id} is gone"
