"""Locks that a forked child finds free.

A child has one thread, the one that forked. A lock that another thread held at that moment would
never be free again in the child, so a fork waits until it is.
"""

from __future__ import annotations

# While a fork waits for `loading`, a module that is loaded may register hooks of its own: too late
# for the half that takes a lock, not for the half that lets it go. `logging` has such hooks.
import logging  # noqa: F401
import os
import threading


def fork_safe_lock() -> threading.RLock:
    """Return a lock that no other thread holds while the process forks.

    It is re-entrant: a signal handler, or the collector of garbage, may come back to it.
    """
    lock = threading.RLock()
    taken: list[bool] = []  # not where the lock was made while the fork waited for another

    def take() -> None:
        lock.acquire()
        taken.append(True)

    def let_go() -> None:
        if taken:
            taken.pop()
            lock.release()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=take, after_in_parent=let_go, after_in_child=let_go)
    return lock


loading = fork_safe_lock()
"""Held where a module is loaded after the start: Python's own locks of imports are not renewed in a
child."""
