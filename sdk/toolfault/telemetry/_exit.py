"""The end of a process: that of the interpreter, and that of workers which never reach it.

A forked worker of ``multiprocessing`` (also of ``concurrent.futures``) ends by ``os._exit`` as soon
as its own finalizers have run: the handlers of ``atexit`` that it has inherited are not called, and
Python 3.13 and later forget them at its start. What such a worker has captured and not yet sent
would be gone without a trace, so it gets a finalizer of its own. A prefork worker of Celery ends by
``os._exit`` too, and runs no finalizer either; Celery's signal ``worker_process_shutdown`` tells.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from typing import Any

from toolfault.telemetry._guard import guard

_LAST = -100  # priority among the finalizers of a worker: after those of its queues
_ends: list[Callable[[], object]] = []


def at_exit(end: Callable[[], object]) -> None:
    """Call ``end`` when this process ends, or a process forked of it; once registered, for good.

    Args:
        end: Bounded in time, and harmless when it is called twice.
    """
    if not _ends:
        atexit.register(_end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_after_fork_in_child)
    _ends[:] = [end]
    _listen_to_celery()
    process: Any = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        _finalize()


def _end() -> None:
    for end in _ends:
        end()


def _after_fork_in_child() -> None:
    """Have a worker finalized once ``multiprocessing`` has forgotten what its parent registered."""
    _listen_to_celery()
    util: Any = sys.modules.get("multiprocessing.util")
    if util is None:
        return
    # Does nothing in any other child.
    guard("worker without finalizer", lambda: util.register_after_fork(_end, _finalize))


def _listen_to_celery() -> None:
    """Have Celery, where the host uses it, say when a worker of its pool ends."""
    signals: Any = sys.modules.get("celery.signals")
    if signals is None:
        return

    def connect() -> None:
        ends = signals.worker_process_shutdown
        ends.connect(_end_of_worker, weak=False, dispatch_uid="toolfault")

    guard("worker without signal", connect)  # a Celery that is loaded half, or another one


def _end_of_worker(**_: object) -> None:
    _end()


def _finalize(_: object = None) -> None:
    from multiprocessing.util import Finalize  # noqa: PLC0415 - loaded by now: this is a worker

    Finalize(None, _end, exitpriority=_LAST)
