"""LangChain and LangGraph: every call that a ``ToolNode`` makes, and calls that are not JSON.

``ToolNode`` is what ``create_agent``, ``create_react_agent`` and hand-made graphs run tools with
(langgraph-prebuilt >= 1.0; langchain 1.0.0 has a copy of its own). Calls whose arguments are no
JSON never reach it: they are ``invalid_tool_calls`` of the model's message, and by default the run
ends there in silence. ``ToolfaultMiddleware`` can answer them, too.
"""

from __future__ import annotations

from contextvars import ContextVar
from functools import partial
from types import ModuleType
from typing import Any

from toolfault.integrations._discover import hook
from toolfault.integrations.langchain.messages import NAME
from toolfault.integrations.langchain.nodes import arun_one, notes, run_one
from toolfault.integrations.langchain.unreadable import listener, middleware

__all__ = ["ToolfaultMiddleware", "install"]


def install(module: ModuleType) -> None:
    """Hook a module of LangChain or LangGraph."""
    if module.__name__ == "langchain_core.tracers.context":
        # A default, since a value set here would be missing in other threads.
        handler = ContextVar("toolfault_langchain", default=listener())  # noqa: B039
        module.register_configure_hook(handler, inheritable=True)
        return
    if module.__name__ == "langchain_core.tools.base":
        hook(NAME, module, "_handle_tool_error", partial(notes, "exec"))
        hook(NAME, module, "_handle_validation_error", partial(notes, "validation"))
        return
    node = getattr(module, "ToolNode", None) or module._ToolNode  # noqa: SLF001 - langchain 1.0.0
    hook(NAME, node, "_run_one", run_one)
    hook(NAME, node, "_arun_one", arun_one)
    # From langchain 1.0.8 on, its own module only hands on what langgraph has.
    only_names = module.__name__ == "langchain.tools.tool_node"
    hook(NAME, module, "_handle_tool_error", partial(notes, "exec"), optional=only_names)


def __getattr__(name: str) -> Any:
    """Make the middleware when it is first asked for: it loads all of LangChain's agents."""
    if name != "ToolfaultMiddleware":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made = middleware()
    return made
