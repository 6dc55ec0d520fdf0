"""The tools of the scenarios, as a user would write them, and how a run is cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import toolfault

SECRET = "hunter2hunter2"

entered = threading.Event()
"""Set by ``wait`` when its body runs."""


def book(restaurant: str, people: int, outside: bool = False) -> str:
    """Book a table."""
    return f"booked {restaurant} for {people}"


def lookup(key: str) -> Any:
    """Look a key up."""
    if key == "boom":
        raise RuntimeError(f"database password={SECRET} at 10.0.0.5:5432")
    if key == "refused":
        return {"success": False, "error": "quota exceeded for today"}
    return f"value of {key}"


def login(user: str, password: str, tries: int) -> str:
    """Log in."""
    return f"hello {user}"


async def wait(key: str) -> str:
    """Wait for ever."""
    entered.set()
    await asyncio.Event().wait()
    return key


def functions(scenario: Any, *, asynchronous: bool) -> dict[str, Callable[..., Any]]:
    """Return the tools by name.

    Args:
        scenario: The scenario; decorates them and limits their time as it says.
        asynchronous: Whether they are coroutine functions.
    """
    made: dict[str, Callable[..., Any]] = {}
    for fn in (book, lookup, login):
        made[fn.__name__] = _asynchronous(fn) if asynchronous else fn
    made["wait"] = wait
    if scenario.decorated:
        limit = {"timeout": scenario.limit} if scenario.limit else {}
        made = {name: toolfault.tool(**limit)(fn) for name, fn in made.items()}
    return made


def _asynchronous(fn: Callable[..., Any]) -> Callable[..., Any]:
    import functools

    @functools.wraps(fn)
    async def run(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return run


async def cancelled_inside(run: Coroutine[Any, Any, Any]) -> Any:
    """Cancel ``run`` as soon as the body of ``wait`` runs."""
    entered.clear()
    task = asyncio.ensure_future(run)
    while not entered.is_set() and not task.done():  # noqa: ASYNC110
        await asyncio.sleep(0)  # a tool may run in another loop: no asyncio.Event
    task.cancel()
    return await task
