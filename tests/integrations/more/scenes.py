"""The scenarios that the drivers of this folder play, their tools, and how a run is cancelled.

Imported by the tests and, inside the environment of a framework, by its driver: nothing but the
standard library and ``toolfault``.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, NamedTuple

MODES = ("sync", "async", "stream")
"""In which ways a host may run an agent; a driver names those that its framework has."""
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
        phantoms: Arguments that the framework drops without a word.
    """

    tool: str
    code: str | None = None
    issues: tuple[tuple[str, str], ...] = ()
    phantoms: tuple[str, ...] = ()


@dataclass
class Scenario:
    """What the scripted model does, and what must be reported.

    Attributes:
        turns: The calls of each turn; after the last one the model says that it is done.
        expected: The events, in the order of the calls; none for a call that has not ended.
        handled: Whether the framework is told to answer exceptions itself, where it can be told.
        limit: The framework's time limit of the tool, seconds.
        own_limit: That of the decorator: the tools are decorated, and there is no run without
            toolfault to compare with.
        cancelled: Whether the host cancels the run while the body runs.
        interrupts: Whether a tool ``ask`` interrupts the run in the framework's way.
        decorated: Whether the tools are decorated with ``toolfault.tool``.
        observed: Whether toolfault is there.
        improve: Whether the models are to be told more.
    """

    turns: list[list[ModelCall]]
    expected: list[Expected]
    handled: bool = False
    limit: float | None = None
    own_limit: float | None = None
    cancelled: bool = False
    interrupts: bool = False
    decorated: bool = False
    observed: bool = False
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
    if key == "late":
        raise TimeoutError("no answer from the database within 3 seconds")
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
    if user == "eve":
        raise RuntimeError(f"eve is locked: {password} was tried {tries} times")
    return f"{user} after {tries} and {len(password)}"


entered = threading.Event()
"""Set by ``wait`` when its body runs."""
released = threading.Event()
"""Set by the harness: what still waits is let go."""


def wait(key: str) -> str:
    """Wait for ever.

    Args:
        key: the key
    """
    entered.set()
    released.wait()
    return key


def interrupted(key: str) -> str:
    raise KeyboardInterrupt  # as when the person at the keyboard stops the host


async def await_(key: str) -> str:
    entered.set()
    await asyncio.Event().wait()
    return key


async def abook(restaurant: str, people: int, outside: bool = False) -> str:
    return book(restaurant, people, outside)


async def alookup(key: str) -> Any:
    return lookup(key)


async def alogin(user: str, password: str, tries: int) -> str:
    return login(user, password, tries)


# The model knows each by one name and one text.
for _made, _fn in (
    (abook, book),
    (alookup, lookup),
    (alogin, login),
    (await_, wait),
    (interrupted, wait),
):
    _made.__name__ = _made.__qualname__ = _fn.__name__
    _made.__doc__ = _fn.__doc__


def tools_of(scenario: Scenario, *, asynchronous: bool = False) -> list[Callable[..., Any]]:
    """Return the functions that a user would hand to the framework.

    Args:
        scenario: Decorates them and limits their time as it says.
        asynchronous: Whether they are coroutine functions.
    """
    waits = await_ if asynchronous else interrupted if scenario.cancelled else wait
    named = (abook, alookup, alogin) if asynchronous else (book, lookup, login)
    tools: list[Callable[..., Any]] = [*named, waits]
    if not scenario.decorated and scenario.own_limit is None:
        return tools
    import toolfault

    return [toolfault.tool(timeout=scenario.own_limit)(fn) for fn in tools]


async def played(scenario: Scenario, run: Coroutine[Any, Any, Any]) -> Any:
    """Await a run, or cancel it as soon as the body of ``wait`` runs.

    Args:
        scenario: Says whether it is cancelled.
        run: The framework's run.
    """
    if not scenario.cancelled:
        return await run
    task = asyncio.ensure_future(run)
    await until_entered(task)
    task.cancel()
    return await task


async def until_entered(task: asyncio.Future[Any]) -> None:
    """Return when the body of ``wait`` runs, or the run has ended without it."""
    while not entered.is_set() and not task.done():  # noqa: ASYNC110
        await asyncio.sleep(0)  # the body may run in another loop: no asyncio.Event


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
    "raise handled by the framework": Scenario(
        [[ModelCall("lookup", {"key": "boom"})]],
        [Expected("lookup", "internal_error")],
        handled=True,
    ),
    "returned error": Scenario(
        [[ModelCall("lookup", {"key": "err"})]], [Expected("lookup", "internal_error")]
    ),
    "time-out": Scenario(
        [[ModelCall("wait", {"key": "a"})]], [Expected("wait", "timeout")], limit=0.05
    ),
    "time-out in the body": Scenario(
        [[ModelCall("lookup", {"key": "late"})]], [Expected("lookup", "timeout")]
    ),
    "time-out of the decorator": Scenario(
        [[ModelCall("wait", {"key": "a"})]], [Expected("wait", "timeout")], own_limit=0.05
    ),
    "cancelled": Scenario(
        [[ModelCall("wait", {"key": "a"})]], [Expected("wait", "cancelled")], cancelled=True
    ),
    "parallel, one failing": Scenario(
        [[ModelCall("book", _WRONG, "p1"), ModelCall("lookup", {"key": "a"}, "p2")]],
        [_THREE, Expected("lookup")],
    ),
    "retry until success": Scenario(
        [[ModelCall("book", _WRONG, "r1")], [ModelCall("book", _RIGHT, "r2")]],
        [_THREE, Expected("book")],
    ),
    "interrupt": Scenario([[ModelCall("ask", {"question": "sure?"})]], [], interrupts=True),
    "secret in arguments": Scenario(
        [[ModelCall("login", {"user": "ann", "password": SECRET, "tries": "many"})]],
        [Expected("login", "wrong_type", (("tries", "wrong_type"),))],
    ),
    "secret in the exception": Scenario(
        [[ModelCall("login", {"user": "eve", "password": SECRET, "tries": 3})]],
        [Expected("login", "internal_error")],
    ),
}
