"""The flow `train`: what `hopbench train hoprank` does, from Prefect's pages or from another flow."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from hopbench.flows.api.deployable.definition import deployable
from hopbench.flows.orchestration.artifacts import artifact_key, leave, table
from hopbench.flows.orchestration.progress import NoProgress
from hopbench.flows.orchestration.run_progress import RunProgress
from hopbench.flows.orchestration.steps import PrefectSteps
from hopbench.flows.settings.parameters import parameters_of
from hopbench.flows.studies.train_options import TrainOptions
from hopbench.flows.studies.training import Trained
from hopbench.flows.studies.training import train as run_training

PARAMETERS = parameters_of(TrainOptions)


@deployable("train", PARAMETERS, "train {datasets}")
def train(**values: Any) -> Trained:
    """Learn hoprank's weights from questions with gold passages. Returns their scores on held-out folds and sets."""
    files = {name: Path(values[name]) if values[name] else None for name in ("out", "held_out")}
    options = TrainOptions(**{**values, **files})
    trained = run_training(options, RunProgress(NoProgress()), PrefectSteps())
    rows = [
        {
            "tested on": one["setting"],
            "data set": one["dataset"],
            "embedder": one["embedder"],
            "questions": one["questions"],
            "recall@5": one["recall_at_5"],
            "all_gold@10": one["all_gold_at_10"],
        }
        for one in map(asdict, trained.figures)
    ]
    where = (
        f"{trained.numbers} numbers and {trained.trees} trees learned, written to `{options.out}`"
        if options.out
        else "Figures alone"
    )
    leave(f"# hoprank's weights\n\n{where}\n\n{table(rows)}\n", artifact_key("train"), "Scores on held-out questions")
    if trained.unwritten is not None:
        raise trained.unwritten
    return trained
