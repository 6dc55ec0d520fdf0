"""The fixed words of the contract, in one place."""

from __future__ import annotations

__all__ = [
    "FOOTER",
    "INTERNAL_TEXT",
    "MISSING_TEXT",
    "REDACTED",
    "ROOT",
    "UNAVAILABLE_TEXT",
    "UNEXPECTED_TEXT",
]

UNAVAILABLE_TEXT = "This tool is not available"
INTERNAL_TEXT = "An unexpected error occurred while executing this tool"
MISSING_TEXT = "Missing required parameter"
UNEXPECTED_TEXT = "Unexpected parameter"
FOOTER = "Please fix all errors and retry with correct types."
ROOT = "(root)"
"""The field label of an issue that concerns the arguments as a whole."""
REDACTED = "[REDACTED]"
