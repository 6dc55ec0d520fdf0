"""Arguments refused by a validation library, as failures."""

from __future__ import annotations

import typing
from typing import Any

import pytest
from pydantic import (
    ValidationError,
)

from toolfault.errors import ToolError


def refusal(call: typing.Callable[[], Any]) -> ValidationError:
    """The validation error that *call* raises."""
    with pytest.raises(ValidationError) as caught:
        call()
    return caught.value


def failure(model: Any, args: Any, **options: Any) -> ToolError:
    """The failure of *args* for a pydantic model."""
    return ToolError.from_validation_error("t", refusal(lambda: model(**args)), args, **options)


def issue_of(model: Any, args: Any) -> Any:
    """The only issue of *args*."""
    (issue,) = failure(model, args).issues
    return issue
