"""The invented models: what each gets wrong and how it takes being told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["MODELS", "Model"]


@dataclass(frozen=True, slots=True)
class Model:
    """The habits of one model.

    Attributes:
        name: As reported with each call.
        prone: Factor on the rate of a slip by its kind; 1 is average.
        breaks_json: Share of calls whose arguments are no JSON.
        obeys: Chance that it mends a field that the error text names.
        guesses: Chance that it mends anything when the text names nothing.
        retries: Chance that it tries again after a failure that is not its fault.
        fidgets: Chance that an attempt that mends nothing changes something else instead.
        patience: Most attempts at one step.
        switches: Chance that it tries another tool after giving up.
        quits: Chance that giving up on a step ends the conversation.
        forgets: Chance that it does again what has just succeeded, by tool.
    """

    name: str
    prone: Mapping[str, float] = field(default_factory=dict)
    breaks_json: float = 0.005
    obeys: float = 0.85
    guesses: float = 0.3
    retries: float = 0.7
    fidgets: float = 0.3
    patience: int = 4
    switches: float = 0.5
    quits: float = 0.3
    forgets: Mapping[str, float] = field(default_factory=dict)


MODELS: Final[Mapping[str, Model]] = {
    model.name: model
    for model in (
        Model(
            "atlas-large",
            prone={"type": 0.4, "shape": 0.8, "name": 0.5, "choice": 0.5, "state": 0.7},
            breaks_json=0.001,
            obeys=0.95,
            guesses=0.45,
            patience=5,
        ),
        Model(
            "atlas-mini",
            prone={"type": 1.7, "shape": 1.0, "range": 1.5},
            breaks_json=0.01,
            obeys=0.82,
            guesses=0.25,
            forgets={"book_hotel": 0.3, "send_email": 0.15},
        ),
        Model(
            "birch-2",
            prone={"type": 0.8, "shape": 0.9, "name": 2.0, "choice": 1.4},
            breaks_json=0.004,
            obeys=0.86,
            fidgets=0.5,
            switches=0.7,
        ),
        Model(
            "cobalt-r1",
            prone={"type": 1.1, "shape": 1.4, "choice": 1.2, "state": 1.4},
            breaks_json=0.03,
            obeys=0.72,
            guesses=0.2,
            fidgets=0.1,
            patience=6,
            quits=0.45,
        ),
    )
}
