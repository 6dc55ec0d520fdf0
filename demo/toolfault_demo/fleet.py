"""Which agents there are, what runs where, and when each conversation starts."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from toolfault_demo.chance import DAY, HOUR, chances
from toolfault_demo.problems import HISTORY_DAYS

__all__ = ["FLEET", "Assignment", "Deployment", "Post", "assignments", "pick_model", "starts"]

_STAGING_SHARE: Final = 0.15
_WEEKEND_SHARE: Final = 0.6
_NIGHT_SHARE: Final = 0.2


@dataclass(frozen=True, slots=True)
class Post:
    """One agent and how busy it is.

    Attributes:
        agent: Its name, as reported.
        per_day: Conversations on a working day.
        models: Share of its conversations by model.
        releases: (days after the start of a history of 14, release), in order.
    """

    agent: str
    per_day: int
    models: Mapping[str, float]
    releases: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True, order=True)
class Deployment:
    """What the SDK is told once at start: one process of one release somewhere."""

    agent: str
    environment: str
    release: str


@dataclass(frozen=True, slots=True)
class Assignment:
    """One conversation to be had.

    Attributes:
        starts_at: Seconds since the epoch.
        after_days: The same as days after the start of a history of 14.
        session_id: Name of the conversation, as reported.
        stream: Name of its random stream, the same whenever the history is told.
        deployment: Where.
        model: Name of the model.
    """

    starts_at: float
    after_days: float
    session_id: str
    stream: str
    deployment: Deployment
    model: str


FLEET: Final = (
    Post(
        "travel-concierge",
        30,
        {"atlas-large": 0.3, "atlas-mini": 0.4, "birch-2": 0.3},
        ((0.0, "2.3.0"), (4.0, "2.4.0"), (10.0, "2.5.0")),
    ),
    Post(
        "code-helper",
        18,
        {"atlas-large": 0.5, "cobalt-r1": 0.5},
        ((0.0, "1.8.2"), (4.0, "1.8.3"), (7.0, "1.9.0")),
    ),
    Post(
        "support-desk",
        26,
        {"atlas-mini": 0.4, "birch-2": 0.3, "cobalt-r1": 0.3},
        ((0.0, "5.0.1"), (7.0, "5.1.0")),
    ),
)


def pick_model(post: Post, rng: random.Random) -> str:
    """Return the name of the model that takes the next conversation of ``post``."""
    return rng.choices(list(post.models), weights=list(post.models.values()))[0]


def assignments(*, seed: int, until: float, days: int) -> list[Assignment]:
    """Return every conversation of the ``days`` before ``until``, by deployment and time.

    Args:
        seed: Same seed, same conversations.
        until: End of the history, seconds since the epoch.
        days: Length of the history.
    """
    found = [
        assignment
        for post in FLEET
        for day in range(days)
        for assignment in _one_day(post, day, seed=seed, until=until, days=days)
    ]
    return sorted(found, key=lambda one: (one.deployment, one.starts_at))


def _one_day(post: Post, day: int, *, seed: int, until: float, days: int) -> list[Assignment]:
    rng = chances(seed, "day", post.agent, day)
    start = until - (days - day) * DAY
    moments = (start + rng.random() * DAY for _ in range(2 * post.per_day))
    busy = sorted(moment for moment in moments if rng.random() < _business(moment))
    return [
        _assign(post, moment, (seed, day, number), after=(moment - until) / DAY + days, days=days)
        for number, moment in enumerate(busy)
    ]


def starts(post: Post, after: float, rng: random.Random) -> Iterator[float]:
    """Yield the moments after ``after`` at which ``post`` begins conversations, without an end.

    They are as dense as those of the history (`_one_day`), by the hour of the day and on weekends.
    """
    while True:
        after += rng.expovariate(2 * post.per_day / DAY)
        if rng.random() < _business(after):
            yield after


def _business(moment: float) -> float:
    """Return how busy people are at ``moment``, 0 to 1."""
    when = datetime.fromtimestamp(moment, UTC)
    share = _WEEKEND_SHARE if when.weekday() >= 5 else 1.0
    day_hour = (moment % DAY) / HOUR
    return share * (1.0 if 7 <= day_hour < 19 else _NIGHT_SHARE)


def _assign(
    post: Post, moment: float, name: tuple[int, int, int], *, after: float, days: int
) -> Assignment:
    rng = chances(name[0], "conversation", post.agent, *name[1:])
    after_days = after * HISTORY_DAYS / days
    release = [release for since, release in post.releases if after_days >= since][-1]
    environment = "staging" if rng.random() < _STAGING_SHARE else "prod"
    return Assignment(
        moment,
        after_days,
        # The start is part of the name, so that a second demo on one database adds to it.
        f"{post.agent}-{int(moment):x}-{name[2]}",
        f"{post.agent}/{name[1]}/{name[2]}",
        Deployment(post.agent, environment, release),
        pick_model(post, rng),
    )
