"""A run's labels for MLflow: a child for each, with its questions as a table and, where it was judged, as traces."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.answering.reading import judged_figures
from hopbench.eval.metrics import with_coverage
from hopbench.eval.runs.files import StrategyEntry, figure
from hopbench.eval.runs.results import comparisons, results
from hopbench.eval.runs.targets import TargetResult, check_targets
from hopbench.flows.run.descriptions import label_note, source_tags
from hopbench.flows.run.judged_questions import write_judged
from hopbench.flows.run.payloads import data_params, run_dataset, run_title, tracking_key
from hopbench.flows.run.tags import common_tags, kind_tags, plugin_tags, target_tags, verdict_tags
from hopbench.flows.tracking.client import Artifact, RunPayload
from hopbench.flows.tracking.names import Param, Tag, run_name
from hopbench.flows.tracking.tables import TABLE_TAG, write_table

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Evaluation
    from hopbench.flows.settings.options import RunOptions

TRACKED_COSTS = (
    "seconds",
    "once_seconds",
    "latency_ms_p50",
    "latency_ms_p95",
    "round_trips",
    "rows",
    "edges_touched",
    "llm_calls",
    "tokens",
    "judge_calls",
    "judge_tokens",
    "context_tokens",
    "coverage",
    "failures",
)


def tracked_trials(
    evaluation: Evaluation, options: RunOptions, begun: float, label_tags: Mapping[str, Mapping[str, str]], tables: Path
) -> Iterator[RunPayload]:
    """The open parent, then a child for each label with its parameters, metrics, verdict and `label_tags`.

    The scores by question are written into the folder `tables`, which has to stay until the tracker is closed.
    """
    parent = tracking_key(options, begun)
    yield RunPayload(parent, run_title(options, evaluation, begun), status="RUNNING", started_at=begun)
    entries = results(evaluation)["strategies"]
    verdicts = {pair["label"]: pair for pair in comparisons(evaluation)}
    targets = check_targets(evaluation.plan.targets, entries)
    questions = evaluation.plan.benchmark.questions
    for number, (label, trial) in enumerate(evaluation.trials.items()):
        entry, folder = entries[label], tables / str(number)  # a label is no name of a folder
        yield RunPayload(
            f"{parent}/{label}",
            run_name(label),
            parent_key=parent,
            params={
                Param.STRATEGY: trial.strategy,
                Param.LABEL: label,
                **data_params(evaluation),
                **trial.parameters,
            },
            metrics=_metrics(entry),
            tags={
                **common_tags(evaluation),
                **source_tags(options.command),
                **_label_tags(evaluation, label, entry, verdicts.get(label), targets),
                **label_tags.get(label, {}),
            },
            judged=write_judged(evaluation, label, folder / "judged.jsonl"),
            artifacts=(Artifact(write_table(folder, evaluation.rows[label], questions)),),
            dataset=run_dataset(evaluation),
            started_at=begun,
            ended_at=time.time(),
        )


def _metrics(entry: StrategyEntry) -> dict[str, float]:
    """Means with their coverage, what was spent, what the strategy counted, and the judge's figures."""
    costs = {name: value for name in TRACKED_COSTS if (value := figure(entry, name)) is not None}
    if not entry["coverage"]:
        del costs["context_tokens"]  # of no context
    means = with_coverage(entry["metrics"], entry["measured"])
    return {**means, **costs, **_noted(entry), **judged_figures(entry.get("judged", {}))}


def _label_tags(
    evaluation: Evaluation,
    label: str,
    entry: Mapping[str, Any],
    verdict: Mapping[str, Any] | None,
    targets: Sequence[TargetResult],
) -> dict[str, str]:
    """The description, the kind, the verdict and the targets of a label."""
    return {
        Tag.NOTE: label_note(evaluation, label, entry, verdict),
        **kind_tags(entry),
        **plugin_tags(entry.get("plugins")),
        **verdict_tags(verdict),
        **target_tags(targets, label),
        **TABLE_TAG,
    }


def _noted(entry: Mapping[str, Any]) -> dict[str, float]:
    """`counts.NAME`, means a question of what the strategy counted, and `stage_seconds.NAME`."""
    return {
        f"{kind}.{name.replace(' ', '_')}": float(value)
        for kind in ("counts", "stage_seconds")
        for name, value in entry[kind].items()
    }
