"""Calls whose arguments are no JSON: ``invalid_tool_calls`` of a model's message."""

from __future__ import annotations

import functools
from contextvars import ContextVar
from typing import Any

from toolfault.integrations.langchain.messages import NAME, model_of, remember, thread_of
from toolfault.integrations.seen import Seen, observe

__all__ = ["listener", "middleware"]

_answers = ContextVar("toolfault_langchain_answers", default=False)


def listener() -> Any:
    """Return a callback that hears of calls which are not JSON."""
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.runnables.config import var_child_runnable_config

    class Listener(BaseCallbackHandler):
        """Hears of every answer of a model in the process."""

        run_inline = True  # in the thread and context of the model's call

        def on_llm_end(self, response: Any, **_: Any) -> None:
            """Report the calls whose arguments could not be parsed."""
            for row in response.generations:
                for generation in row:
                    message = getattr(generation, "message", None)
                    remember(message)
                    if _answers.get():
                        continue
                    for call in getattr(message, "invalid_tool_calls", None) or ():
                        config = var_child_runnable_config.get()
                        observe(functools.partial(_unreadable, call, message, config))

    return Listener()


def _unreadable(call: Any, message: Any, config: Any) -> Seen:
    return Seen(
        NAME,
        call.get("name") or "unknown",
        call_id=call.get("id"),
        arguments=call.get("args") or "",
        turn=getattr(message, "id", None),
        conversation=thread_of(config),
        model=model_of(message),
        agent=getattr(message, "name", None)
        or ((config or {}).get("metadata") or {}).get("lc_agent_name"),
        stage="parse",
    )


def middleware() -> Any:
    """Make the class of the middleware, which loads all of LangChain's agents."""
    from langchain.agents.middleware import AgentMiddleware, hook_config
    from langchain_core.messages import ToolMessage
    from langchain_core.runnables.config import var_child_runnable_config

    class ToolfaultMiddleware(AgentMiddleware):
        """Answers calls whose arguments are no JSON, where LangChain would end the run.

        Everything else is seen without it.
        """

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            """Say that unreadable calls are reported with their answer."""
            token = _answers.set(True)
            try:
                return handler(request)
            finally:
                _answers.reset(token)

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            """Say that unreadable calls are reported with their answer."""
            token = _answers.set(True)
            try:
                return await handler(request)
            finally:
                _answers.reset(token)

        @hook_config(can_jump_to=["model"])
        def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
            """Answer the unreadable calls of the model's message."""
            message = state["messages"][-1]
            answers = []
            for call in getattr(message, "invalid_tool_calls", None) or ():
                config = var_child_runnable_config.get()
                text = observe(functools.partial(_unreadable, call, message, config), improve=True)
                if text is not None and call.get("id"):
                    answers.append(
                        ToolMessage(
                            text, tool_call_id=call["id"], name=call["name"], status="error"
                        )
                    )
            if not answers:
                return None
            return {"messages": answers, **({} if message.tool_calls else {"jump_to": "model"})}

    return ToolfaultMiddleware
