"""Chance by conversation: samples, and the arms of randomised trials."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from hashlib import blake2b

from toolfault.telemetry._conversations import current_conversation, name_of
from toolfault.telemetry._guard import debug, warn


def variant(
    name: str,
    variants: Sequence[str] = ("control", "treatment"),
    weights: Sequence[float] | None = None,
) -> str:
    """Return the arm of the trial ``name`` that the present conversation is in.

    The arm is drawn by a keyed hash of the conversation's id: it is the same for every call, in
    every process, with or without a collector, and independent of the arms of other trials. The
    further calls of the conversation carry it (``variant = "name=arm"``), so ask before the calls
    that the trial is about.

    Outside a conversation nothing is drawn and nothing tagged: the first arm is returned.

    Args:
        name: Name of the trial, such as ``"coerce-bools"``.
        variants: Names of the arms; the first one is the control.
        weights: Shares of the arms, in any unit; equal by default.

    Returns:
        One of ``variants``. A trial that cannot work (no arms, wrong weights) is reported and
        its first arm returned, so that a trial can never stop the host.
    """
    trial = name_of(name) or "trial"
    arms = [name_of(arm) or "" for arm in variants]
    shares = _shares(arms, weights)
    if not arms or shares is None:
        warn(f"variant({trial[:64]!r}) cannot work: give it arms, and one weight per arm")
        return arms[0] if arms else "control"
    conversation = current_conversation()
    if conversation is None:
        debug("variant() was asked outside a conversation")
        return arms[0]
    lot = sample(conversation.id, f"variant {trial}") * sum(shares)
    bounds = itertools.accumulate(shares)
    arm = next((arm for arm, bound in zip(arms, bounds, strict=True) if lot < bound), arms[-1])
    conversation.assign(trial, arm)
    return arm


def _shares(arms: Sequence[str], weights: Sequence[float] | None) -> list[float] | None:
    """Return the weights as numbers, or None where they cannot be shares of the arms."""
    if weights is None:
        return [1.0] * len(arms)
    try:
        shares = [float(weight) for weight in weights]
    except (TypeError, ValueError):
        return None
    usable = len(shares) == len(arms) and all(0.0 <= share < float("inf") for share in shares)
    return shares if usable and sum(shares) > 0 else None


def sample(key: str, salt: str) -> float:
    """Return a number from [0, 1) that depends on ``key`` and ``salt`` alone.

    It is the same in every process; two salts are independent of each other. Source: BLAKE2b in
    keyed mode (RFC 7693); the first 53 bits make a float, as ``random.random`` does.

    Args:
        key: Who draws, as a rule a conversation id.
        salt: What is drawn for; the key of the hash.
    """
    secret = salt.encode("utf-8", "replace")
    if len(secret) > 64:
        secret = blake2b(secret).digest()
    digest = blake2b(key.encode("utf-8", "replace"), key=secret, digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / float(1 << 53)
