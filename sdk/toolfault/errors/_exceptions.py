"""The exceptions of the SDK itself.

```
ToolfaultError
├── ConfigError (ValueError)        a setting or declaration that cannot work
├── ToolInvocationError             how one tool call failed, for `adapt_error`
└── ToolError                       one failure, for user, model and system
```
"""

from __future__ import annotations

__all__ = ["ConfigError", "ToolfaultError"]


class ToolfaultError(Exception):
    """Base of every exception that the SDK defines."""


class ConfigError(ToolfaultError, ValueError):
    """A setting or a declaration cannot work; the text says what to write instead."""
