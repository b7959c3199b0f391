"""A run's facts for the report, and its payloads for MLflow: a parent for the run, and a child for each label."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.answering.reading import judged_figures
from hopbench.eval.files import write_atomically
from hopbench.eval.metrics import rank_key, with_coverage
from hopbench.eval.runs.files import StrategyEntry, figure
from hopbench.eval.runs.results import comparisons, results
from hopbench.eval.runs.targets import TargetResult, check_targets
from hopbench.eval.trials.key import code_version
from hopbench.flows.orchestration.pages import REPORT
from hopbench.flows.tracking.payload import (
    MAX_RUN_NAME,
    TABLE_TAG,
    Param,
    RunPayload,
    Tag,
    mlflow_dataset,
    run_name,
    write_table,
)
from hopbench.retrieval.llm.endpoint import asked_of

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Evaluation
    from hopbench.eval.types import Benchmark, BenchmarkQuestion
    from hopbench.flows.run.finished import Finished
    from hopbench.flows.settings.options import RunOptions

Calls = Mapping[str, Mapping[str, Any]]
"""Calls to language models, by purpose."""

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
MAX_TRACES = 200
"""Of each label: a trace costs MLflow about as much as a trial, and nobody reads more."""


def run_facts(finished: Finished, options: RunOptions, calls: Calls) -> dict[str, Any]:
    """The run facts that the report prints."""
    plan = finished.evaluation.plan
    return {
        "command": options.command,
        "started": datetime.fromtimestamp(finished.started_at, UTC).isoformat(timespec="seconds"),
        "code_version": code_version(),
        "store": plan.index.store.engine,
        "search": plan.index.search,
        "embedder": plan.index.embedder.name,
        "graph": {name: plan.record[name] for name in ("nodes", "edges", "fingerprint", "build_key")},
        "seed": options.seed,
        "settings": options.graph_settings(),
        "warnings": list(finished.warnings),
        **({"calls": dict(calls)} if calls else {}),
        **finished.facts,
    }


def tracked_run(finished: Finished, options: RunOptions, files: Sequence[Path], calls: Calls) -> RunPayload:
    """The parent run: facts that all labels share, calls to language models, and the files."""
    evaluation, plan, record = finished.evaluation, finished.evaluation.plan, finished.evaluation.plan.record
    shared = _shared(evaluation, options)
    targets = check_targets(plan.targets, results(evaluation)["strategies"]) if plan.targets else ()
    report = next((file for file in files if file.name == REPORT), None)
    return RunPayload(
        finished.key,
        _title(finished, options),
        params={
            **shared["params"],
            Param.STRATEGIES: ",".join(evaluation.trials),
            Param.EMBEDDER: plan.index.embedder.name,
            Param.STORE: plan.index.store.engine,
            Param.SEARCH: plan.index.search,
            Param.SEED: plan.seed,
            **{f"graph.{name}": value for name, value in record["settings"].items()},
            **_model_params(evaluation),
        },
        metrics={
            **{f"graph_{name}": float(count) for name, count in {**record["nodes"], **record["edges"]}.items()},
            "shared_seconds": evaluation.shared_seconds,
            "build_seconds": record["build_seconds"],
            **call_metrics(calls),
        },
        tags={
            **shared["tags"],
            Tag.NOTE: _run_note(evaluation, options, report),
            **({Tag.TARGETS: _passed(targets)} if targets else {}),
            **finished.tags,
        },
        compared=tuple(f"{finished.key}/{label}" for label in evaluation.trials),
        dataset=shared["dataset"],
        artifacts=tuple(files),
        started_at=finished.started_at,
        ended_at=time.time(),
    )


def tracked_trials(finished: Finished, options: RunOptions, tables: Path) -> Iterator[RunPayload]:
    """The open parent, then a child for each label with its parameters, metrics, verdict and tags.

    The scores by question are written into the folder `tables`, which has to stay until the tracker is closed.
    """
    evaluation, begun = finished.evaluation, finished.started_at
    yield RunPayload(finished.key, _title(finished, options), status="RUNNING", started_at=begun)
    entries = results(evaluation)["strategies"]
    verdicts = {pair["label"]: pair for pair in comparisons(evaluation)}
    targets = check_targets(evaluation.plan.targets, entries)
    shared = _shared(evaluation, options)
    for number, (label, trial) in enumerate(evaluation.trials.items()):
        entry, folder = entries[label], tables / str(number)  # a label is no name of a folder
        yield RunPayload(
            f"{finished.key}/{label}",
            run_name(label),
            parent_key=finished.key,
            params={Param.STRATEGY: trial.strategy, Param.LABEL: label, **shared["params"], **trial.parameters},
            metrics=_metrics(entry),
            tags={
                **shared["tags"],
                **_label_tags(evaluation, label, entry, verdicts.get(label)),
                **_target_tags([one for one in targets if one.label == label]),
                **finished.label_tags.get(label, {}),
            },
            judged=_write_judged(evaluation, label, folder / "judged.jsonl"),
            artifacts=(write_table(folder, evaluation.rows[label], evaluation.plan.benchmark.questions),),
            dataset=shared["dataset"],
            started_at=begun,
            ended_at=time.time(),
        )


def _shared(evaluation: Evaluation, options: RunOptions) -> dict[str, Any]:
    """What a run and its labels have in common: parameters, tags and data set."""
    benchmark, record = evaluation.plan.benchmark, evaluation.plan.record
    return {
        "params": {Param.DATASET: benchmark.name, Param.QUESTIONS: len(benchmark.questions)},
        "tags": {
            Tag.GRAPH_FINGERPRINT: str(record["fingerprint"]),
            Tag.BUILD_KEY: str(record["build_key"]),
            Tag.CODE_VERSION: code_version(),
            Tag.BENCHMARK_DIGEST: benchmark.digest,
            Tag.ROLE: benchmark.role,
            **source_tags(options.command),
        },
        "dataset": tracked_dataset(benchmark, benchmark.digest),
    }


def tracked_dataset(benchmark: Benchmark, digest: str) -> dict[str, str]:
    """A benchmark as MLflow's data set of a run; `digest` is that of the whole where `benchmark` is a part."""
    counts = {"num_rows": len(benchmark.questions), "passages": len(benchmark.passages)}
    return mlflow_dataset(benchmark.name, digest, counts, benchmark.folder)


def _title(finished: Finished, options: RunOptions) -> str:
    return parent_name(options.command.split()[1], finished.evaluation.plan.benchmark.name, finished.started_at)


def parent_name(what: str, subject: str, begun: float) -> str:
    """`nightly hopworld 2026-11-22 02:00` (UTC): nights of one data set differ in their start."""
    stamp = f"{datetime.fromtimestamp(begun, UTC):%Y-%m-%d %H:%M}"
    return f"{run_name(f'{what} {subject}')[: MAX_RUN_NAME - len(stamp) - 1].rstrip()} {stamp}"


def source_tags(command: str) -> dict[str, str]:
    """MLflow's source of a run: the command without its arguments, which are in the description."""
    return {Tag.SOURCE: " ".join(command.split()[:2]), Tag.SOURCE_TYPE: "LOCAL"}


def plugin_tags(plugins: Mapping[str, str] | None) -> dict[str, str]:
    """The tag `plugins`: version and digest of each plug-in that a trial used."""
    return {Tag.PLUGINS: ", ".join(f"{name} {code}" for name, code in plugins.items())} if plugins else {}


def call_metrics(calls: Calls) -> dict[str, float]:
    """`calls.PURPOSE.usd` and the other sums of the ledger; an unknown price has no value."""
    return {
        f"calls.{purpose.replace(':', '.')}.{name}": float(value)
        for purpose, totals in calls.items()
        for name, value in totals.items()
        if value is not None
    }


def _model_params(evaluation: Evaluation) -> dict[str, str]:
    """Reader and judge: scores of different models cannot be compared."""
    reader = evaluation.read.reader
    params: dict[str, str] = {}
    if reader is not None:
        params = {Param.LLM: reader["llm"], **{name: str(value) for name, value in asked_of(reader).items()}}
    if evaluation.read.judged is not None:
        judge = evaluation.read.judged.judge
        params |= {
            Param.JUDGE: str(judge["llm"]),
            Param.JUDGE_PROFILE: str(judge["profile"]),
            Param.REPEATS: str(judge["repeats"]),
            **{name: str(value) for name, value in asked_of(judge).items()},
        }
    return params


def _metrics(entry: StrategyEntry) -> dict[str, float]:
    """Means with their coverage, what was spent, what the strategy counted, and the judge's figures."""
    costs = {name: value for name in TRACKED_COSTS if (value := figure(entry, name)) is not None}
    if not entry["coverage"]:
        del costs["context_tokens"]  # of no context
    counted = {
        f"{kind}.{name.replace(' ', '_')}": float(value)
        for kind, values in (("counts", entry["counts"]), ("stage_seconds", entry["stage_seconds"]))
        for name, value in values.items()
    }
    means = with_coverage(entry["metrics"], entry["measured"])
    return {**means, **costs, **counted, **judged_figures(entry.get("judged", {}))}


def _label_tags(
    evaluation: Evaluation, label: str, entry: StrategyEntry, verdict: Mapping[str, Any] | None
) -> dict[str, str]:
    """The description, the kind, the plug-ins and the verdict of a label."""
    metric, here = evaluation.plan.primary, entry["in_sample"]
    scored = f": {metric} {_number(entry['metrics'].get(metric))}" if metric else ""
    compared = f"; {_verdict(verdict)} against {_plain(str(verdict['baseline']))}" if verdict else ""
    return {
        Tag.NOTE: f"{_plain(label)} ({entry['kind']}) on {_plain(evaluation.plan.benchmark.name)}{scored}{compared}",
        Tag.KIND: str(entry["kind"]),
        **({Tag.IN_SAMPLE: ",".join(here["sets"])} if here else {}),
        **plugin_tags(entry.get("plugins")),
        **({} if verdict is None else {Tag.VERDICT: str(verdict["verdict"]), Tag.COMPARISON: json.dumps(verdict)}),
        **TABLE_TAG,
    }


def _target_tags(targets: Sequence[TargetResult]) -> dict[str, str]:
    """`targets`: pass or fail of all of a label's targets; `target.METRIC` of each, with limit and value."""
    lines: dict[str, list[str]] = {}
    for one in targets:
        lines.setdefault(f"target.{one.target.metric}", []).append(one.words.partition(": ")[2])
    return ({Tag.TARGETS: _passed(targets)} if targets else {}) | {
        name: "; ".join(words) for name, words in lines.items()
    }


def _passed(targets: Sequence[TargetResult]) -> str:
    return "pass" if all(one.passed for one in targets) else "fail"


def _run_note(evaluation: Evaluation, options: RunOptions, report: Path | None) -> str:
    """A run: its data set, the labels by the primary metric with their verdicts, the report, and the command."""
    plan, entries = evaluation.plan, results(evaluation)["strategies"]
    metric = plan.primary or ""
    verdicts: Mapping[str, Any] = {pair["label"]: pair for pair in comparisons(evaluation)}
    baseline = next((str(pair["baseline"]) for pair in verdicts.values()), "")
    rows = [
        f"| {_plain(label)} | {_number(entries[label]['metrics'].get(metric))} | {_verdict(verdicts.get(label))} |"
        for label in sorted(entries, key=lambda one: rank_key(metric, entries[one]["metrics"].get(metric)))
    ]
    parts = [
        f"{len(entries)} labels on {_plain(plan.benchmark.name)}: {len(plan.benchmark.questions)} questions, "
        f"{len(plan.benchmark.passages)} passages, digest `{plan.benchmark.digest[:12]}`",
        "\n".join([f"| label | {metric} | against {_plain(baseline)} |", "|---|---|---|", *rows]) if metric else "",
        f"Report: `{report}`" if report is not None else "",
        f"`{options.command}`",
    ]
    return "\n\n".join(part for part in parts if part)


def _verdict(pair: Mapping[str, Any] | None) -> str:
    if pair is None:
        return "the baseline"
    return str(pair["verdict"]) + (f" {pair['effect']:+.3f}" if pair["effect"] is not None else "")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _plain(text: str) -> str:
    """`text` as Markdown that shows it as it is."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text)


def _write_judged(evaluation: Evaluation, label: str, file: Path) -> Path | None:
    """Write the label's first judged questions to `file`; None where it was not judged."""
    judged = evaluation.read.judged
    if judged is None or label not in judged.labels:
        return None
    columns, failures = judged.columns(label), judged.failures(label).to_dict()
    scores = columns.astype(object).where(columns.notna(), None).to_dict("index")
    asked = [question for question in evaluation.plan.benchmark.questions if question.id in scores]
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
        for question in asked[:MAX_TRACES]
    ]
    write_atomically(file, "\n".join(lines).encode())
    return file


def _asked(evaluation: Evaluation, label: str, question: BenchmarkQuestion) -> dict[str, Any]:
    """The question, what the strategy found for it, and what the reader answered."""
    ranking = evaluation.trials[label].rankings[question.id]
    answer = evaluation.read.answers.get(label, {}).get(question.id)
    ids = [*(["graph"] if ranking.graph_context else []), *ranking.context_ids]
    titles = evaluation.plan.benchmark.titles
    return {
        "id": question.id,
        "question": question.text,
        "expected": question.answer,
        "passages": [
            {"id": name, "title": titles.get(name, ""), "text": text}
            for name, text in zip(ids, ranking.context_parts, strict=False)
        ],
        "reader": evaluation.read.reader,
        "answer": answer.statement or answer.answer if answer is not None else None,
        "failure": ranking.failure or (answer.failure if answer is not None else None),
    }
