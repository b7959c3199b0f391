"""The options of a night besides those of a run. A module of its own that loads little, for the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from hopbench.flows.settings.setting import NIGHTLY, Setting
from hopbench.retrieval.support.errors import ParameterError

EVERYTHING = "all,all:tuned"
"""Every strategy as its source documents it, and as it was tuned."""

LATENCY_FACTOR = 2.0
"""Unchanged code stays within 1.5 on a machine with four busy processes; what became three times as slow is beyond."""


@dataclass(frozen=True, kw_only=True)
class NightlyOptions:
    """The options of `hopbench nightly` besides those of a run; the fields are its flags.

    A webhook's URL may hold a token, so it is no parameter of the flow: Prefect shows those.
    """

    keep: Annotated[
        int | None,
        Setting(
            "Nights of this benchmark to keep; older ones go, with their graphs and files.",
            low=1,
            flag_limits=False,
            group=NIGHTLY,
        ),
    ] = None
    latency_factor: Annotated[
        float,
        Setting(
            "A label that became this many times slower, relative to the yardstick, is a regression.",
            above=1,
            flag_limits=False,
            group=NIGHTLY,
        ),
    ] = LATENCY_FACTOR
    accept: Annotated[
        bool,
        Setting("Take tonight as the new baseline, whatever it shows.", group=NIGHTLY, flag="--accept"),
    ] = False
    webhook: str | None = None

    def __post_init__(self) -> None:
        """Raise ParameterError or InputError for invalid values."""
        if self.keep is not None and self.keep < 1:
            raise ParameterError(f"--keep {self.keep}: keep at least 1 night")
        if not self.latency_factor > 1:
            raise ParameterError(
                f"--latency-factor {self.latency_factor}: the factor must be over 1, such as {LATENCY_FACTOR:g}"
            )
        if self.webhook is not None:
            from hopbench.flows.nights.notify import check_webhook

            check_webhook(self.webhook)
