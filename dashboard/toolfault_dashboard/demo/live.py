"""The agents after the history: one process each, as agents run, until told to stop."""

from __future__ import annotations

import asyncio
import itertools
import logging
import multiprocessing
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Final

import toolfault
from toolfault_dashboard.demo.chance import StoppedError, WallPace, chances
from toolfault_dashboard.demo.fleet import FLEET, Assignment, Deployment, Post, pick_model
from toolfault_dashboard.demo.history import converse
from toolfault_dashboard.demo.ledger import Ledger
from toolfault_dashboard.demo.problems import HISTORY_DAYS
from toolfault_dashboard.demo.toolkit import Toolkit
from toolfault_dashboard.demo.world import World

__all__ = ["agents_at_work", "quiet_tools"]

# Agents think this much faster than in the history: somebody is watching.
_SPEED: Final = 8.0
# Each agent begins with a few conversations, so that Live shows something at once; then one begins
# every 17 s in the whole fleet. Without a pause the agents would make in 15 minutes what the
# history has in six days, and bury it: every chart would be one bar, every rate per week absurd.
_AT_ONCE: Final = 3
_SECONDS_BETWEEN: Final = 17.0 * len(FLEET)
_STOP_SECONDS: Final = 3.0


def quiet_tools() -> None:
    """Keep the log lines of failed tools off the terminal; failing is what they are here for."""
    logging.getLogger("toolfault").setLevel(logging.CRITICAL)


@contextmanager
def agents_at_work(*, dsn: str, seed: int, hurry: threading.Event) -> Iterator[None]:
    """Run every agent of the fleet in a process of its own while the block lasts.

    Args:
        dsn: Where they report to.
        seed: Seed of the demo.
        hurry: Set when Ctrl-C is pressed again while they finish: then they are ended at once.
    """
    spawning = multiprocessing.get_context("spawn")
    # Its end says stop, also when this process is killed. An event would wait here for agents that
    # somebody else has killed meanwhile.
    stopped, going_on = spawning.Pipe(duplex=False)
    workers = [
        spawning.Process(target=_work, args=(dsn, post, seed, stopped), daemon=True)
        for post in FLEET
    ]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        going_on.close()
        until = time.monotonic() + _STOP_SECONDS
        try:
            for worker in workers:
                worker.join(max(0.0, until - time.monotonic()))
        except KeyboardInterrupt:
            hurry.set()
        for worker in workers:
            worker.terminate()


def _work(dsn: str, post: Post, seed: int, stopped: Connection) -> None:
    """Have one conversation after another; the body of one agent's process."""
    # Ctrl-C reaches every process of the terminal; the demo decides when its agents stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    quiet_tools()
    deployment = Deployment(post.agent, "prod", post.releases[-1][1])
    toolfault.init(
        dsn,
        agent=deployment.agent,
        environment=deployment.environment,
        release=deployment.release,
        capture_values=True,  # all of it is made up
    )
    toolkit = Toolkit(World(WallPace(_SPEED, stop=stopped.poll), started_at=None))
    started = int(time.time())
    rng = chances(seed, "live", post.agent)
    ledger = Ledger()
    try:
        for number in itertools.count():
            one = Assignment(
                time.time(),
                HISTORY_DAYS,
                f"{post.agent}-{started:x}-live-{number}",
                f"{post.agent}/live/{number}",
                deployment,
                pick_model(post, rng),
            )
            asyncio.run(converse(one, toolkit, seed=seed, ledger=ledger))
            if number + 1 >= _AT_ONCE and stopped.poll(rng.expovariate(1 / _SECONDS_BETWEEN)):
                break
    except StoppedError:
        pass
    toolfault.close()
