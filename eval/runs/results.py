"""The files of a run: results.json and questions.parquet (a contract, SPEC section 6), and the report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hopbench.eval.answering.answers import VERSION as READER_VERSION
from hopbench.eval.answering.reading import costs
from hopbench.eval.compare import PairResult
from hopbench.eval.explain import pairs_of, stated
from hopbench.eval.files import write_atomically, write_table
from hopbench.eval.report import ReportData, write_details, write_report
from hopbench.eval.runs.evaluate import Evaluation
from hopbench.eval.runs.targets import check_targets, targets_entry
from hopbench.eval.trials.traces import mean_counts, traces_table, write_traces
from hopbench.eval.trials.trial import TrialOutcome
from hopbench.eval.trials.version import plugin_settings
from hopbench.retrieval.chunking import count_tokens
from hopbench.retrieval.question.linking import entity_names
from hopbench.retrieval.types import Hit, Source

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "hopbench.results/1"
JUDGEMENTS_FILE = "judgements.parquet"


def results(evaluation: Evaluation) -> dict[str, Any]:
    """results.json: what varies between equal runs stands only under keys that contain `seconds` or `latency`."""
    plan = evaluation.plan
    benchmark = plan.benchmark
    strategies = {label: _strategy(evaluation, label) for label in evaluation.trials}
    return {
        "schema": SCHEMA,
        "benchmark": {
            "name": benchmark.name,
            "role": benchmark.role,
            "questions": len(benchmark.questions),
            "passages": len(benchmark.passages),
            "digest": benchmark.digest,
            "primary_metric": plan.primary,
        },
        "graph": {name: plan.record[name] for name in ("fingerprint", "build_key", "nodes", "edges", "build_seconds")},
        "embedder": plan.index.embedder.name,
        "store": plan.index.store.engine,
        "search": plan.index.search,
        "seed": plan.seed,
        "shared_seconds": round(evaluation.shared_seconds, 3),
        **_models(evaluation),
        "strategies": strategies,
        **({"targets": targets_entry(check_targets(plan.targets, strategies))} if plan.targets else {}),
    }


def _models(evaluation: Evaluation) -> dict[str, Any]:
    """Who read and who judged; nothing without them."""
    said = evaluation.read
    reader = {} if said.reader is None else {"reader": {"llm": said.reader, "prompt": READER_VERSION}}
    return reader if said.judged is None else {**reader, "judge": dict(said.judged.judge)}


def _strategy(evaluation: Evaluation, label: str) -> dict[str, Any]:
    trial, summary = evaluation.trials[label], evaluation.summaries[label]
    latencies = list(trial.latency_ms.values())
    counters = trial.counters
    contexts = [count_tokens(ranking.context) for ranking in trial.rankings.values() if ranking.failure is None]
    models = costs(evaluation.read, label)
    answering = models.get("answering", {})
    strategy = evaluation.plan.strategies.get(label)  # none answers with a closed book
    plugins = plugin_settings(strategy).get("plugins") if strategy is not None else None
    return {
        "kind": evaluation.plan.kind(label),
        "in_sample": evaluation.plan.in_sample(label),
        "params": dict(trial.parameters),
        **({"plugins": plugins} if plugins else {}),
        **{name: summary[name] for name in ("metrics", "answered", "measured", "coverage", "failures", "ceilings")},
        "by_type": summary["by_type"],
        "by_gold": summary["by_gold"],
        "seconds": None if strategy is not None and strategy.timing == "unknown" else round(trial.seconds, 4),
        "stage_seconds": {stage: round(spent, 4) for stage, spent in sorted(counters.stage_seconds.items())},
        "latency_ms_p50": round(float(np.percentile(latencies, 50)), 3) if latencies else None,
        "latency_ms_p95": round(float(np.percentile(latencies, 95)), 3) if latencies else None,
        **({"latency_pace": dict(trial.pace)} if trial.pace else {}),
        # Single calls are measured after the trial, when the cache knows what a strategy's model says.
        **({"latency_without_model": True} if counters.llm_calls and latencies else {}),
        "round_trips": counters.round_trips,
        "rows": counters.rows,
        "edges_touched": counters.edges_touched,
        "terminations": dict(sorted(counters.terminations.items())),
        "observed": dict(sorted(counters.observed.items())),
        "counts": mean_counts(trial),
        "llm_calls": counters.llm_calls + answering.get("calls", 0),
        "tokens": counters.tokens + answering.get("tokens_in", 0) + answering.get("tokens_out", 0),
        "context_tokens": round(float(np.mean(contexts)), 2) if contexts else 0.0,
        **models,
    }


def questions_table(evaluation: Evaluation) -> pd.DataFrame:
    """questions.parquet: a row per question × label: ranking, every metric, failure, and latency where measured.

    Where the corpus says in which file and on which page passages stand, `sources` has that of each ranked passage.
    """
    import pandas as pd

    tables = []
    for label, trial in evaluation.trials.items():
        ids = [question.id for question in evaluation.plan.benchmark.questions]
        rankings = [trial.rankings[question] for question in ids]
        head = pd.DataFrame(
            {
                "question_id": ids,
                "strategy": label,
                "ranked_ids": [list(ranking.ranked_ids) for ranking in rankings],
                "scores": [list(ranking.scores) for ranking in rankings],
                "latency_ms": [trial.latency_ms.get(question, np.nan) for question in ids],
                "graph_context": [ranking.graph_context for ranking in rankings],
            }
        )
        if sources := evaluation.plan.benchmark.sources:
            head["sources"] = [[_place(sources, passage) for passage in ranking.ranked_ids] for ranking in rankings]
        tables.append(head.join(evaluation.rows[label], on="question_id"))
    return pd.concat(tables, ignore_index=True)


def _place(sources: Mapping[str, Source], passage: str) -> str:
    """Where a passage stands in its file, as text; empty where the corpus does not say."""
    return str(sources.get(passage, ""))


def beside(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Each label against that baseline on RAGAS's metrics, as `comparisons`; each metric is a family of its own."""
    return [_pair(one.metric, pair, len(one.pairs)) for one in evaluation.beside for pair in one.pairs]


def comparisons(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Each label against the best baseline, flat, as the report and the tracker show it."""
    comparison = evaluation.comparison
    return (
        []
        if comparison is None
        else [_pair(comparison.metric, pair, len(comparison.pairs)) for pair in comparison.pairs]
    )


def _pair(metric: str, pair: PairResult, family: int) -> dict[str, Any]:
    return {
        "label": pair.label,
        "baseline": pair.baseline,
        "metric": metric,
        "effect": pair.difference,
        "ci_low": pair.ci.low if pair.ci else None,
        "ci_high": pair.ci.high if pair.ci else None,
        "family_low": pair.ci_family.low if pair.ci_family else None,
        "family_high": pair.ci_family.high if pair.ci_family else None,
        "family": family,
        "p": pair.p,
        "p_adjusted": pair.p_holm,
        "mde": pair.minimum_detectable,
        "verdict": pair.verdict,
        "incomplete": pair.incomplete,
        "n": pair.n,
        "wins": len(pair.wins),
        "losses": len(pair.losses),
        "ties": pair.ties,
    }


def report_data(evaluation: Evaluation, run: Mapping[str, Any], traces: pd.DataFrame | None = None) -> ReportData:
    """What the report shows."""
    paths = {
        (question, label): _hits(evaluation, trial, question)
        for label, trial in evaluation.trials.items()
        for question in trial.hits
    }
    names = _names(evaluation, paths)
    return ReportData(
        results(evaluation),
        questions_table(evaluation),
        evaluation.plan.benchmark,
        comparisons(evaluation),
        evaluation.intervals,
        paths,
        run,
        names,
        _stated(evaluation, names),
        traces,
        beside(evaluation),
    )


def _stated(evaluation: Evaluation, names: Mapping[str, str]) -> Mapping[tuple[str, str], Sequence[str]]:
    """What is stated of the entities that shown paths join."""
    trials = evaluation.trials.values()
    shown = (step for trial in trials for hits in trial.hits.values() for hit in hits for step in hit.path)
    return stated(evaluation.plan.index, pairs_of(shown), lambda entity: names.get(entity, entity))


def _names(evaluation: Evaluation, paths: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]) -> dict[str, str]:
    """Readable names of the entities on the shown paths."""
    shown = {end for hits in paths.values() for hit in hits for step in hit["path"] for end in _ends(step)}
    known = entity_names(evaluation.plan.index)
    return {node: known[node] for node in sorted(shown) if node in known}


def _ends(step: Mapping[str, str]) -> tuple[str, str]:
    return step["source"], step["target"]


def _hits(evaluation: Evaluation, trial: TrialOutcome, question: str) -> list[dict[str, Any]]:
    """The first hits of a question as dicts, a passage once."""
    passage_of = evaluation.plan.index.passage_of
    first: dict[str, Hit] = {}
    for hit in trial.hits[question]:
        first.setdefault(passage_of[hit.chunk_id], hit)
    return [_hit(passage, rank, hit) for rank, (passage, hit) in enumerate(first.items(), 1)]


def _hit(passage: str, rank: int, hit: Hit) -> dict[str, Any]:
    steps = [
        {"edge": step.edge, "source": step.source, "target": step.target, "weight": step.weight, "score": step.score}
        for step in hit.path
    ]
    components = {name: round(float(value), 6) for name, value in hit.components.items()}
    return {
        "passage_id": passage,
        "rank": rank,
        "score": hit.score,
        "origin": hit.origin,
        "components": components,
        "path": steps,
        **({"source": hit.source.facts()} if hit.source else {}),
    }


def write_results(evaluation: Evaluation, out: Path, run: Mapping[str, Any]) -> list[Path]:
    """Write all files of the run, each whole or not at all, results.json last; returns them in order of writing."""
    traces = traces_table(evaluation.trials)
    data = report_data(evaluation, run, traces)
    table, report, summary = out / "questions.parquet", out / "report.html", out / "results.json"
    write_table(table, data.questions)
    judged = [*_write_judgements(evaluation, out), write_traces(traces, out)]
    details = write_details(data, out)
    write_report(data, report)
    text = json.dumps(data.results, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomically(summary, text.encode())
    return [table, *judged, details, report, summary]


def _write_judgements(evaluation: Evaluation, out: Path) -> list[Path]:
    """judgements.parquet: a row per label, question, metric and repeat, with the score or the reason why none."""
    if evaluation.read.judged is None:
        (out / JUDGEMENTS_FILE).unlink(missing_ok=True)  # of the run that was replaced
        return []
    write_table(out / JUDGEMENTS_FILE, evaluation.read.judged.table)
    return [out / JUDGEMENTS_FILE]
