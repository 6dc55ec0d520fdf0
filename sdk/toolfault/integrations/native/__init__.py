"""Tools of a ``ToolManager`` as tools of an agent framework: ``manager.as_langchain()`` and others.

The framework sees tools of its own kind with the manager's names, descriptions and schemas; what
the model sends goes to the manager as it is. So parsing, repair, validation of everything at once,
time limits, availability and the text for the model are the manager's, and every call is one
event, whether the framework is hooked or not.

A framework checks nothing here: the schema is only shown. Unknown tools, and arguments that are no
JSON where the framework parses them, never reach a tool; the hooks report those.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolfault.tools import ToolManager

__all__ = ["handed_over"]


def handed_over(manager: ToolManager, framework: str) -> list[Any]:
    """Return the tools that may be called now, as those of a framework.

    Args:
        manager: Whose tools.
        framework: The module beside this one that makes them: ``tool_maker(manager)`` returns what
            makes one of a name, a description and a schema.

    Raises:
        ImportError: The framework is not installed.
    """
    make = import_module(f"{__name__}.{framework}").tool_maker(manager)
    functions = [spec["function"] for spec in manager.registry.specs("openai")]
    return [
        make(each["name"], each.get("description"), each["parameters"])
        for each in functions
        if manager.availability(each["name"]) is None
    ]
