"""What a night is asked for beside a run."""

from __future__ import annotations

from dataclasses import dataclass

from hopbench.flows.nightly.notify import check_webhook
from hopbench.retrieval.support.errors import ParameterError

LATENCY_FACTOR = 2.0
"""Unchanged code stays within 1.5 on a machine with four busy processes; what became three times as slow is beyond."""


@dataclass(frozen=True, kw_only=True)
class NightlyOptions:
    """What a night does beside a run."""

    keep: int | None = None
    latency_factor: float = LATENCY_FACTOR
    webhook: str | None = None
    accept: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if self.keep is not None and self.keep < 1:
            raise ParameterError(f"--keep {self.keep}: keep at least 1 night")
        if not self.latency_factor > 1:
            raise ParameterError(
                f"--latency-factor {self.latency_factor}: a factor over 1 is wanted, such as {LATENCY_FACTOR:g}"
            )
        if self.webhook is not None:
            check_webhook(self.webhook)
