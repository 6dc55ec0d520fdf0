"""What an answer of the collector means for the batch it answers: one pure table.

| answer | action |
|---|---|
| 2xx whose counts add up to the events sent | settle |
| any other 2xx, 1xx, 3xx (captive portal, proxy, redirect) | retry: not an acknowledgement |
| 408 | retry once, then drop |
| 413 | split; a single event is shortened once, then dropped |
| 407 | retry: a proxy's answer, whose password may be put right |
| 429, 502, 503, 504, 507, 520 to 530 | retry, after ``Retry-After`` where it is given |
| 500 | retry at most three times, then drop |
| any other 4xx or 5xx | drop |
| no answer (refused, reset, timeout, DNS, TLS) | retry |

Source: OpenTelemetry protocol, "OTLP/HTTP Response" (429, 502, 503, 504 are retryable), widened
for our own collector by 408, 500 and 507, and by what Cloudflare answers for a server behind it
that is down ("Cloudflare 5xx errors": 520 to 530).

Before a batch is dropped, and after some attempts without an answer of the collector, it is tried
whether an empty batch gets through; if it does, the batch is sent in halves.
"""

from __future__ import annotations

import calendar  # noqa: F401 - what `mktime_tz` loads at its first call (Python 3.13)
import json
import random
import time
from email.utils import mktime_tz, parsedate_tz
from typing import Literal, NamedTuple

from toolfault.telemetry._transport import Response

Action = Literal["settle", "retry", "split", "drop"]

_SHORTEST_WAIT = 1.0
_LONGEST_WAIT = 300.0
_LATER = frozenset({407, 429, 502, 503, 504, 507, *range(520, 531)})


class RetryDecision(NamedTuple):
    """What to do with a batch.

    Attributes:
        action: ``settle``, ``retry``, ``split`` or ``drop``.
        reason: Short snake_case cause, the key under which drops are counted.
        wait: Seconds the collector asked to wait, or None for the client's own backoff.
        attempts: How many attempts in all are allowed with this answer; None for no bound.
        rejected: Positions of the events the collector refused (``settle`` only).
    """

    action: Action
    reason: str = ""
    wait: float | None = None
    attempts: int | None = None
    rejected: tuple[int, ...] = ()


def classify_response(response: Response | None, *, sent: int) -> RetryDecision:
    """Return what an answer means for the batch it answers.

    Args:
        response: The answer; None when there was none.
        sent: Number of events in the batch.
    """
    if response is None:
        return RetryDecision("retry", "network_error")
    status = response.status
    wait = _retry_after(response.headers.get("retry-after"))
    if 200 <= status < 300:
        rejected = _rejected_positions(response.body, sent)
        if rejected is None:
            return RetryDecision("retry", "not_an_ack", wait)
        return RetryDecision("settle", rejected=rejected)
    if status == 413:
        return RetryDecision("split", "http_413")
    if status in _LATER:
        return RetryDecision("retry", f"http_{status}", wait)
    if status == 408:
        return RetryDecision("retry", "http_408", wait, attempts=2)
    if status == 500:
        return RetryDecision("retry", "http_500", wait, attempts=4)
    if 400 <= status < 600:
        return RetryDecision("drop", f"http_{status}")
    return RetryDecision("retry", "not_an_ack", wait)


def _rejected_positions(body: bytes, sent: int) -> tuple[int, ...] | None:
    """Return the refused positions of an acknowledgement, or None if it is none."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, dict):
        return None
    accepted, duplicate = answer.get("accepted"), answer.get("duplicate")
    rejected = answer.get("rejected")
    if type(accepted) is not int or type(duplicate) is not int or not isinstance(rejected, list):
        return None
    given = [entry.get("index") for entry in rejected if isinstance(entry, dict)]
    positions = [index for index in given if type(index) is int and 0 <= index < sent]
    if len(set(positions)) != len(rejected) or min(accepted, duplicate) < 0:
        return None
    return tuple(positions) if accepted + duplicate + len(rejected) == sent else None


def _retry_after(value: str | None) -> float | None:
    """Return the wait a ``Retry-After`` header asks for, in seconds, clamped to 1-300.

    Args:
        value: The header: seconds, or an HTTP date (RFC 9110, section 10.2.3).

    Returns:
        The wait, or None where the header is absent or says nothing that can be read.
    """
    if value is None:
        return None
    text = value.strip()
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    if digits.isascii() and digits.isdigit():
        # A number of 4,300 digits and more would be refused by int().
        seconds = float(sign * int(digits[:12])) if len(digits) <= 12 else _LONGEST_WAIT * sign
    else:
        date = _http_date(text)
        if date is None:
            return None
        seconds = date - time.time()
    return min(max(seconds, _SHORTEST_WAIT), _LONGEST_WAIT)


def _http_date(text: str) -> float | None:
    try:
        parts = parsedate_tz(text)
        return None if parts is None else float(mktime_tz(parts))
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


class Backoff:
    """Waits between attempts: exponential with full jitter.

    Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015: a wait
    drawn from the whole interval keeps clients that failed together from coming back together.
    """

    def __init__(self, base: float, cap: float) -> None:
        self._base = base
        self._cap = cap
        self._random = random.Random()  # noqa: S311 - spreads load, guards nothing
        self.failures = 0

    def wait(self, asked: float | None) -> float:
        """Count one failed attempt and return how long to wait before the next, seconds.

        Args:
            asked: Wait the collector asked for; up to a fifth is added to it, for clients that
                were all told the same number.
        """
        self.failures += 1
        if asked is not None:
            return asked * self._random.uniform(1.0, 1.2)
        bound = min(self._cap, self._base * 2.0 ** min(self.failures - 1, 30))
        return self._random.uniform(0.0, bound)

    def reset(self) -> None:
        """Forget past failures: an attempt succeeded."""
        self.failures = 0
