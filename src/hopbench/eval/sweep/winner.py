"""A sweep's winner as files: a preset with its provenance, and the flags of a run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from hopbench.eval.files import write_atomically
from hopbench.eval.sweep.plan import SweepPlan
from hopbench.eval.sweep.results import Result
from hopbench.eval.trials.key import code_version
from hopbench.eval.types import Benchmark, hashes_of
from hopbench.retrieval.fitted import FittedOn
from hopbench.retrieval.strategies.label import Label


def write_preset(path: Path, plan: SweepPlan, best: Result, benchmarks: Mapping[str, Benchmark]) -> None:
    """Write the winner's values of the fields that the sweep names; all others have their documented defaults."""
    objective, spec = plan.content.objective, best.candidate.strategy.spec()
    usual = {name: field.default for name, field in type(best.candidate.strategy).parameters().items()}
    parameters = {name: value for name, value in spec.items() if name in plan.named or value != usual[name]}
    content = {
        "parameters": parameters,
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


def best_yaml(plan: SweepPlan, best: Result, tuned_on: Sequence[FittedOn] = ()) -> str:
    """Format the winner for `hopbench run --config`, with the sets that chose it unless its label names them."""
    build, content = best.candidate.build, plan.content
    flags: dict[str, object] = {
        "dataset": plan.report_on or plan.datasets[0],
        "strategies": best.candidate.label,
        "store": content.store,
        "embedder": build.embedder,
        "extractor": build.extractor,
        **build.settings(),
        **({"llm": content.llm} if content.llm else {}),
        **content.asked,
    }
    if content.judge:
        flags |= {
            "judge": content.judge,
            "judge_profile": content.judge_profile,
            "judge_metrics": ",".join(content.judge_metrics) or "all",
            "repeats": content.judge_repeats,
        }
    if tuned_on and Label.of_any(best.candidate.label).changes:
        flags["tuned_on"] = list(map(str, tuned_on))
    metric = content.objective.metric
    chosen_on = ", ".join(dataset.name for dataset in tuned_on) or ", ".join(best.by_dataset)
    comment = f"# The best configuration of {plan.file.name}: {metric} {best.mean(metric):.3f}, chosen on {chosen_on}\n"
    return f"{comment}# hopbench run --config best.yaml --out DIR\n{yaml.safe_dump(flags, sort_keys=False, width=120)}"
