"""What tokens cost: a price for each model, as the people who pay wrote it down."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from toolfault_collector.errors import CollectorError

__all__ = ["ENVIRONMENT", "Prices", "PricesError", "configured_prices", "parse_prices"]

ENVIRONMENT: Final = "TOOLFAULT_TOKEN_PRICES"

MILLION: Final = 1_000_000


class PricesError(CollectorError, ValueError):
    """The prices cannot be read; the text says how to write them."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a million tokens by name of the model; the first pattern that fits counts."""

    by_model: tuple[tuple[str, float], ...] = ()

    def cost(self, model: str | None, tokens: int) -> float | None:
        """Return what *tokens* of *model* cost, in the unit of the prices; None without a price."""
        for pattern, price in self.by_model:
            if fnmatchcase(model or "", pattern):
                return price * tokens / MILLION
        return None


def parse_prices(text: str) -> Prices:
    """Read ``claude-x=3,gpt-*=1.25,*=2``: model (``*`` stands for anything) and price.

    A price is of a million tokens, in any currency; calls report one number of tokens, so it is
    the mean of what went in and what came out.

    Raises:
        PricesError: It is written otherwise.
    """
    found: list[tuple[str, float]] = []
    for part in text.split(","):
        if not part.strip():
            continue
        pattern, _, price = part.rpartition("=")
        try:
            value = float(price)
        except ValueError:
            value = math.nan
        if not pattern.strip() or not math.isfinite(value) or value < 0:
            raise PricesError(
                f"Write prices of a million tokens by model (Settings, or {ENVIRONMENT}) like this:"
                " claude-x=3,gpt-*=1.25,*=2"
            )
        found.append((pattern.strip(), value))
    return Prices(tuple(found))


def configured_prices(environ: Mapping[str, str] = os.environ) -> Prices:
    """Return the prices of this process, from ``TOOLFAULT_TOKEN_PRICES``; none by default.

    Raises:
        PricesError: They cannot be read.
    """
    return parse_prices(environ.get(ENVIRONMENT, ""))
