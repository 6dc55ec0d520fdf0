"""Tools for ``create_agent``, ``ToolNode`` or ``bind_tools`` of LangChain.

A failure is a ``ToolMessage`` with ``status="error"`` and the text for the model.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool

if TYPE_CHECKING:
    from toolfault.tools import ToolManager

__all__ = ["tool_maker"]

_call_id: ContextVar[str | None] = ContextVar("toolfault_native_call_id", default=None)


class Handed(StructuredTool):
    """A tool of a ``ToolManager``; keeps the id of the call for it."""

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run the tool for LangChain."""
        token = _call_id.set(kwargs.get("tool_call_id"))
        try:
            return super().run(*args, **kwargs)
        finally:
            _call_id.reset(token)

    async def arun(self, *args: Any, **kwargs: Any) -> Any:
        """Run the tool for LangChain."""
        token = _call_id.set(kwargs.get("tool_call_id"))
        try:
            return await super().arun(*args, **kwargs)
        finally:
            _call_id.reset(token)


def tool_maker(manager: ToolManager) -> Any:
    """Return what makes a tool of LangChain."""

    def make(name: str, description: str | None, parameters: Any) -> Any:
        def func(**arguments: Any) -> Any:
            result = manager.call_tool_sync(name, arguments, call_id=_call_id.get())
            return _answered(name, result)

        async def coroutine(**arguments: Any) -> Any:
            result = await manager.call_tool(name, arguments, call_id=_call_id.get())
            return _answered(name, result)

        return Handed(
            name=name,
            description=description or name,
            args_schema=parameters,
            func=func,
            coroutine=coroutine,
        )

    return make


def _answered(name: str, result: Any) -> Any:
    call_id, text = _call_id.get(), result.to_openai_text()
    if result.success or call_id is None:
        return text
    return ToolMessage(text, tool_call_id=call_id, name=name, status="error")
