"""A run's facts for the report, and its payloads for MLflow: a parent run with a child for each label."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.answering.reading import judged_figures
from hopbench.eval.metrics import with_coverage
from hopbench.eval.runs.results import comparisons, results
from hopbench.eval.runs.schema import figure
from hopbench.eval.runs.targets import check_targets
from hopbench.eval.trials.version import code_version
from hopbench.flows.orchestration.pages import REPORT
from hopbench.flows.run.descriptions import label_note, parent_name, run_note, source_tags
from hopbench.flows.run.tags import common_tags, kind_tags, plugin_tags, target_tags, targets_tag, verdict_tags
from hopbench.flows.tracking.client import Artifact, Dataset, RunPayload
from hopbench.flows.tracking.names import Param, Tag, run_name
from hopbench.flows.tracking.tables import TABLE_TAG, write_table

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Evaluation
    from hopbench.eval.types import Benchmark
    from hopbench.flows.settings.options import RunOptions

TRACKED_COSTS = (
    "seconds",
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


def run_facts(
    options: RunOptions,
    evaluation: Evaluation,
    warnings: Sequence[str],
    started: datetime,
    calls: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """The run facts that the report prints; `calls` are those to language models, by purpose."""
    record = evaluation.plan.record
    return {
        "command": options.command,
        "started": started.isoformat(timespec="seconds"),
        "code_version": code_version(),
        "store": evaluation.plan.index.store.engine,
        "search": evaluation.plan.index.search,
        "embedder": evaluation.plan.index.embedder.name,
        "graph": {name: record[name] for name in ("nodes", "edges", "fingerprint", "build_key")},
        "seed": options.seed,
        "settings": options.graph_settings(),
        "warnings": list(warnings),
        **({"calls": dict(calls)} if calls else {}),
    }


def tracked_run(
    evaluation: Evaluation,
    options: RunOptions,
    begun: float,
    files: Sequence[Path],
    tags: Mapping[str, str],
    calls: Mapping[str, Mapping[str, Any]],
) -> RunPayload:
    """The parent run: facts that all labels share, calls to language models, the files, and `tags` beside its own."""
    plan = evaluation.plan
    nodes, edges = plan.record["nodes"], plan.record["edges"]
    counts = {f"graph_{name}": float(count) for name, count in {**nodes, **edges}.items()}
    report = next((file for file in files if file.name == REPORT), None)
    return RunPayload(
        (key := tracking_key(options, begun)),
        _parent_name(options, evaluation, begun),
        params={
            **_data_params(evaluation),
            Param.STRATEGIES: ",".join(evaluation.trials),
            Param.EMBEDDER: plan.index.embedder.name,
            Param.STORE: plan.index.store.engine,
            Param.SEARCH: plan.index.search,
            Param.SEED: plan.seed,
            **{f"graph.{name}": value for name, value in plan.record["settings"].items()},
            **_model_params(evaluation),
        },
        metrics={
            **counts,
            "shared_seconds": evaluation.shared_seconds,
            "build_seconds": plan.record["build_seconds"],
            **call_metrics(calls),
        },
        tags={
            **common_tags(evaluation),
            **source_tags(options.command),
            Tag.NOTE: run_note(evaluation, options, report),
            **targets_tag(evaluation),
            **tags,
        },
        compared=tuple(f"{key}/{label}" for label in evaluation.trials),
        dataset=_dataset(evaluation),
        artifacts=tuple(Artifact(file) for file in files),
        started_at=begun,
        ended_at=time.time(),
    )


def tracked_trials(
    evaluation: Evaluation, options: RunOptions, begun: float, label_tags: Mapping[str, Mapping[str, str]], tables: Path
) -> list[RunPayload]:
    """The open parent, then a child for each label with its parameters, metrics, verdict and `label_tags`.

    The scores by question are written into the folder `tables`, which has to stay until the tracker is closed.
    """
    parent = tracking_key(options, begun)
    payloads = [RunPayload(parent, _parent_name(options, evaluation, begun), status="RUNNING", started_at=begun)]
    entries = results(evaluation)["strategies"]
    verdicts = {pair["label"]: pair for pair in comparisons(evaluation)}
    targets = check_targets(evaluation.plan.targets, entries)
    questions = evaluation.plan.benchmark.questions
    for number, (label, trial) in enumerate(evaluation.trials.items()):
        entry = entries[label]
        costs = {name: value for name in TRACKED_COSTS if (value := figure(entry, name)) is not None}
        if not entry["coverage"]:
            del costs["context_tokens"]  # of no context
        verdict = verdicts.get(label)
        payloads.append(
            RunPayload(
                f"{parent}/{label}",
                run_name(label),
                parent_key=parent,
                params={
                    Param.STRATEGY: trial.strategy,
                    Param.LABEL: label,
                    **_data_params(evaluation),
                    **trial.parameters,
                },
                metrics={
                    **with_coverage(entry["metrics"], entry["measured"]),
                    **costs,
                    **_noted(entry),
                    **judged_figures(entry.get("judged", {})),
                },
                tags={
                    **common_tags(evaluation),
                    **source_tags(options.command),
                    Tag.NOTE: label_note(evaluation, label, str(entry["kind"]), verdict),
                    **kind_tags(entry),
                    **plugin_tags(entry.get("plugins")),
                    **verdict_tags(verdict),
                    **target_tags(targets, label),
                    **TABLE_TAG,
                    **label_tags.get(label, {}),
                },
                artifacts=(Artifact(write_table(tables / str(number), evaluation.rows[label], questions)),),
                dataset=_dataset(evaluation),
                started_at=begun,
                ended_at=time.time(),
            )
        )
    return payloads


def _parent_name(options: RunOptions, evaluation: Evaluation, begun: float) -> str:
    return parent_name(options.command.split()[1], evaluation.plan.benchmark.name, begun)


def _data_params(evaluation: Evaluation) -> dict[str, str | int]:
    """Data set and number of questions: the same columns for runs, labels and sweeps' trials."""
    benchmark = evaluation.plan.benchmark
    return {Param.DATASET: benchmark.name, Param.QUESTIONS: len(benchmark.questions)}


def _noted(entry: Mapping[str, Any]) -> dict[str, float]:
    """`counts.NAME`, means a question of what the strategy counted, and `stage_seconds.NAME`."""
    return {
        f"{kind}.{name.replace(' ', '_')}": float(value)
        for kind in ("counts", "stage_seconds")
        for name, value in entry[kind].items()
    }


def _model_params(evaluation: Evaluation) -> dict[str, str]:
    """Reader and judge: scores of different models cannot be compared."""
    read = evaluation.read
    params: dict[str, str] = {} if read.reader is None else {Param.LLM: read.reader}
    if read.judged is not None:
        about = read.judged.judge
        params |= {
            Param.JUDGE: str(about["llm"]),
            Param.JUDGE_PROFILE: str(about["profile"]),
            Param.REPEATS: str(about["repeats"]),
        }
    return params


def call_metrics(calls: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """`calls.PURPOSE.usd` and the other sums of the ledger; an unknown price has no value."""
    return {
        f"calls.{purpose.replace(':', '.')}.{name}": float(value)
        for purpose, totals in calls.items()
        for name, value in totals.items()
        if value is not None
    }


def tracking_key(options: RunOptions, begun: float) -> str:
    """Names the parent run in MLflow; a label's is `KEY/LABEL`."""
    return f"{options.out.name} {begun:.3f}".replace("'", "")


def _dataset(evaluation: Evaluation) -> Dataset:
    return tracked_dataset(evaluation.plan.benchmark, evaluation.plan.benchmark.digest)


def tracked_dataset(benchmark: Benchmark, digest: str) -> Dataset:
    """A benchmark as MLflow's dataset of a run."""
    counts = {"num_rows": len(benchmark.questions), "passages": len(benchmark.passages)}
    return Dataset(benchmark.name, digest, counts, benchmark.folder)
