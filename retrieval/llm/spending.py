"""What the attempts at one call cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hopbench.retrieval.llm.ledger import CallRecord
from hopbench.retrieval.llm.prices import price_of

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion


@dataclass(slots=True)
class Spent:
    """What a call's attempts cost so far."""

    attempts: int = 0
    throttled: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0

    def record(self, whose: tuple[str, str, str, str], seconds: float, outcome: str) -> CallRecord:
        """The ledger's row."""
        price = price_of(whose[3])
        usd = None if price is None else price.of(self.tokens_in, self.tokens_cached, self.tokens_out)
        tokens = (self.tokens_in, self.tokens_out, self.tokens_cached)
        return CallRecord(*whose, *tokens, usd, seconds, self.attempts, self.throttled, outcome)

    def add(self, completion: ChatCompletion) -> None:
        """Add an answered attempt, whatever its answer is worth."""
        usage = completion.usage
        if usage is not None:
            details = usage.prompt_tokens_details
            self.tokens_in += usage.prompt_tokens
            self.tokens_out += usage.completion_tokens
            cached = getattr(details, "cached_tokens", None)
            self.tokens_cached += cached if isinstance(cached, int) else 0
