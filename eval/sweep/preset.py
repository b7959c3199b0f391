"""A tuned preset: the best parameters of a sweep, and what it takes to find them again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import yaml

from hopbench.eval.benchmarks.fitted import hashes_of
from hopbench.eval.files import write_atomically
from hopbench.eval.sweep.plan import SweepPlan
from hopbench.eval.sweep.results import Result
from hopbench.eval.trials.version import code_version
from hopbench.eval.types import Benchmark


def write_preset(path: Path, plan: SweepPlan, best: Result, benchmarks: Mapping[str, Benchmark]) -> None:
    """Write the winner's values of the fields that the sweep names; all others keep their documented defaults."""
    objective, spec = plan.content.objective, best.candidate.strategy.spec()
    usual = {name: field.default for name, field in type(best.candidate.strategy).parameters().items()}
    kept = {name: value for name, value in spec.items() if name in plan.named or value != usual[name]}
    content = {
        "parameters": kept,
        "provenance": {
            "sweep": plan.file.name,
            "sweep_digest": hashlib.sha256(plan.file.read_bytes()).hexdigest(),
            "tuned_on": {
                name: {
                    "role": benchmark.role,
                    "questions": len(best.by_dataset[name][0].questions),
                    objective.metric: best.on(name, objective.metric),
                    "digest": benchmark.digest,
                    **hashes_of(benchmark),
                }
                for name, benchmark in benchmarks.items()
            },
            "seed": plan.content.seed,
            "embedder": next(iter(best.records.values())).settings["embedder"],
            "trials": plan.trials,
            "configurations": len(plan.candidates),
            "objective": f"mean of {objective.metric} over the data sets; ties by {objective.also}",
            "value": round(best.mean(objective.metric), 6),
            "code_version": code_version(),
        },
    }
    write_atomically(path, yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120).encode())
