"""What the report shows of an evaluation that has just ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hopbench.eval.explain import pairs_of, stated
from hopbench.eval.report.data import ReportData
from hopbench.eval.runs.results import comparisons, questions_table, ragas_comparisons, results
from hopbench.eval.runs.schema import HitEntry, StepEntry
from hopbench.retrieval.question.linking import entity_names

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.eval.runs.evaluate import Evaluation
    from hopbench.eval.trials.trial import TrialOutcome
    from hopbench.retrieval.types import Hit


def report_data(evaluation: Evaluation, run: Mapping[str, Any], traces: pd.DataFrame | None = None) -> ReportData:
    """The data of the report; `run` holds the facts of the command that it prints."""
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
        ragas_comparisons(evaluation),
    )


def _hits(evaluation: Evaluation, trial: TrialOutcome, question: str) -> list[HitEntry]:
    """The first hits of a question, each passage once."""
    passage_of = evaluation.plan.index.passage_of
    first: dict[str, Hit] = {}
    for hit in trial.hits[question]:
        first.setdefault(passage_of[hit.chunk_id], hit)
    return [_hit(passage, rank, hit) for rank, (passage, hit) in enumerate(first.items(), 1)]


def _hit(passage: str, rank: int, hit: Hit) -> HitEntry:
    steps: list[StepEntry] = [
        {"edge": step.edge, "source": step.source, "target": step.target, "weight": step.weight, "score": step.score}
        for step in hit.path
    ]
    entry: HitEntry = {
        "passage_id": passage,
        "rank": rank,
        "score": hit.score,
        "origin": hit.origin,
        "components": {name: round(float(value), 6) for name, value in hit.components.items()},
        "path": steps,
    }
    if hit.source:
        entry["source"] = hit.source.facts()
    return entry


def _names(evaluation: Evaluation, paths: Mapping[tuple[str, str], Sequence[HitEntry]]) -> dict[str, str]:
    """Readable names of the entities on the paths."""
    steps = (step for hits in paths.values() for hit in hits for step in hit["path"])
    shown = {end for step in steps for end in (step["source"], step["target"])}
    known = entity_names(evaluation.plan.index)
    return {node: known[node] for node in sorted(shown) if node in known}


def _stated(evaluation: Evaluation, names: Mapping[str, str]) -> Mapping[tuple[str, str], Sequence[str]]:
    """What is stated of the entities that the paths join."""
    trials = evaluation.trials.values()
    shown = (step for trial in trials for hits in trial.hits.values() for hit in hits for step in hit.path)
    return stated(evaluation.plan.index, pairs_of(shown), lambda entity: names.get(entity, entity))
