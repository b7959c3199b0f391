"""A run's labels for MLflow: a child for each, with its questions as a table and, where it was judged, as traces."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.answering.reading import judged_figures
from hopbench.eval.files import write_atomically
from hopbench.eval.metrics import with_coverage
from hopbench.eval.runs.files import StrategyEntry, figure
from hopbench.eval.runs.results import comparisons, results
from hopbench.eval.runs.targets import TargetResult, check_targets
from hopbench.flows.run.payloads import (
    common_tags,
    data_params,
    kind_tags,
    label_note,
    plugin_tags,
    run_dataset,
    run_title,
    source_tags,
    target_tags,
    tracking_key,
    verdict_tags,
)
from hopbench.flows.tracking.client import Artifact, RunPayload
from hopbench.flows.tracking.payload import TABLE_TAG, Param, Tag, run_name, write_table

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Evaluation
    from hopbench.eval.types import BenchmarkQuestion
    from hopbench.flows.settings.options import RunOptions

MAX_TRACES = 200
"""Of each label: a trace costs MLflow about as much as a trial, and nobody reads more."""


def write_judged(evaluation: Evaluation, label: str, file: Path) -> Path | None:
    """Write the label's first judged questions to `file`; None where it was not judged."""
    judged = evaluation.read.judged
    if judged is None or label not in judged.labels:
        return None
    columns = judged.columns(label)
    failures = judged.failures(label).to_dict()
    scores = columns.astype(object).where(columns.notna(), None).to_dict("index")
    lines = [
        json.dumps(
            {
                **_asked(evaluation, label, question),
                "scores": scores[question.id],
                "judge": str(judged.judge["llm"]),
                "judge_failure": failures.get(question.id),
            },
            ensure_ascii=False,
        )
        for question in evaluation.plan.benchmark.questions
        if question.id in scores
    ]
    write_atomically(file, "\n".join(lines[:MAX_TRACES]).encode())
    return file


def _asked(evaluation: Evaluation, label: str, question: BenchmarkQuestion) -> dict[str, Any]:
    """The question, what the strategy found for it, and what the reader answered."""
    ranking = evaluation.trials[label].rankings[question.id]
    answer = evaluation.read.answers.get(label, {}).get(question.id)
    ids = [*(["graph"] if ranking.graph_context else []), *ranking.context_ids]
    titles = evaluation.plan.benchmark.titles
    passages = [
        {"id": name, "title": titles.get(name, ""), "text": text}
        for name, text in zip(ids, ranking.context_parts, strict=False)
    ]
    return {
        "id": question.id,
        "question": question.text,
        "expected": question.answer,
        "passages": passages,
        "reader": evaluation.read.reader,
        "answer": answer.statement or answer.answer if answer is not None else None,
        "failure": ranking.failure or (answer.failure if answer is not None else None),
    }


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
