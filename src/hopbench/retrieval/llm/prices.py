"""Prices of models. They change, so the table has a date; a model that is not in it has no price, not price 0.

HOPBENCH_PRICES names a YAML file of a user's own prices, which come first, in US dollars for a million tokens:
    MODEL: {input: 0.4, cached: 0.1, output: 1.6}
Without `cached` a cached token costs what a fresh one does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.yaml_file import read_yaml

PRICES_FILE = "HOPBENCH_PRICES"
_FIELDS = ("input", "cached", "output")
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


# https://platform.openai.com/docs/pricing, standard tier, September 2025
PRICES = {
    "gpt-5": Price(1.25, 0.125, 10.0),
    "gpt-5-mini": Price(0.25, 0.025, 2.0),
    "gpt-5-nano": Price(0.05, 0.005, 0.4),
    "gpt-4.1": Price(2.0, 0.5, 8.0),
    "gpt-4.1-mini": Price(0.4, 0.1, 1.6),
    "gpt-4.1-nano": Price(0.1, 0.025, 0.4),
    "gpt-4o": Price(2.5, 1.25, 10.0),
    "gpt-4o-2024-05-13": Price(5.0, 5.0, 15.0),
    "gpt-4o-mini": Price(0.15, 0.075, 0.6),
    "o3": Price(2.0, 0.5, 8.0),
    "o3-mini": Price(1.1, 0.55, 4.4),
    "o4-mini": Price(1.1, 0.275, 4.4),
}


def price_of(model: str) -> Price | None:
    """The price of a model by its name, with or without the date of its snapshot; None where it is not known.

    Raises InputError for a price file that cannot be used.
    """
    file = os.environ.get(PRICES_FILE)
    known = {**PRICES, **(_own_prices(Path(file)) if file else {})}
    return known.get(model) or known.get(_DATED.sub("", model))


@cache
def _own_prices(file: Path) -> Mapping[str, Price]:
    content = read_yaml(file, f"{PRICES_FILE}: {file}")
    if not isinstance(content, dict):
        raise InputError(f"{PRICES_FILE}: {file}: models with their prices are wanted: {_EXAMPLE}")
    return {str(model): _price(f"{PRICES_FILE}: {file}: {model}", fields) for model, fields in content.items()}


_EXAMPLE = "MODEL: {input: 0.4, cached: 0.1, output: 1.6}, in US dollars for a million tokens"


def _price(where: str, fields: Any) -> Price:
    if not isinstance(fields, dict) or not {"input", "output"} <= set(fields) <= set(_FIELDS):
        raise InputError(f"{where}: {fields!r} is no price; wanted is {_EXAMPLE}")
    for name, value in fields.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6:
            raise InputError(f"{where}.{name}: {value!r} is no price; dollars from 0 to 1,000,000 are wanted")
    fresh, cached = fields["input"], fields["cached"] if "cached" in fields else fields["input"]
    return Price(float(fresh), float(cached), float(fields["output"]))
