"""Flags that several commands take one by one."""

from __future__ import annotations

from typing import Annotated

from hopbench.flows.cli.flags import complete
from hopbench.flows.cli.flags.declare import EXECUTION, MODELS, option, setting_option
from hopbench.flows.settings.graph_options import graph_fields

_GRAPH = graph_fields()

Dataset = Annotated[str, setting_option("dataset", _GRAPH["dataset"])]
Embedder = Annotated[str, setting_option("embedder", _GRAPH["embedder"])]
Llm = Annotated[str | None, setting_option("llm", _GRAPH["llm"])]
NoPrefect = Annotated[bool, option(EXECUTION, "--no-prefect", help="Run the same functions without a Prefect server.")]
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
Repeats = Annotated[
    int, option(MODELS, min=1, help="How often each judgement is repeated; more than 1 shows its spread.")
]
DryRun = Annotated[bool, option(EXECUTION, "--dry-run", help="Estimate calls, tokens, price and time; call no model.")]
BudgetUsd = Annotated[
    float | None,
    option(MODELS, "--budget", help="US dollars at which to stop (exit 4); the same command resumes."),
]
Runner = Annotated[
    str,
    option(
        EXECUTION,
        help="Where trials run: threads, processes, dask, dask:HOST:PORT (default: one after another).",
        complete=complete.one_of("threads", "processes", "dask"),
    ),
]
Workers = Annotated[int | None, option(EXECUTION, min=1, help="Workers of --runner (default: the processors).")]
Batch = Annotated[
    int | None, option(EXECUTION, min=1, help="Questions in a batch (default: what memory allows, ≤ 1000).")
]


def metric_names(text: str) -> tuple[str, ...]:
    """The names in a comma-separated list; none for `all`."""
    return () if text == "all" else tuple(name for part in text.split(",") if (name := part.strip()))
