"""The options of training. A module of its own that loads little, for the command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from hopbench.flows.settings.setting import EXECUTION, OUTPUT, Setting


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The options of `hopbench train`. `out` is None for the figures alone."""

    datasets: Annotated[
        list[str],
        Setting("The sets to learn from, each once: tuning sets only.", values="datasets", flag="--dataset"),
    ]
    out: Annotated[Path | None, Setting("File for the weights; none: only the figures.", group=OUTPUT)] = None
    held_out: Annotated[
        Path | None,
        Setting("Parquet file for the rank of each gold passage by weights learned from others.", group=OUTPUT),
    ] = None
    embedders: Annotated[
        list[str],
        Setting(
            "The embedders to learn with; EMBEDDER=SET,… for one that is too dear for all sets.",
            values="embedders",
            flag="--embedder",
        ),
    ] = field(default_factory=lambda: ["wordllama"])
    folds: Annotated[int, Setting("Folds of the cross-validation; 0 leaves it out.", low=0, group=EXECUTION)] = 5
    triples: Annotated[
        list[str], Setting("NAME=FILE: ready triples of the set NAME, whose graph with them is also trained on.")
    ] = field(default_factory=list)
    passes: Annotated[int, Setting("How often paths are followed and scored.", low=1, high=4, group=EXECUTION)] = 2
    rounds: Annotated[
        int,
        Setting(
            "Trees on top of the linear score; 0: none.",
            low=0,
            high=1000,
            group=EXECUTION,
        ),
    ] = 250
    without: Annotated[
        list[str],
        Setting(
            "A feature, group of features or kind of edge to leave out; `edge`: all features of edges.",
            group=EXECUTION,
        ),
    ] = field(default_factory=list)
