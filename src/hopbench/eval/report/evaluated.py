"""What the report shows of an evaluation that has just ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    names = _names(evaluation)
    return ReportData(
        results(evaluation),
        questions_table(evaluation),
        evaluation.plan.benchmark,
        comparisons(evaluation),
        evaluation.intervals,
        _Paths(evaluation),
        run,
        names,
        _stated(evaluation, names),
        traces,
        ragas_comparisons(evaluation),
    )


@dataclass(frozen=True, eq=False)
class _Paths(Mapping[tuple[str, str], Sequence[HitEntry]]):
    """(question id, label) → first hits, made when somebody reads them: of 10,000 questions they would be many GB."""

    evaluation: Evaluation

    def __getitem__(self, key: tuple[str, str]) -> list[HitEntry]:
        question, label = key
        hits = _hits(self.evaluation, self.evaluation.trials[label], question)
        return [_hit(passage, rank, hit) for rank, (passage, hit) in enumerate(hits.items(), 1)]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((question, label) for label, trial in self.evaluation.trials.items() for question in trial.hits)

    def __len__(self) -> int:
        return sum(len(trial.hits) for trial in self.evaluation.trials.values())


def _hits(evaluation: Evaluation, trial: TrialOutcome, question: str) -> dict[str, Hit]:
    """The first hits of a question by passage, each passage once."""
    passage_of = evaluation.plan.index.passage_of
    first: dict[str, Hit] = {}
    for hit in trial.hits[question]:
        first.setdefault(passage_of[hit.chunk_id], hit)
    return first


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


def _names(evaluation: Evaluation) -> dict[str, str]:
    """Readable names of the entities on the paths."""
    asked = ((trial, question) for trial in evaluation.trials.values() for question in trial.hits)
    hits = (hit for trial, question in asked for hit in _hits(evaluation, trial, question).values())
    shown = {end for hit in hits for step in hit.path for end in (step.source, step.target)}
    known = entity_names(evaluation.plan.index)
    return {node: known[node] for node in sorted(shown) if node in known}


def _stated(evaluation: Evaluation, names: Mapping[str, str]) -> Mapping[tuple[str, str], Sequence[str]]:
    """What is stated of the entities that the paths join."""
    trials = evaluation.trials.values()
    shown = (step for trial in trials for hits in trial.hits.values() for hit in hits for step in hit.path)
    return stated(evaluation.plan.index, pairs_of(shown), lambda entity: names.get(entity, entity))
