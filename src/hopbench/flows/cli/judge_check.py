"""`hopbench judge-check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopbench.flows.cli.flags import complete
from hopbench.flows.cli.flags.declare import DATA, EXECUTION, MODELS, OUTPUT, Config, option
from hopbench.flows.cli.flags.shared import (
    BudgetUsd,
    CompletionTokens,
    Embedder,
    JudgeMetrics,
    Llm,
    ReasoningEffort,
)
from hopbench.flows.settings.run_settings import metric_names

if TYPE_CHECKING:
    from hopbench.eval.answering.judge.outcome import Estimated
    from hopbench.flows.studies.judge_check import Checked


def judge_check_command(
    judge: Annotated[str, option(MODELS, "--judge", help="The judge's model, MODEL[@URL].")],
    out: Annotated[Path, option(OUTPUT, help="Folder for judge-check.json and what is finished of the check.")],
    dataset: Annotated[
        str, option(DATA, help="Whose questions: a benchmark's name, folder or file.", complete=complete.datasets)
    ] = "hopworld-tune",
    samples: Annotated[int, option(DATA, min=1, help="How many questions.")] = 20,
    llm: Llm = None,
    reasoning_effort: ReasoningEffort = None,
    completion_tokens: CompletionTokens = None,
    judge_metrics: JudgeMetrics = "all",
    embedder: Embedder = "wordllama",
    budget: BudgetUsd = None,
    seed: Annotated[int, option(EXECUTION, min=0, help="Seed of the intervals.")] = 0,
    config: Config = None,
) -> None:
    """Compare the compact judge profile with RAGAS's full prompts on your own model: cost and agreement."""
    from hopbench.flows.settings.graph_options import GraphOptions
    from hopbench.flows.settings.models import ModelOptions
    from hopbench.flows.studies.judge_check import judge_check

    models = ModelOptions(
        llm=llm,
        reasoning_effort=reasoning_effort,
        completion_tokens=completion_tokens,
        judge=judge,
        judge_metrics=metric_names(judge_metrics),
        budget=budget,
    )
    _print(judge_check(GraphOptions(dataset=dataset, embedder=embedder), models, samples, out, seed))
    for warning in models.warnings(answered=True):
        typer.echo(f"warning: {warning}")


def _print(checked: Checked) -> None:
    from hopbench.flows.cli.printing.output import add_row, console, table

    costs = ("prompt tokens", "calls", "seconds", "faster")
    rows = table("metric", "samples", *costs, "Spearman", "mean difference", "failed", right=("samples", *costs))
    for agreement in checked.agreements:
        full, compact = agreement.full, agreement.compact
        pairs = [(full.tokens_in, compact.tokens_in), (full.calls, compact.calls), (full.seconds, compact.seconds)]
        cells = [f"{a:,.0f} → {b:,.0f}" for a, b in pairs]
        faster = f"{full.seconds / compact.seconds:.1f} ×" if compact.seconds else "–"
        of = f" ({agreement.ranked} of {len(checked.agreements) - 1})" if agreement.metric == "all" else ""
        agreed = [_interval(agreement.spearman) + of, _interval(agreement.difference)]
        add_row(
            rows,
            agreement.metric,
            str(agreement.samples),
            *cells,
            faster,
            *agreed,
            f"{full.failures} → {compact.failures}",
        )
    screen = console()
    screen.print(f"full → compact, judge {checked.judge}, answers by {checked.reader}", markup=False, soft_wrap=True)
    screen.print(rows)
    screen.print("It holds for this model and these questions only.")
    screen.print(f"wrote  {checked.file}", markup=False, soft_wrap=True)


def _interval(found: Estimated) -> str:
    if found.value is None:
        return "–"
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"
