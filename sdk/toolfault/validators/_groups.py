"""Rules about several arguments at once, and collecting all failures into one."""

from __future__ import annotations

from toolfault.errors import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import TypeVar

    R = TypeVar("R")

__all__ = ["Collector", "collect", "exactly_one", "mutually_exclusive"]


def _given(values: Mapping[str, object]) -> list[str]:
    """The names whose value counts as given: neither None nor False."""
    return [name for name, value in values.items() if value is not None and value is not False]


def mutually_exclusive(*, tool: str, values: Mapping[str, object]) -> str | None:
    """The one name of *values* that is given, or None; None and False count as not given.

    Raises:
        ToolError: `invalid_input` when several are given.
    """
    given = _given(values)
    if len(given) > 1:
        names = ", ".join(values)
        raise _group_error(
            tool, f"only one of {names} may be given, not {', '.join(given)}", values
        )
    return given[0] if given else None


def exactly_one(*, tool: str, values: Mapping[str, object]) -> str:
    """The one name of *values* that is given; None and False count as not given.

    Raises:
        ToolError: `invalid_input` when several are given, `missing_field` when none is.
    """
    found = mutually_exclusive(tool=tool, values=values)
    if found is None:
        raise _group_error(
            tool, f"exactly one of {', '.join(values)} must be given", values, code="missing_field"
        )
    return found


def _group_error(
    tool: str, message: str, values: Mapping[str, object], *, code: str = "invalid_input"
) -> ToolError:
    return ToolError(tool, message, code, retry_context={"fields": list(values)})


def collect(tool: str, *, context: str = "parameters") -> Collector:
    """Run several validators and report all failures as one.

    ```python
    with collect("http_request") as check:
        port = check(validate_bounded_int, field="port", value=port, min=1, max=65535)
        url = check(validate_url, field="url", value=url)
    ```

    Args:
        tool: The tool whose arguments are validated.
        context: What is validated, in words.

    Raises:
        ToolError: On leaving the block, when any validator failed.
    """
    return Collector(tool, context=context)


class Collector:
    """Gathers the failures of validators; made by `collect`."""

    def __init__(self, tool: str, *, context: str = "parameters") -> None:
        self.tool = tool
        self.context = context
        self.errors: list[ToolError] = []

    def __call__(self, validator: Callable[..., R], **options: object) -> R | None:
        """The result of *validator* with *options*, or None when it failed."""
        try:
            return validator(**{"tool": self.tool, **options})
        except ToolError as error:
            self.errors.append(error)
            return None

    def add(self, error: ToolError) -> None:
        """Add a failure found otherwise."""
        self.errors.append(error)

    def raise_if_any(self) -> None:
        """Raise all failures so far as one.

        Raises:
            ToolError: When there is a failure.
        """
        if self.errors:
            raise ToolError.merge(self.errors, tool=self.tool, context=self.context)

    def __enter__(self) -> Collector:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(exc, ToolError):
            self.errors.append(exc)
        elif exc is not None:
            return
        self.raise_if_any()
