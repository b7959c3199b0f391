"""The flags that name language models, shared by the commands that ask them."""

from __future__ import annotations

from typing import Annotated

from hopbench.flows.cli.flags import complete
from hopbench.flows.cli.flags.panels import EXECUTION, MODELS, option

Llm = Annotated[str | None, option(MODELS, "--llm", help="Model of reader, strategies and extractor llm: MODEL[@URL].")]
Gleaning = Annotated[int, option(MODELS, min=0, max=3, help="Extractor llm: how often it is asked what it missed.")]
Judge = Annotated[
    str | None,
    option(MODELS, "--judge", help="The judge's model, MODEL[@URL] (JUDGE_API_KEY, else OPENAI_API_KEY)."),
]
JudgeOn = Annotated[
    str,
    option(
        MODELS,
        help="all labels, or finalists[:N]: the best N by the free metrics (3).",
        complete=complete.one_of("all", "finalists"),
    ),
]
JudgeProfile = Annotated[
    str,
    option(
        MODELS,
        help="full: RAGAS's own prompts; compact: short ones for local models.",
        complete=complete.one_of("full", "compact"),
    ),
]
JudgeMetrics = Annotated[str, option(MODELS, help="Judged metrics, comma-separated; all.")]
Repeats = Annotated[int, option(MODELS, min=1, help="How often each judgement is asked; more than 1 tells its spread.")]
DryRun = Annotated[bool, option(EXECUTION, "--dry-run", help="Estimate calls, tokens, price and time; ask no model.")]
BudgetUsd = Annotated[
    float | None,
    option(MODELS, "--budget", help="US dollars at which to stop (exit 4); the same command goes on."),
]


def metric_names(text: str) -> tuple[str, ...]:
    """The names in a comma-separated list; none for `all`."""
    return () if text == "all" else tuple(name for part in text.split(",") if (name := part.strip()))
