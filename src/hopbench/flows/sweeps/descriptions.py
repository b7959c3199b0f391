"""What MLflow shows of a sweep and of its trials: descriptions in Markdown, kinds, parameters and costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.flows.tracking.names import Param, Tag
from hopbench.retrieval.llm.endpoint import asked_of

if TYPE_CHECKING:
    from hopbench.eval.sweep.context import TrialContext
    from hopbench.eval.sweep.plan import SweepPlan
    from hopbench.eval.sweep.results import Cell, Result
    from hopbench.eval.sweep.space import Candidate
    from hopbench.eval.trials.ledger import TrialRecord
    from hopbench.eval.types import Benchmark


def sweep_note(plan: SweepPlan, sweep_id: str, best: Result | None) -> str:
    """The sweep's extent, the query for its trials, and its best configuration once it is known."""
    metric = plan.content.objective.metric
    names = ", ".join(Path(name).name for name in plan.datasets)
    extent = (
        f"{plan.trials} trials ({plan.content.search}) on {names} by {metric}. "
        f"Its trials: `tags.{Tag.SWEEP_ID} = '{sweep_id}'`"
    )
    return extent if best is None else f"{extent}\n\nBest: `{best.candidate.title}`, {best.mean(metric):.3f}"


def trial_note(plan: SweepPlan, candidate: Candidate, context: TrialContext, record: TrialRecord) -> str:
    """A trial: its configuration in full, the data set, and the objective."""
    benchmark, metric = context.benchmark, plan.content.objective.metric
    value = record.metrics.get(metric)
    scored = f": {metric} {value:.3f}" if value is not None else ""
    return f"`{candidate.title}` on {benchmark.name}, {len(benchmark.questions)} questions{scored}"


def kind(candidate: Candidate) -> str:
    """A configuration that the search varied is being tuned; any other has its label's kind."""
    from hopbench.retrieval.strategies.label import TUNED
    from hopbench.retrieval.strategies.registry import kind_of

    return TUNED if candidate.varied else kind_of(candidate.label, candidate.strategy).kind


def trial_params(candidate: Candidate, cell: Cell, benchmark: Benchmark, record: TrialRecord) -> dict[str, Any]:
    """The trial's parameters: data set, the strategy's own, the graph's build numbers, and the models."""
    return {
        Param.STRATEGY: candidate.strategy.name,
        Param.LABEL: candidate.title,
        Param.DATASET: benchmark.name,
        Param.QUESTIONS: len(benchmark.questions),
        Param.SEED: cell.seed,
        **candidate.strategy.spec(),
        **{f"build.{name}": value for name, value in candidate.build.settings().items()},
        **_readers(record),
    }


def trial_costs(record: TrialRecord) -> dict[str, float]:
    """What was spent; the size of contexts only where there were any."""
    if record.failures < len(record.questions):
        return dict(record.costs)
    return {name: value for name, value in record.costs.items() if name != "context_tokens"}


def _readers(record: TrialRecord) -> dict[str, str]:
    """Reader and judge: scores of different models cannot be compared."""
    reader, judge = record.settings.get("reader"), record.settings.get("judge")
    params: dict[str, str] = {Param.LLM: str(reader["llm"])} if reader else {}
    if judge:
        params |= {Param.JUDGE: f"{judge['model']}@{judge['url']}", Param.JUDGE_PROFILE: judge["profile"]}
    return params | {name: str(value) for name, value in asked_of(judge or reader or {}).items()}
