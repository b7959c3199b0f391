"""A run's facts for the report, and its payload for MLflow: the parent of a run for each label.

Descriptions are Markdown: what ran, how it came out, and how to run it again.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.metrics import rank_key
from hopbench.eval.runs.results import comparisons, results
from hopbench.eval.runs.targets import TargetResult, check_targets
from hopbench.eval.trials.key import code_version
from hopbench.flows.orchestration.pages import REPORT
from hopbench.flows.tracking.client import Artifact, Dataset, RunPayload
from hopbench.flows.tracking.payload import MAX_RUN_NAME, Param, Tag, run_name, target_tag
from hopbench.retrieval.llm.endpoint import asked_of

if TYPE_CHECKING:
    from hopbench.eval.answering.answers import JudgeEntry, ReaderEntry
    from hopbench.eval.runs.evaluate import Evaluation
    from hopbench.eval.types import Benchmark
    from hopbench.flows.settings.options import RunOptions


def common_tags(evaluation: Evaluation) -> dict[str, str]:
    """Graph, code and data: what a run and its labels were made with."""
    record = evaluation.plan.record
    return {
        Tag.GRAPH_FINGERPRINT: str(record["fingerprint"]),
        Tag.BUILD_KEY: str(record["build_key"]),
        Tag.CODE_VERSION: code_version(),
        Tag.BENCHMARK_DIGEST: evaluation.plan.benchmark.digest,
        Tag.ROLE: evaluation.plan.benchmark.role,
    }


def targets_tag(evaluation: Evaluation) -> dict[str, str]:
    """`targets` of the whole run: pass, or fail where a label misses one."""
    if not evaluation.plan.targets:
        return {}
    found = check_targets(evaluation.plan.targets, results(evaluation)["strategies"])
    return {Tag.TARGETS: "pass" if all(item.passed for item in found) else "fail"}


def target_tags(targets: Sequence[TargetResult], label: str) -> dict[str, str]:
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


def kind_tags(entry: Mapping[str, Any]) -> dict[str, str]:
    """What kind of label it is, and on which of the sets that chose its numbers it was scored."""
    here = entry["in_sample"]
    return {Tag.KIND: str(entry["kind"]), **({Tag.IN_SAMPLE: ",".join(here["sets"])} if here else {})}


def verdict_tags(verdict: Mapping[str, Any] | None) -> dict[str, str]:
    """The comparison with the baseline, in a word and in full."""
    return {} if verdict is None else {Tag.VERDICT: str(verdict["verdict"]), Tag.COMPARISON: json.dumps(verdict)}


STAMP = "%Y-%m-%d %H:%M"


def parent_name(what: str, subject: str, begun: float) -> str:
    """`nightly hopworld 2026-11-22 02:00` (UTC): nights of one data set differ in their start."""
    stamp = datetime.fromtimestamp(begun, UTC).strftime(STAMP)
    return f"{run_name(f'{what} {subject}')[: MAX_RUN_NAME - len(stamp) - 1].rstrip()} {stamp}"


def source_tags(command: str) -> dict[str, str]:
    """MLflow's source of a run: the command without its arguments, which are in the description."""
    return {Tag.SOURCE: " ".join(command.split()[:2]), Tag.SOURCE_TYPE: "LOCAL"}


def run_note(evaluation: Evaluation, options: RunOptions, report: Path | None) -> str:
    """A run: its data set, the labels by the primary metric with their verdicts, the report, and the command."""
    plan, entries = evaluation.plan, results(evaluation)["strategies"]
    metric = plan.primary or ""
    verdicts: Mapping[str, Any] = {pair["label"]: pair for pair in comparisons(evaluation)}
    baseline = next((str(pair["baseline"]) for pair in verdicts.values()), "")
    rows = [
        f"| {_plain(label)} | {_number(entries[label]['metrics'].get(metric))} | {_verdict(verdicts.get(label))} |"
        for label in sorted(entries, key=lambda one: rank_key(metric, entries[one]["metrics"].get(metric)))
    ]
    head = [f"| label | {metric} | against {_plain(baseline)} |", "|---|---|---|"] if metric else []
    table = "\n".join([*head, *rows]) if metric else ""
    where = f"Report: `{report}`" if report is not None else ""
    parts = [
        f"{len(entries)} labels on {_plain(plan.benchmark.name)}: {len(plan.benchmark.questions)} questions, "
        f"{len(plan.benchmark.passages)} passages, digest `{plan.benchmark.digest[:12]}`",
        table,
        where,
        f"`{options.command}`",
    ]
    return "\n\n".join(part for part in parts if part)


def label_note(evaluation: Evaluation, label: str, entry: Mapping[str, Any], verdict: Mapping[str, Any] | None) -> str:
    """A label of a run: its kind, the primary metric, and the difference from the baseline."""
    metric = evaluation.plan.primary
    scored = f": {metric} {_number(entry['metrics'].get(metric))}" if metric else ""
    compared = f"; {_verdict(verdict)} against {_plain(str(verdict['baseline']))}" if verdict else ""
    return f"{_plain(label)} ({entry['kind']}) on {_plain(evaluation.plan.benchmark.name)}{scored}{compared}"


def _verdict(pair: Mapping[str, Any] | None) -> str:
    if pair is None:
        return "the baseline"
    return str(pair["verdict"]) + (f" {pair['effect']:+.3f}" if pair["effect"] is not None else "")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _plain(text: str) -> str:
    """`text` as Markdown that shows it as it is."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text)


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


def _asked(entry: ReaderEntry | JudgeEntry) -> dict[str, str]:
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
