"""Finding the agent frameworks of the process and hooking them, without importing any.

What is loaded is hooked at once. The rest is hooked when it gets loaded: a finder at the front of
``sys.meta_path`` waits for a few module names, lets the others load the module, and hooks it then
(PEP 302, PEP 451). A hook whose place is missing in the installed version is noted for
``python -m toolfault doctor`` and hurts nobody.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from toolfault.telemetry._guard import debug, warn
from toolfault.tools._signature import is_coroutine_function

FRAMEWORKS: dict[str, tuple[str, ...]] = {
    "langchain": (
        "langgraph.prebuilt.tool_node",
        "langchain.tools.tool_node",
        "langchain_core.tools.base",
        "langchain_core.tracers.context",
    ),
    "openai_agents": (
        "agents.tool",
        "agents.run_internal.tool_execution",
        "agents.run_internal.turn_resolution",
        "agents.run_internal.run_loop",
    ),
    "pydantic_ai": ("pydantic_ai.tool_manager", "pydantic_ai._tool_manager"),
    "mcp": (
        "mcp.client.session",
        "mcp.server.lowlevel.server",
        "mcp.server.mcpserver.tools.tool_manager",
        "mcp.server.fastmcp.tools.tool_manager",
    ),
    "fastmcp": ("fastmcp.server.server",),
    "smolagents": ("smolagents.agents",),
    "crewai": ("crewai.agents.agent_executor", "crewai.experimental.agent_executor"),
    "llama_index": (
        "llama_index.core.agent.workflow.base_agent",
        "llama_index.core.agent.workflow.multi_agent_workflow",
        "llama_index.core.tools.function_tool",
    ),
    "google_adk": (
        "google.adk.flows.llm_flows.tools._caller",
        "google.adk.flows.llm_flows.functions",
        "google.adk.plugins.plugin_manager",
    ),
    "strands": ("strands.tools.executors._executor",),
    "agent_framework": ("agent_framework._tools",),
}
"""The modules whose loading each integration waits for.

``toolfault.integrations.<name>`` has a function ``install(module)``, called once for each.
"""

_wanted: dict[str, str] = {}  # module -> integration
_improve: set[str] = set()
_handles: set[str] = set()
hooked: dict[str, list[str]] = {}
"""What is hooked, by integration: ``module.Class.method``."""
missing: dict[str, list[str]] = {}
"""What should be hooked and is not there in this version, by integration."""


def start(wanted: Sequence[str]) -> None:
    """Hook the frameworks that ``init(integrations=)`` names; never raises.

    Args:
        wanted: Names of frameworks; ``auto`` among them stands for all.
    """
    try:
        _install_all(FRAMEWORKS if "auto" in wanted else wanted)
    except Exception:  # noqa: BLE001 - the promise to the host
        debug("integrations could not be installed")


def instrument(*frameworks: str, improve: bool | None = None, handles: bool | None = None) -> None:
    """Hook agent frameworks, so that each of their tool calls leaves exactly one event.

    ``init`` does so by default for all of them. Call it to choose, or to have the models told
    more: with ``improve=True`` wrong or unreadable arguments are answered with everything that is
    wrong at once, with what was received and hints, and unknown tools with close names. Nothing
    else changes: neither other answers nor whether a run goes on.

    Args:
        frameworks: Names of frameworks (``"langchain"``); all of them by default. An unknown
            name is reported like a wrong setting of ``init`` and left out.
        improve: Whether the models are told more; None leaves it as it is.
        handles: Whether servers of MCP ask clients that name no conversation to send a handle
            back, off by default; None leaves it as it is.
    """
    names = list(frameworks) or list(FRAMEWORKS)
    for chosen, wanted in ((_improve, improve), (_handles, handles)):
        if wanted is not None:
            chosen.difference_update(names)
            chosen.update(names if wanted else ())
    start(names)


def improves(framework: str) -> bool:
    """Whether ``instrument(framework, improve=True)`` was asked for."""
    return framework in _improve


def gives_handles(framework: str) -> bool:
    """Whether ``instrument(framework, handles=True)`` was asked for."""
    return framework in _handles


class Found(NamedTuple):
    """What is known of one framework in this environment.

    Attributes:
        framework: Name of the integration.
        version: Version of the installed distribution.
        hooked: What is hooked, ``module.Class.method``.
        missing: What should be hooked and is not there in this version.
    """

    framework: str
    version: str
    hooked: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def examine() -> list[Found]:
    """Load every installed framework, hook it, and say what came of it; for the doctor alone.

    Loading all of them can take many seconds, which no agent would accept.
    """
    from importlib import metadata  # loads much that no agent needs

    found = []
    for name, distributions in _DISTRIBUTIONS.items():
        versions = []
        for distribution in distributions:
            with suppress(metadata.PackageNotFoundError):
                versions.append(f"{distribution} {metadata.version(distribution)}")
        if not versions:
            continue
        start((name,))
        for module in FRAMEWORKS[name]:
            with suppress(Exception):  # another version has it elsewhere
                import_module(module)
        nothing = () if hooked.get(name) else ("nothing could be hooked",)
        found.append(
            Found(
                name,
                versions[0],
                tuple(hooked.get(name, ())),
                (*nothing, *missing.get(name, ())),
            )
        )
    return found


_DISTRIBUTIONS = {
    "langchain": ("langchain", "langgraph-prebuilt", "langchain-core"),
    "openai_agents": ("openai-agents",),
    "pydantic_ai": ("pydantic-ai-slim", "pydantic-ai"),
    "mcp": ("mcp",),
    "fastmcp": ("fastmcp",),
    "smolagents": ("smolagents",),
    "crewai": ("crewai",),
    "llama_index": ("llama-index-core",),
    "google_adk": ("google-adk",),
    "strands": ("strands-agents",),
    "agent_framework": ("agent-framework-core",),
}


def _install_all(names: Iterable[str]) -> None:
    for name in names:
        modules = FRAMEWORKS.get(name)
        if modules is None:
            known = ", ".join(FRAMEWORKS)
            warn(f"there is no integration {str(name)[:64]!r}; there are: {known}")
            continue
        for module in modules:
            if module in sys.modules:
                _install(name, sys.modules[module])
            else:
                _wanted.setdefault(module, name)
    if _wanted and _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


_installed: set[int] = set()


def _install(name: str, module: ModuleType) -> None:
    """Let an integration hook a module that has been loaded, once."""
    if id(module) in _installed:
        return
    _installed.add(id(module))
    try:
        import_module(f"toolfault.integrations.{name}").install(module)
    except Exception as error:  # noqa: BLE001 - the framework works without the hook
        missing.setdefault(name, []).append(f"{module.__name__} ({type(error).__name__})")
        debug(f"the integration {name} could not be installed")


def hook(
    framework: str,
    owner: Any,
    name: str,
    instead: Callable[..., Any],
    *,
    optional: bool = False,
) -> bool:
    """Run another function in the place of an attribute, once; note where it is missing.

    Args:
        framework: The integration.
        owner: Class or module.
        name: The attribute: a function or a method.
        instead: What is run. Its first argument is the original, the others are the call's.
        optional: Whether other versions are known to lack it, so that nobody need be told.
    """
    place = ".".join(
        part
        for part in (getattr(owner, "__module__", None), owner.__name__, name)
        if isinstance(part, str)
    )
    original = vars(owner).get(name) if isinstance(owner, type) else getattr(owner, name, None)
    if original is None:
        if not optional:
            missing.setdefault(framework, []).append(place)
        return False
    if getattr(original, "__toolfault__", False):
        return True
    if isinstance(original, staticmethod):
        replacement: Any = staticmethod(around(original.__func__, instead))
    else:
        replacement = around(original, instead)
    replacement.__toolfault__ = True
    setattr(owner, name, replacement)
    hooked.setdefault(framework, []).append(place)
    return True


def around(original: Callable[..., Any], instead: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs ``instead(original, ...)`` and looks like ``original``.

    It is a coroutine function where ``instead`` is one: frameworks look at that.
    """
    if is_coroutine_function(getattr(instead, "func", instead)):  # of a partial

        @functools.wraps(original)
        async def replacement(*args: Any, **kwargs: Any) -> Any:
            return await instead(original, *args, **kwargs)

    else:

        @functools.wraps(original)
        def replacement(*args: Any, **kwargs: Any) -> Any:
            return instead(original, *args, **kwargs)

    return replacement


class _Finder:
    """Waits for the modules in ``_wanted``; other imports pass at the cost of a lookup."""

    def __init__(self) -> None:
        self._searching: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> Any:
        """Return the spec that the other finders have for a wanted module, with a hook in it."""
        framework = _wanted.get(name)
        if framework is None or name in self._searching:
            return None
        self._searching.add(name)
        try:
            spec = self._ask_others(name, path, target)
        finally:
            self._searching.discard(name)
        loader = getattr(spec, "loader", None)
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return spec

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _wanted.pop(name, None)
            _install(framework, module)

        try:
            loader.exec_module = exec_module  # type: ignore[union-attr]
        except AttributeError:
            missing.setdefault(framework, []).append(f"{name} (its loader cannot be hooked)")
        return spec

    def _ask_others(self, name: str, path: Sequence[str] | None, target: ModuleType | None) -> Any:
        for finder in sys.meta_path:
            if finder is not self:
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    return spec
        return None


_finder: Any = _Finder()
