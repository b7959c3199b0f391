"""What `hopbench run` and `hopbench nightly` do with their flags."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hopbench.flows.settings.options import RunOptions


def estimate(options: RunOptions) -> None:
    """Print what the models of a run will cost, instead of running it."""
    from hopbench.flows.cli.printing.estimate import print_estimate
    from hopbench.flows.run.estimate import estimate_run

    print_estimate(estimate_run(options))


def command_line(name: str) -> str:
    """The command as it was typed, without the webhook's URL, which may carry a token."""
    shown: list[str] = []
    for word in sys.argv[2:]:
        hidden = shown[-1:] == ["--webhook"] or word.startswith("--webhook=")
        shown.append(word.partition("=")[0] + "=…" if hidden and "=" in word[:10] else "…" if hidden else word)
    return " ".join(["hopbench", name, *shown])
