"""Coercions as annotations: `port: LLMInt` in a pydantic model or in a plain function."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Coercion"]


class Coercion:
    """An annotation that repairs a value before it is validated.

    `Annotated[int, Coercion("integer", coerce_int)]` works in pydantic models (without this
    package importing pydantic) and in the parameters of a tool function.

    Args:
        name: What the value becomes, in JSON words.
        coerce: The function; it returns what it does not apply to unchanged.
    """

    __slots__ = ("coerce", "name")

    def __init__(self, name: str, coerce: Callable[[object], object]) -> None:
        self.name = name
        self.coerce = coerce

    def __get_pydantic_core_schema__(
        self, source: object, handler: Callable[[object], dict[str, object]]
    ) -> dict[str, object]:
        # The plain form of `no_info_before_validator_function` of pydantic-core's schemas.
        return {
            "type": "function-before",
            "function": {"type": "no-info", "function": self.coerce},
            "schema": handler(source),
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Coercion):
            return NotImplemented
        return self.name == other.name and self.coerce is other.coerce

    def __hash__(self) -> int:
        return hash((self.name, self.coerce))

    def __repr__(self) -> str:
        return f"Coercion({self.name!r})"
