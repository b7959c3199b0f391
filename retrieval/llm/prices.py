"""What models cost. Prices change: the table has a date, and a model that is not in it has no price, not price 0."""

from __future__ import annotations

import re
from dataclasses import dataclass

PRICES_OF = "2025-08-15"  # https://platform.openai.com/docs/pricing, standard tier
_DATED = re.compile(r"-\d{4}-\d{2}-\d{2}$")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens: of the prompt, of a prompt's part the endpoint had cached, of the completion."""

    fresh: float
    cached: float
    completion: float

    def of(self, tokens_in: int, tokens_cached: int, tokens_out: int) -> float:
        """Dollars for a call: Price(2.5, 1.25, 10).of(1000, 200, 100) = (800·2.5 + 200·1.25 + 100·10)/1e6 = .00325."""
        fresh = tokens_in - tokens_cached
        return (fresh * self.fresh + tokens_cached * self.cached + tokens_out * self.completion) / 1e6


PRICES = {
    "gpt-5": Price(1.25, 0.125, 10.0),
    "gpt-5-mini": Price(0.25, 0.025, 2.0),
    "gpt-5-nano": Price(0.05, 0.005, 0.4),
    "gpt-4.1": Price(2.0, 0.5, 8.0),
    "gpt-4.1-mini": Price(0.4, 0.1, 1.6),
    "gpt-4.1-nano": Price(0.1, 0.025, 0.4),
    "gpt-4o": Price(2.5, 1.25, 10.0),
    "gpt-4o-mini": Price(0.15, 0.075, 0.6),
    "o3": Price(2.0, 0.5, 8.0),
    "o3-mini": Price(1.1, 0.55, 4.4),
    "o4-mini": Price(1.1, 0.275, 4.4),
}


def price_of(model: str) -> Price | None:
    """The price of a model by its name, with or without the date of its snapshot; None where it is not known."""
    return PRICES.get(_DATED.sub("", model))
