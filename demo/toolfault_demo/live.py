"""The agents after the history: one process each, as agents run, until told to stop."""

from __future__ import annotations

import asyncio
import itertools
import logging
import multiprocessing
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Final

import toolfault
from toolfault_demo.chance import Pace, StoppedError, WallPace, chances
from toolfault_demo.fleet import FLEET, Assignment, Deployment, Post, pick_model, starts
from toolfault_demo.history import converse
from toolfault_demo.ledger import Ledger
from toolfault_demo.problems import HISTORY_DAYS
from toolfault_demo.toolkit import Toolkit
from toolfault_demo.world import World

__all__ = ["agents_at_work", "go_on", "quiet_tools"]

# Each agent begins with a few conversations, so that Live shows something at once. Then they begin
# as often as in the history: a faster fleet buries it within the hour, so that every chart is one
# bar and every rate per week absurd.
_AT_ONCE: Final = 3
_STOP_SECONDS: Final = 3.0


def quiet_tools() -> None:
    """Keep the log lines of failed tools off the terminal; failing is what they are here for."""
    logging.getLogger("toolfault").setLevel(logging.CRITICAL)


@contextmanager
def agents_at_work(*, dsn: str, seed: int) -> Iterator[None]:
    """Run every agent of the fleet in a process of its own while the block lasts.

    They are given a moment to finish; when that is interrupted they are ended at once.

    Args:
        dsn: Where they report to.
        seed: Seed of the demo.
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
        with suppress(KeyboardInterrupt):
            for worker in workers:
                worker.join(max(0.0, until - time.monotonic()))
        for worker in workers:
            worker.terminate()


def _work(dsn: str, post: Post, seed: int, stopped: Connection) -> None:
    """Have one conversation after another; the body of one agent's process."""
    # Ctrl-C reaches every process of the terminal; the fleet decides when its agents stop.
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
    with suppress(StoppedError):
        asyncio.run(go_on(post, deployment, WallPace(stopped.poll), seed=seed, ledger=Ledger()))
    toolfault.close()


async def go_on(
    post: Post, deployment: Deployment, pace: Pace, *, seed: int, ledger: Ledger
) -> None:
    """Have conversations of one agent: a few at once, then as often as in the history.

    Args:
        post: Which agent.
        deployment: What it tells the SDK.
        pace: How time passes; ends this with a ``StoppedError``.
        seed: Seed of the demo.
        ledger: Where they are counted.
    """
    toolkit = Toolkit(World(pace, started_at=None))
    began = pace.now()
    rng = chances(seed, "live", post.agent)
    moments = starts(post, began, rng)
    for number in itertools.count():
        if number >= _AT_ONCE:
            pace.move_to(next(moments))
        one = Assignment(
            pace.now(),
            HISTORY_DAYS,
            f"{post.agent}-{int(began):x}-live-{number}",
            f"{post.agent}/live/{number}",
            deployment,
            pick_model(post, rng),
        )
        await converse(one, toolkit, seed=seed, ledger=ledger)
