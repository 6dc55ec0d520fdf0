"""LangChain and LangGraph: every call that a ``ToolNode`` makes, and calls that are not JSON.

``ToolNode`` is what ``create_agent``, ``create_react_agent`` and hand-made graphs run tools with
(langgraph-prebuilt >= 1.0; langchain 1.0.0 has a copy of its own). Calls whose arguments are no
JSON never reach it: they are ``invalid_tool_calls`` of the model's message, and by default the run
ends there in silence. ``ToolfaultMiddleware`` can answer them, too.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from toolfault.integrations._discover import hook, improves
from toolfault.integrations.seen import Call, Seen, note, observe

__all__ = ["ToolfaultMiddleware", "install"]  # noqa: F822 - the first one is made late

_NAME = "langchain"
_REMEMBERED = 512
_asked: OrderedDict[Any, Any] = OrderedDict()  # call id -> the model's message
_answers = ContextVar("toolfault_langchain_answers", default=False)


def install(module: ModuleType) -> None:
    """Hook a module of LangChain or LangGraph."""
    if module.__name__ == "langchain_core.tracers.context":
        # A default, since a value set here would be missing in other threads.
        handler = ContextVar("toolfault_langchain", default=_handler())  # noqa: B039
        module.register_configure_hook(handler, inheritable=True)
        return
    if module.__name__ == "langchain_core.tools.base":
        hook(_NAME, module, "_handle_tool_error", _noting("exec"))
        hook(_NAME, module, "_handle_validation_error", _noting("validation"))
        return
    node = getattr(module, "ToolNode", None) or module._ToolNode  # noqa: SLF001 - langchain 1.0.0
    hook(_NAME, node, "_run_one", _run_one)
    hook(_NAME, node, "_arun_one", _arun_one)
    # From langchain 1.0.8 on, its own module only hands on what langgraph has.
    only_names = module.__name__ == "langchain.tools.tool_node"
    hook(_NAME, module, "_handle_tool_error", _noting("exec"), optional=only_names)


def _run_one(original: Any) -> Any:
    @functools.wraps(original)
    def run_one(self: Any, call: Any, input_type: Any, runtime: Any, *a: Any, **k: Any) -> Any:
        with Call(lambda: _seen(self, call, runtime)) as opened:
            try:
                answer = original(self, call, input_type, runtime, *a, **k)
            except BaseException as error:
                opened.raised(error)
                raise
            return _answered(opened, answer, self.tools_by_name.get(call["name"]))

    return run_one


def _arun_one(original: Any) -> Any:
    @functools.wraps(original)
    async def arun_one(
        self: Any, call: Any, input_type: Any, runtime: Any, *a: Any, **k: Any
    ) -> Any:
        with Call(lambda: _seen(self, call, runtime)) as opened:
            try:
                answer = await original(self, call, input_type, runtime, *a, **k)
            except BaseException as error:
                opened.raised(error)
                raise
            return _answered(opened, answer, self.tools_by_name.get(call["name"]))

    return arun_one


def _seen(node: Any, call: Any, runtime: Any) -> Seen:
    """Return what is known before the body runs; older versions give the config, but no state."""
    config = runtime if isinstance(runtime, dict) else getattr(runtime, "config", None)
    tool = node.tools_by_name.get(call["name"])
    seen = Seen(_NAME, call["name"], call_id=call["id"], arguments=call["args"])
    seen.known_tools = tuple(node.tools_by_name)
    seen.conversation = _thread(config)
    seen.agent = ((config or {}).get("metadata") or {}).get("lc_agent_name")
    seen.fn = getattr(tool, "coroutine", None) or getattr(tool, "func", None)
    _name_arguments(seen, getattr(tool, "args_schema", None))
    message = _message(getattr(runtime, "state", None), call["id"]) or _asked.get(call["id"])
    seen.turn = getattr(message, "id", None)
    seen.agent = getattr(message, "name", None) or seen.agent
    seen.model = _model(message)
    if tool is None:
        seen.stage = "unknown"
    return seen


def _name_arguments(seen: Seen, schema: Any) -> None:
    """Say what names the arguments: a schema, or the class that one is made of."""
    if isinstance(schema, dict):
        seen.schema = schema
    else:
        seen.model_class = schema


def _thread(config: Any) -> str | None:
    thread = ((config or {}).get("configurable") or {}).get("thread_id")
    return None if thread is None else str(thread)


def _message(state: Any, call_id: str) -> Any:
    """Return the model's message that made the call, from a state of any form."""
    messages = state if isinstance(state, list) else None
    if messages is None:
        messages = (
            state.get("messages") if isinstance(state, dict) else getattr(state, "messages", None)
        )
    for message in reversed(messages or []):
        calls = getattr(message, "tool_calls", None) or ()
        if any(made.get("id") == call_id for made in calls):
            return message
    return None


def _model(message: Any) -> str | None:
    told = getattr(message, "response_metadata", None) or {}
    return told.get("model_name") or told.get("model")


def _noting(stage: str) -> Any:
    """Keep the exception that the framework is about to turn into a text."""

    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def handle(e: Any, *a: Any, **k: Any) -> Any:
            refused = type(e).__name__ == "ToolInvocationError"
            note(error=e, stage="validation" if refused else stage)
            return original(e, *a, **k)

        return handle

    return wrap


def _answered(opened: Call, answer: Any, tool: Any) -> Any:
    """Report a call that was answered; return the answer, or a copy with a better text."""

    def fill(seen: Seen) -> None:
        if getattr(answer, "status", None) == "error":
            seen.told = answer.content if isinstance(answer.content, str) else str(answer.content)
            if seen.stage == "ok":
                seen.stage = "returned"
            seen.error = getattr(seen.error, "source", None) or seen.error
            if seen.stage == "validation":
                seen.schema = _schema(tool)
        else:
            seen.stage, seen.error = "ok", None
            seen.result = getattr(answer, "content", answer)
            seen.told = seen.result if type(seen.result) is str else None

    text = opened.ended(fill, improve=improves(_NAME))
    return answer if text is None else answer.model_copy(update={"content": text})


def _schema(tool: Any) -> Any:
    """Return the JSON schema that the model was shown; made for failures alone."""
    shown = tool.tool_call_schema
    return shown if isinstance(shown, dict) else shown.model_json_schema()


def _handler() -> Any:
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
                    _remember(message)
                    if _answers.get():
                        continue
                    for call in getattr(message, "invalid_tool_calls", None) or ():
                        config = var_child_runnable_config.get()
                        observe(functools.partial(_unreadable, call, message, config))

    return Listener()


def _remember(message: Any) -> None:
    """Note which message asked for a call, for versions that do not say."""
    for call in getattr(message, "tool_calls", None) or ():
        _asked[call.get("id")] = message
    while len(_asked) > _REMEMBERED:
        _asked.popitem(last=False)


def _unreadable(call: Any, message: Any, config: Any) -> Seen:
    return Seen(
        _NAME,
        call.get("name") or "unknown",
        call_id=call.get("id"),
        arguments=call.get("args") or "",
        turn=getattr(message, "id", None),
        conversation=_thread(config),
        model=_model(message),
        agent=getattr(message, "name", None)
        or ((config or {}).get("metadata") or {}).get("lc_agent_name"),
        stage="parse",
    )


def __getattr__(name: str) -> Any:
    """Make the middleware when it is first asked for: it loads all of LangChain's agents."""
    if name != "ToolfaultMiddleware":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made = _middleware()
    return made


def _middleware() -> Any:
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
