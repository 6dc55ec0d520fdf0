"""Tool-call failures that tell the model exactly what to fix.

The names below are the public face. They are loaded on first use, so that the errors can be
imported without the rest: without HTTP, tools or a client.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from toolfault._forks import loading

if TYPE_CHECKING:
    from toolfault import (
        coerce,
        errors,
        formatting,
        integrations,
        testing,
        tools,
        validators,
    )
    from toolfault.errors import (
        Audience,
        AvailabilityReason,
        ConfigError,
        ErrorCategory,
        InvocationKind,
        Issue,
        ToolError,
        ToolErrorCode,
        ToolfaultError,
        ToolInvocationError,
        ToolResult,
    )
    from toolfault.formatting import format_validation_errors
    from toolfault.integrations._discover import instrument
    from toolfault.integrations.clients import wrap_anthropic, wrap_openai
    from toolfault.integrations.messages import capture_messages
    from toolfault.telemetry import (
        Client,
        Conversation,
        Stats,
        capture_failure,
        client,
        close,
        conversation,
        flush,
        init,
        record_change,
        set_tags,
        stats,
        variant,
    )
    from toolfault.tools import ToolManager, ToolRegistry, report_validation_error, tool

__version__ = "0.1.0"

__all__ = [
    "Audience",
    "AvailabilityReason",
    "Client",
    "ConfigError",
    "Conversation",
    "ErrorCategory",
    "InvocationKind",
    "Issue",
    "Stats",
    "ToolError",
    "ToolErrorCode",
    "ToolInvocationError",
    "ToolManager",
    "ToolRegistry",
    "ToolResult",
    "ToolfaultError",
    "__version__",
    "capture_failure",
    "capture_messages",
    "client",
    "close",
    "coerce",
    "conversation",
    "errors",
    "flush",
    "format_validation_errors",
    "formatting",
    "init",
    "instrument",
    "integrations",
    "record_change",
    "report_validation_error",
    "set_tags",
    "stats",
    "testing",
    "tool",
    "tools",
    "validators",
    "variant",
    "wrap_anthropic",
    "wrap_openai",
]

_HOMES = {
    "toolfault.errors": (
        "Audience",
        "AvailabilityReason",
        "ConfigError",
        "ErrorCategory",
        "InvocationKind",
        "Issue",
        "ToolError",
        "ToolErrorCode",
        "ToolInvocationError",
        "ToolResult",
        "ToolfaultError",
    ),
    "toolfault.formatting": ("format_validation_errors",),
    "toolfault.integrations._discover": ("instrument",),
    "toolfault.integrations.clients": ("wrap_anthropic", "wrap_openai"),
    "toolfault.integrations.messages": ("capture_messages",),
    "toolfault.telemetry": (
        "Client",
        "Conversation",
        "Stats",
        "capture_failure",
        "client",
        "close",
        "conversation",
        "flush",
        "init",
        "record_change",
        "set_tags",
        "stats",
        "variant",
    ),
    "toolfault.tools": ("ToolManager", "ToolRegistry", "report_validation_error", "tool"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name on first use (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module 'toolfault' has no attribute {name!r}")
    home = _HOME_OF.get(name)
    with loading:
        module = import_module(home or f"toolfault.{name}")  # one without a home is a module
    value = module if home is None else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
