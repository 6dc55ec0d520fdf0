"""A fork waits until no other thread is in the middle of loading a module for the SDK.

The SDK loads most of itself with the first call that needs it. A child forked meanwhile would find
the module half made, and the lock of its import held by a thread that the child does not have: its
own first call would wait for ever. Python gives the child fresh locks of its own, but not those.

Loading may still begin between the look and the fork. The child then forgets what was half loaded,
with its lock, and loads it anew.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import get_ident
from collections.abc import Callable
from typing import Any

__all__ = ["wait_for_imports", "waits"]

waits: list[Callable[[], object]] = []
"""What else a fork waits for; called in one hook with the rest, see ``_before_fork``."""

_LONGEST_WAIT = 0.5  # seconds; loading takes a tenth of that
_PAUSE = 0.001
# What the SDK loads late from the standard library.
_LATE = frozenset(
    """
    asyncio dataclasses datetime decimal difflib email.utils hashlib inspect json linecache logging
    platform random traceback unicodedata urllib.parse zlib
    """.split()  # noqa: SIM905 - one line of names is easier to keep
)


def wait_for_imports() -> bool:
    """Wait until everything the SDK loads is loaded; False where that takes too long."""
    until = time.monotonic() + _LONGEST_WAIT
    while _is_loading():
        if time.monotonic() >= until:
            return False
        time.sleep(_PAUSE)
    return True


def _is_loading() -> bool:
    """Whether some other thread is loading a module of ours, or one that we load late.

    Python's own locks of imports say so, one per module, from the search for its file on. They are
    read, never changed; where a Python has none under this name nothing is waited for.
    """
    return any(_is_ours(name) for name, _ in _held_by_others())


def _is_ours(name: str) -> bool:
    return name in _LATE or name.startswith("toolfault.")


def _held_by_others() -> list[tuple[str, int]]:
    """Return the modules that other threads are loading, each with its thread."""
    me = get_ident()
    owners = [
        (name, getattr(reference(), "owner", None)) for name, reference in list(_locks().items())
    ]
    return [(name, owner) for name, owner in owners if owner is not None and owner != me]


def _locks() -> dict[str, Any]:
    return getattr(sys.modules.get("_frozen_importlib"), "_module_locks", None) or {}


def _after_fork_in_child() -> None:
    """Forget what another thread was loading for us; the child does not have that thread."""
    held = _held_by_others()
    gone = {owner for name, owner in held if _is_ours(name)}
    for name, owner in held:
        if owner in gone:
            _locks().pop(name, None)
            if not _is_loaded(name):
                sys.modules.pop(name, None)


def _before_fork() -> None:
    """Wait, and take the lock of ``logging`` where that was loaded while we did.

    ``logging`` holds its lock across a fork with hooks of its own. Those registered meanwhile are
    too late for the half that takes it, not for the half that lets it go.
    """
    before = _is_loaded("logging")
    for wait in waits:
        wait()
    wait_for_imports()
    if not before and _is_loaded("logging"):
        lock = getattr(sys.modules["logging"], "_lock", None)
        is_owned = getattr(lock, "_is_owned", None)
        if lock is not None and is_owned is not None and not is_owned():
            lock.acquire()


def _is_loaded(name: str) -> bool:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return spec is not None and not getattr(spec, "_initializing", False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
