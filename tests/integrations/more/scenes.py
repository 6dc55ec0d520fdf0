"""The scenarios that the drivers of this folder play, and the tools in them.

Imported by the tests and, inside the environment of a framework, by its driver: nothing but the
standard library and ``toolfault``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

AGENT, MODEL, CONVERSATION = "stub", "scripted", "conv-1"
SECRET = "hunter2-correct-horse"


class ModelCall(NamedTuple):
    """One call that the scripted model makes; arguments given as text are JSON that is broken."""

    tool: str
    arguments: dict[str, Any] | str
    call_id: str = "c1"


class Expected(NamedTuple):
    """What the one event of a call says.

    Attributes:
        tool: The tool's name, as the model wrote it.
        code: Code of the failure; None for a success.
        issues: Field and code of each issue.
    """

    tool: str
    code: str | None = None
    issues: tuple[tuple[str, str], ...] = ()


@dataclass
class Scenario:
    """What the scripted model does, and what must be reported.

    Attributes:
        turns: The calls of each turn; after the last one the model says that it is done.
        expected: The events, in the order of the calls.
        decorated: Whether the tools are decorated with ``toolfault.tool``.
        improve: Whether the models are to be told more.
    """

    turns: list[list[ModelCall]]
    expected: list[Expected]
    decorated: bool = False
    improve: bool = False


@dataclass
class Outcome:
    """What came of a scenario.

    Attributes:
        told: What the model read of its calls.
        output: What the host got in the end.
        error: The type and text of what the host had to catch, or None.
    """

    told: list[str] = field(default_factory=list)
    output: str | None = None
    error: str | None = None


def book(restaurant: str, people: int, outside: bool = False) -> str:
    """Book a table.

    Args:
        restaurant: which
        people: how many
        outside: where
    """
    return f"booked {restaurant} for {people}{' outside' if outside is True else ''}"


def lookup(key: str) -> Any:
    """Look a key up.

    Args:
        key: the key
    """
    if key == "boom":
        raise RuntimeError(f"cannot reach db with password={SECRET}")
    if key == "err":
        return {"success": False, "error": "quota exceeded for today"}
    return f"value of {key}"


def login(user: str, password: str, tries: int) -> str:
    """Log in.

    Args:
        user: who
        password: the password
        tries: how often
    """
    return f"{user} after {tries} and {len(password)}"


def tools_of(scenario: Scenario) -> list[Callable[..., Any]]:
    """Return the functions that a user would hand to the framework."""
    if not scenario.decorated:
        return [book, lookup, login]
    import toolfault

    return [toolfault.tool(book), toolfault.tool(lookup), toolfault.tool(login)]


_WRONG = {"people": "four", "outside": "maybe"}
_RIGHT = {"restaurant": "E", "people": 4}
_ISSUES = (("restaurant", "missing_field"), ("people", "wrong_type"), ("outside", "wrong_type"))
_THREE = Expected("book", "invalid_input", _ISSUES)
_MISSING = (("restaurant", "missing_field"), ("people", "missing_field"))

SCENARIOS: dict[str, Scenario] = {
    "success": Scenario([[ModelCall("lookup", {"key": "a"})]], [Expected("lookup")]),
    "wrong type": Scenario(
        [[ModelCall("book", {**_RIGHT, "people": "four"})]],
        [Expected("book", "wrong_type", (("people", "wrong_type"),))],
    ),
    "missing": Scenario([[ModelCall("book", {})]], [Expected("book", "missing_field", _MISSING)]),
    "three faults at once": Scenario([[ModelCall("book", _WRONG)]], [_THREE]),
    "unknown argument": Scenario(
        [[ModelCall("book", {**_RIGHT, "terrace": True})]],
        [Expected("book", "unknown_field", (("terrace", "unknown_field"),))],
    ),
    "unparsable JSON": Scenario(
        [[ModelCall("book", '{"restaurant": "E", "people": 4')]],
        [Expected("book", "malformed_json")],
    ),
    "unknown tool": Scenario(
        [[ModelCall("bookk", {"restaurant": "E"})]], [Expected("bookk", "not_available")]
    ),
    "raise": Scenario(
        [[ModelCall("lookup", {"key": "boom"})]], [Expected("lookup", "internal_error")]
    ),
    "returned error": Scenario(
        [[ModelCall("lookup", {"key": "err"})]], [Expected("lookup", "internal_error")]
    ),
    "secret": Scenario(
        [[ModelCall("login", {"user": "ann", "password": SECRET, "tries": "many"})]],
        [Expected("login", "wrong_type", (("tries", "wrong_type"),))],
    ),
    "parallel, one failing": Scenario(
        [[ModelCall("book", _WRONG, "p1"), ModelCall("lookup", {"key": "a"}, "p2")]],
        [_THREE, Expected("lookup")],
    ),
    "retry until success": Scenario(
        [[ModelCall("book", _WRONG, "r1")], [ModelCall("book", _RIGHT, "r2")]],
        [_THREE, Expected("book")],
    ),
}
