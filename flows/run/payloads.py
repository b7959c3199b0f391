"""A run's facts for the report, and its payloads for MLflow: a parent run with a child for each label."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.answering.reading import judged_figures
from hopbench.eval.metrics import with_coverage
from hopbench.eval.runs.results import comparisons, results
from hopbench.eval.runs.schema import figure
from hopbench.eval.runs.targets import TargetResult, check_targets
from hopbench.eval.trials.version import code_version
from hopbench.flows.tracking.client import Artifact, Dataset, RunPayload
from hopbench.flows.tracking.names import Param, Tag, target_tag

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Evaluation
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
    return RunPayload(
        tracking_key(options, begun),
        f"{options.command.split()[1]} {plan.benchmark.name}",
        params={
            Param.DATASET: plan.benchmark.name,
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
        tags={**_tags(evaluation), **_targets_tag(evaluation), **tags},
        dataset=_dataset(evaluation),
        artifacts=tuple(Artifact(file) for file in files),
        started_at=begun,
        ended_at=time.time(),
    )


def tracked_trials(
    evaluation: Evaluation, options: RunOptions, begun: float, label_tags: Mapping[str, Mapping[str, str]]
) -> list[RunPayload]:
    """The open parent, then a child for each label with its parameters, metrics, verdict and `label_tags`."""
    parent = tracking_key(options, begun)
    payloads = [RunPayload(parent, f"{options.command.split()[1]} {evaluation.plan.benchmark.name}", status="RUNNING")]
    entries = results(evaluation)["strategies"]
    verdicts = {pair["label"]: pair for pair in comparisons(evaluation)}
    targets = check_targets(evaluation.plan.targets, entries)
    for label, trial in evaluation.trials.items():
        entry = entries[label]
        costs = {name: value for name in TRACKED_COSTS if (value := figure(entry, name)) is not None}
        if not entry["coverage"]:
            del costs["context_tokens"]  # of no context
        verdict = verdicts.get(label)
        payloads.append(
            RunPayload(
                f"{parent}/{label}",
                label,
                parent_key=parent,
                params={Param.STRATEGY: trial.strategy, Param.LABEL: label, **trial.parameters},
                metrics={
                    **with_coverage(entry["metrics"], entry["measured"]),
                    **costs,
                    **_noted(entry),
                    **judged_figures(entry.get("judged", {})),
                },
                tags={
                    **_tags(evaluation),
                    **_kind_tags(entry),
                    **plugin_tags(entry.get("plugins")),
                    **_verdict_tags(verdict),
                    **_target_tags(targets, label),
                    **label_tags.get(label, {}),
                },
                dataset=_dataset(evaluation),
                started_at=begun,
                ended_at=time.time(),
            )
        )
    return payloads


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


def _tags(evaluation: Evaluation) -> dict[str, str]:
    record = evaluation.plan.record
    return {
        Tag.GRAPH_FINGERPRINT: str(record["fingerprint"]),
        Tag.BUILD_KEY: str(record["build_key"]),
        Tag.CODE_VERSION: code_version(),
        Tag.BENCHMARK_DIGEST: evaluation.plan.benchmark.digest,
        Tag.ROLE: evaluation.plan.benchmark.role,
    }


def _targets_tag(evaluation: Evaluation) -> dict[str, str]:
    """`targets` of the whole run: pass, or fail where a label misses one."""
    if not evaluation.plan.targets:
        return {}
    found = check_targets(evaluation.plan.targets, results(evaluation)["strategies"])
    return {Tag.TARGETS: "pass" if all(item.passed for item in found) else "fail"}


def _target_tags(targets: Sequence[TargetResult], label: str) -> dict[str, str]:
    """`targets`: pass or fail of all of a label's targets; `target.METRIC` of each, with limit and value."""
    own = [target for target in targets if target.label == label]
    if not own:
        return {}
    lines: dict[str, list[str]] = {}
    for one in own:
        lines.setdefault(target_tag(one.target.metric), []).append(one.words.partition(": ")[2])
    verdict = "pass" if all(one.passed for one in own) else "fail"
    return {Tag.TARGETS: verdict} | {name: "; ".join(words) for name, words in lines.items()}


def plugin_tags(plugins: Mapping[str, str] | None) -> dict[str, str]:
    """The tag `plugins`: version and digest of each plug-in that a trial used."""
    return {Tag.PLUGINS: ", ".join(f"{name} {code}" for name, code in plugins.items())} if plugins else {}


def _kind_tags(entry: Mapping[str, Any]) -> dict[str, str]:
    """What kind of label it is, and on which of the sets that chose its numbers it was scored."""
    here = entry["in_sample"]
    return {Tag.KIND: str(entry["kind"]), **({Tag.IN_SAMPLE: ",".join(here["sets"])} if here else {})}


def _verdict_tags(verdict: Mapping[str, Any] | None) -> dict[str, str]:
    return {} if verdict is None else {Tag.VERDICT: str(verdict["verdict"]), Tag.COMPARISON: json.dumps(verdict)}


def _dataset(evaluation: Evaluation) -> Dataset:
    benchmark = evaluation.plan.benchmark
    counts = {"questions": len(benchmark.questions), "passages": len(benchmark.passages)}
    return Dataset(benchmark.name, benchmark.digest, counts)
