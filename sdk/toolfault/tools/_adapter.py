"""The default adapter under its short name, for tools that adapt some failures and not others."""

from __future__ import annotations

from toolfault.errors import default_adapt_error

__all__ = ["adapt_error"]

adapt_error = default_adapt_error
