"""A run's facts for the report, and its payload for MLflow: the parent of a run for each label."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.trials.key import code_version
from hopbench.flows.orchestration.pages import REPORT
from hopbench.flows.run.descriptions import parent_name, run_note, source_tags
from hopbench.flows.run.tags import common_tags, targets_tag
from hopbench.flows.tracking.client import Artifact, Dataset, RunPayload
from hopbench.flows.tracking.names import Param, Tag
from hopbench.retrieval.llm.endpoint import asked_of

if TYPE_CHECKING:
    from hopbench.eval.answering.answers import ModelEntry
    from hopbench.eval.runs.evaluate import Evaluation
    from hopbench.eval.types import Benchmark
    from hopbench.flows.settings.options import RunOptions


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
        run_title(options, evaluation, begun),
        params={
            **data_params(evaluation),
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
        dataset=run_dataset(evaluation),
        artifacts=tuple(Artifact(file) for file in files),
        started_at=begun,
        ended_at=time.time(),
    )


def run_title(options: RunOptions, evaluation: Evaluation, begun: float) -> str:
    """The name of the parent run."""
    return parent_name(options.command.split()[1], evaluation.plan.benchmark.name, begun)


def data_params(evaluation: Evaluation) -> dict[str, str | int]:
    """Data set and number of questions: the same columns for runs, labels and sweeps' trials."""
    benchmark = evaluation.plan.benchmark
    return {Param.DATASET: benchmark.name, Param.QUESTIONS: len(benchmark.questions)}


def _model_params(evaluation: Evaluation) -> dict[str, str]:
    """Reader and judge: scores of different models cannot be compared."""
    read = evaluation.read
    params: dict[str, str] = {} if read.reader is None else {Param.LLM: read.reader["llm"], **_asked(read.reader)}
    if read.judged is not None:
        about = read.judged.judge
        params |= {
            Param.JUDGE: str(about["llm"]),
            Param.JUDGE_PROFILE: str(about["profile"]),
            Param.REPEATS: str(about["repeats"]),
            **_asked(about),
        }
    return params


def _asked(entry: ModelEntry) -> dict[str, str]:
    """Effort and completion budget, which a run's models share."""
    return {name: str(value) for name, value in asked_of(entry).items()}


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


def run_dataset(evaluation: Evaluation) -> Dataset:
    """The benchmark of a run and of its labels."""
    return tracked_dataset(evaluation.plan.benchmark, evaluation.plan.benchmark.digest)


def tracked_dataset(benchmark: Benchmark, digest: str) -> Dataset:
    """A benchmark as MLflow's dataset of a run."""
    counts = {"num_rows": len(benchmark.questions), "passages": len(benchmark.passages)}
    return Dataset(benchmark.name, digest, counts, benchmark.folder)
