"""Tools: the decorator, the registry, the manager, and the record of every call.

The names below are loaded on first use: telemetry needs the records of calls alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from toolfault._forks import loading

if TYPE_CHECKING:
    from toolfault.tools._batch import BatchedCall
    from toolfault.tools._boundary import report_validation_error
    from toolfault.tools._call import (
        CallRecord,
        Observer,
        Repair,
        RunningCall,
        mark_reported,
        notify,
        observe,
        report,
        running_call,
        unobserve,
        was_reported,
    )
    from toolfault.tools._decorator import as_tool, tool
    from toolfault.tools._manager import RegisteredTool, ToolManager, ToolRegistry
    from toolfault.tools._outcome import adapt_error
    from toolfault.tools._protocols import AsyncTool, SyncTool
    from toolfault.tools._settings import set_defaults
    from toolfault.tools._tool import Tool

__all__ = [
    "AsyncTool",
    "BatchedCall",
    "CallRecord",
    "Observer",
    "RegisteredTool",
    "Repair",
    "RunningCall",
    "SyncTool",
    "Tool",
    "ToolManager",
    "ToolRegistry",
    "adapt_error",
    "as_tool",
    "mark_reported",
    "notify",
    "observe",
    "report",
    "report_validation_error",
    "running_call",
    "set_defaults",
    "tool",
    "unobserve",
    "was_reported",
]

_HOMES = {
    "_batch": ("BatchedCall",),
    "_boundary": ("report_validation_error",),
    "_decorator": ("as_tool", "tool"),
    "_manager": ("RegisteredTool", "ToolManager", "ToolRegistry"),
    "_call": (
        "CallRecord",
        "Observer",
        "Repair",
        "RunningCall",
        "mark_reported",
        "notify",
        "observe",
        "report",
        "running_call",
        "unobserve",
        "was_reported",
    ),
    "_outcome": ("adapt_error",),
    "_protocols": ("AsyncTool", "SyncTool"),
    "_settings": ("set_defaults",),
    "_tool": ("Tool",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name on first use (PEP 562)."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'toolfault.tools' has no attribute {name!r}")
    with loading:
        value = getattr(import_module(f"toolfault.tools.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
