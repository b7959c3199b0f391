"""`hopbench synthesize --check`: synthetic questions beside real ones of the same corpus, over the same labels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hopbench.flows.orchestration.progress import Progress
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.studies.synthesize.make import opened
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.eval.synthesize.recipe import Recipe
    from hopbench.eval.synthesize.trust import Agreement, Floats
    from hopbench.eval.types import BenchmarkQuestion

SCHEMA = "hopbench.synthesize-check/1"


@dataclass(frozen=True)
class CheckOutcome:
    """How synthetic sets of several seeds agree with the real questions, and each label's means (real, synthetic)."""

    benchmark: str
    digest: str
    passages: int
    embedder: str
    agreements: Sequence[Agreement]
    means: dict[str, tuple[float, float]]

    def plain(self) -> dict[str, object]:
        """As JSON."""
        return {"schema": SCHEMA, **asdict(self)}


def check(
    options: GraphOptions, recipe: Recipe, seeds: int, strategies: str, out: Path | None, progress: Progress
) -> CheckOutcome:
    """Make `seeds` synthetic sets from a labelled set's corpus and compare what they say of the labels.

    The real questions are read only after the synthetic ones are made. Raises InputError for a set without gold.
    """
    from hopbench.eval.files import refuse_unwritable, write_atomically
    from hopbench.eval.synthesize.generate import Generator
    from hopbench.eval.synthesize.measure import measured
    from hopbench.eval.synthesize.trust import agreement
    from hopbench.eval.synthesize.write import benchmark_of
    from hopbench.retrieval.strategies.registry import resolve

    if out is not None:
        refuse_unwritable(out)
    labels = resolve(strategies)
    benchmark, index = opened(options, progress)
    asked = [question for question in benchmark.questions if question.gold]
    if not asked:
        raise InputError(
            f"--check {options.dataset}: no question has gold passages, so there is nothing to compare synthetic "
            "questions with: name a labelled set (hopbench check-data shows what a set has)"
        )
    progress.expect((seeds + 1) * len(labels))
    generator = Generator(index)
    sets = [
        benchmark_of(benchmark, generator.evidence, generator.make(replace(recipe, seed=recipe.seed + seed)).questions)
        for seed in range(seeds)
    ]

    def values(questions: Sequence[BenchmarkQuestion], of: str) -> dict[str, Floats]:
        return measured(index, questions, labels, lambda label: progress.begin(f"{label} on {of} questions"))

    real = values(asked, "real")
    synthetic = [values(each.questions, "synthetic") for each in sets]
    means = {
        label: (float(real[label].mean()), float(sum(each[label].mean() for each in synthetic) / seeds))
        for label in labels
    }
    outcome = CheckOutcome(
        benchmark.name,
        benchmark.digest,
        len(benchmark.passages),
        index.embedder.name,
        [agreement(real, each) for each in synthetic],
        means,
    )
    if out is not None:
        write_atomically(out, (json.dumps(outcome.plain(), indent=1, ensure_ascii=False) + "\n").encode())
    return outcome
