"""Successes as counters: exact totals for almost no bytes.

One counter per ``CounterKey``. Durations go into an
exponential histogram, the shape of OpenTelemetry's (data model, "ExponentialHistogram", scale 2):
bucket bounds are powers of 2**(1/4), so that any quantile read from it is within 9 % of the true
one, whatever the tool's speed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from toolfault.tools._phantoms import LEFT_OUT

# Minute (of the epoch), tool (None: over all tools), agent, model, variant, environment, release;
# and who counts the calls, where a client says that it does (`CallRecord.counted_by`).
CounterKey: TypeAlias = (
    "tuple[int, str | None, str | None, str | None, str | None, str | None, str | None, str | None]"
)

_SMALLEST = -40  # 2**(-40/4) ms, one microsecond: below it all durations are alike
LONGEST = 1e12  # ms, some thirty years: what is longer is a clock that jumped
_NAMES = 100  # fields that were repaired, and phantom arguments, of one counter
_TOGETHER = 50  # durations measured at once, so that most calls do without logarithms
_BUCKETS = 64  # what an event of the protocol may carry


class Counter:
    """Counts of one key: the calls of a minute, and the conversations that ended in it.

    Attributes:
        starts_at: Start of the minute, seconds since the epoch; no number once the counter was
            handed on, so that no moment lies in it any more.
    """

    __slots__ = (
        "_latest",
        "buckets",
        "calls",
        "calls_squared",
        "conversations",
        "longest",
        "phantoms",
        "repairs",
        "repeated",
        "starts_at",
        "total_ms",
    )

    def __init__(self, starts_at: float) -> None:
        self.starts_at = starts_at
        self._latest: list[float] = []  # durations that are not in the histogram yet
        self.calls = 0
        self.total_ms = 0.0
        self.longest = 0.0
        self.buckets: dict[int, int] = {}
        self.repairs: dict[str, int] = {}
        self.phantoms: dict[str, int] = {}
        self.repeated = 0
        self.conversations = 0
        self.calls_squared = 0

    def add_call(
        self,
        duration_ms: float,
        repaired: Sequence[str] = (),
        phantoms: Sequence[str] = (),
        repeated: int = 0,
    ) -> None:
        """Count one success; its duration goes into the histogram with the next few."""
        if not 0.0 <= duration_ms < LONGEST:  # a clock of the host's that jumps, or says nan
            duration_ms = 0.0
        self.calls += 1
        self._latest.append(duration_ms)
        if len(self._latest) >= _TOGETHER:
            self._measure()
        if repaired:
            _count(self.repairs, repaired)
        if phantoms:
            _count(self.phantoms, phantoms, rest=LEFT_OUT)
        if repeated:
            self.repeated += 1

    def add_conversation(self, calls: int) -> None:
        """Count one conversation that ended, with its number of calls."""
        self.conversations += 1
        self.calls_squared += calls * calls

    def _measure(self) -> None:
        """Put the latest durations into sum, maximum and histogram."""
        latest, self._latest = self._latest, []
        self.total_ms += sum(latest)
        self.longest = max(self.longest, *latest)
        for duration_ms in latest:
            bucket = _bucket_of(duration_ms)
            self.buckets[bucket] = self.buckets.get(bucket, 0) + 1

    @property
    def weight(self) -> int:
        """Records the counter stands for."""
        return self.calls + self.conversations

    def members(self, *, every_tool: bool) -> dict[str, Any]:
        """Return the counts as members of an event.

        Args:
            every_tool: Whether this counts conversations over all tools, hence no calls.
        """
        members: dict[str, Any] = {} if every_tool else {"calls": self.calls}
        if self.conversations:
            members["conversations"] = self.conversations
            members["calls_squared"] = self.calls_squared
        if self.calls:
            if self._latest:
                self._measure()
            members["duration_ms"] = {
                "sum": round(self.total_ms, 3),
                "max": round(self.longest, 3),
                "buckets": _histogram(self.buckets),
            }
        if self.repairs:
            members["repairs"] = self.repairs
        if self.phantoms:
            members["phantom_arguments"] = self.phantoms
        if self.repeated:
            members["repeated"] = self.repeated
        return members


class Aggregator:
    """The counters not yet handed to the queue. The queue's lock guards it."""

    def __init__(self) -> None:
        self._counters: dict[CounterKey, Counter] = {}

    def __len__(self) -> int:
        return len(self._counters)

    @property
    def weight(self) -> int:
        """Records that the counters stand for."""
        return sum(counter.weight for counter in self._counters.values())

    def counter(self, key: CounterKey) -> Counter:
        """Return the counter of ``key``, made when it is new."""
        counter = self._counters.get(key)
        if counter is None:
            counter = self._counters[key] = Counter(key[0] * 60.0)
        return counter

    def add_step(self, key: CounterKey, counted: float, *of_call: Any) -> None:
        """Count a step read back from disk.

        Args:
            key: What the counter counts.
            counted: Duration of a call; the number of calls of a conversation that ended.
            of_call: Of a call, the further arguments of ``Counter.add_call``.
        """
        if of_call:
            self.counter(key).add_call(counted, *of_call)
        else:
            self.counter(key).add_conversation(int(counted))

    def flush(
        self, describe: Callable[[CounterKey], dict[str, Any]]
    ) -> list[tuple[dict[str, Any], int]]:
        """Make the counters into events, each with its weight.

        Args:
            describe: Makes the common members of an event from a counter's key.
        """
        counters, self._counters = self._counters, {}
        for counter in counters.values():
            counter.starts_at = math.nan
        return [
            ({**describe(key), **counter.members(every_tool=key[1] is None)}, counter.weight)
            for key, counter in counters.items()
        ]


def _count(counts: dict[str, int], names: Sequence[str], rest: str | None = None) -> None:
    """Count names, at most 100 different ones, and under ``rest`` who had others."""
    left_out = False
    for name in names:
        if name in counts or len(counts) < _NAMES:
            counts[name] = counts.get(name, 0) + 1
        else:
            left_out = True
    if left_out and rest is not None and rest not in names:
        counts[rest] = counts.get(rest, 0) + 1


def _bucket_of(duration_ms: float) -> int:
    """Return the number of the bucket a duration falls into."""
    if duration_ms <= 0.0:
        return _SMALLEST
    return max(math.ceil(math.log2(duration_ms) * 4.0 - 1e-9), _SMALLEST)


def _histogram(buckets: dict[int, int]) -> list[list[float | int]]:
    """Return inclusive upper bounds in milliseconds, to six significant digits, with their counts.

    Every other bound is left out until 64 are enough.
    """
    width = 1
    while len(buckets) > _BUCKETS:
        width *= 2
        merged: dict[int, int] = {}
        for at, count in buckets.items():
            bound = -(-at // width) * width
            merged[bound] = merged.get(bound, 0) + count
        buckets = merged
    return [[float(f"{2.0 ** (at / 4.0):.6g}"), buckets[at]] for at in sorted(buckets)]
