"""Answers and judgements of a sweep's trials: their cost beside the trial's own, and means with their coverage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hopbench.eval.answering.reading import Read, costs, judged_figures
from hopbench.eval.metrics import Summary, all_metrics
from hopbench.eval.sweep.results import Result
from hopbench.eval.trials.ledger import TrialRecord
from hopbench.eval.types import MAX_FAILED, too_many_failed

COVERAGE = "read_coverage"


def with_readers(own: Mapping[str, float], answered: Read, label: str, summary: Summary) -> dict[str, float]:
    """A trial's costs with those of its answers and judgements, and the share of the questions that they cover.

    `read_coverage` is that of the metric that covers least, of the questions with a ranking.
    """
    spent = costs(answered, label)
    answering = spent.get("answering", {})
    total = dict(own)
    total["llm_calls"] += answering.get("calls", 0)
    total["tokens"] += answering.get("tokens_in", 0) + answering.get("tokens_out", 0)
    total |= {name: float(spent[name]) for name in ("judge_calls", "judge_tokens") if name in spent}
    least = min((summary["measured"][name] for name in model_metrics() if name in summary["measured"]), default=1.0)
    share = min(1.0, least / summary["coverage"]) if summary["coverage"] else 1.0
    return {**total, **judged_figures(spent.get("judged", {})), COVERAGE: share}


def coverage_of(result: Result) -> float | None:
    """The least `read_coverage` of a configuration's trials; None without a reader or judge."""
    return min((r.costs[COVERAGE] for r in result.records.values() if COVERAGE in r.costs), default=None)


def model_metrics() -> list[str]:
    """Every metric of a reader's answers or a judge's scores."""
    return [*all_metrics("answer"), *all_metrics("judge")]


def is_complete(record: TrialRecord) -> bool:
    """Whether enough of a trial's questions were ranked and read to store it; else the next run repeats it."""
    return not shortcomings(record)


def shortcomings(record: TrialRecord) -> list[str]:
    """Why a trial is not stored, in words: an outage of a server or model must not be its final result."""
    reasons, count = [], len(record.questions)
    if too_many_failed(record.failures, count):
        reasons.append(f"{record.failures} of {count} questions failed")
    if record.costs.get(COVERAGE, 1.0) < 1.0 - MAX_FAILED:
        reasons.append(f"answers or judgements cover {record.costs[COVERAGE]:.1%} of it")
    return reasons


@dataclass(frozen=True)
class ModelScore:
    """A metric's mean over a configuration's data sets; the least coverage and the largest spread on any of them."""

    mean: float
    coverage: float | None
    judge_sd: float | None


def model_scores(result: Result) -> dict[str, ModelScore]:
    """A configuration's answer and judge metrics; empty without a reader or judge."""
    records = list(result.records.values())
    known = [name for name in model_metrics() if all(name in record.metrics for record in records)]
    shares = {name: [r.costs[f"{name}.coverage"] for r in records if f"{name}.coverage" in r.costs] for name in known}
    return {
        name: ModelScore(result.mean(name), min(shares[name], default=None), result.cost(f"{name}.judge_sd"))
        for name in known
    }


def scored_columns(results: Sequence[Result]) -> list[str]:
    """The answer and judge metrics that any configuration has, in the registry's order."""
    scored = {name for result in results for name in model_scores(result)}
    return [name for name in model_metrics() if name in scored]


def readers_of(result: Result) -> tuple[str, str]:
    """The reader and the judge of a configuration, in words; empty where there is none."""
    settings = next(iter(result.records.values())).settings
    reader, judge = settings.get("reader"), settings.get("judge")
    judged_by = ""
    if judge:
        judged_by = f"{judge['model']}@{judge['url']}, profile {judge['profile']}, asked {judge['repeats']} ×"
    return reader["llm"] if reader else "", judged_by
