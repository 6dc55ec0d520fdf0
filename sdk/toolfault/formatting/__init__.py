"""One formatter for the errors of every validation library: `format_validation_errors`.

The table from pydantic's error types to codes is `PYDANTIC_CODES`.
"""

from __future__ import annotations

from toolfault.errors._pydantic import TYPE_CODES as PYDANTIC_CODES
from toolfault.errors._pydantic import code_of_type
from toolfault.formatting._format import format_validation_errors

__all__ = ["PYDANTIC_CODES", "code_of_type", "format_validation_errors"]
