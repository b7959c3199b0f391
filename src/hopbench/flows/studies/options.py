"""The settings of training and of synthetic benchmarks. A module of its own that loads little."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.models import ModelOptions
from hopbench.flows.settings.setting import EXECUTION, MODELS, OUTPUT, STRATEGIES, Settings, flag, values_for
from hopbench.retrieval.support.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from hopbench.eval.synthesize.generate import Recipe


class TrainOptions(Settings):
    """The options of `hopbench train`. `out` is None for the figures alone."""

    datasets: tuple[str, ...] = flag(
        ..., "The sets to learn from, each once: tuning sets only.", values="datasets", name="--dataset"
    )
    out: Path | None = flag(None, "File for the weights; none: only the figures.", group=OUTPUT)
    held_out: Path | None = flag(
        None, "Parquet file for the rank of each gold passage by weights learned from others.", group=OUTPUT
    )
    embedders: tuple[str, ...] = flag(
        ("wordllama",),
        "The embedders to learn with; EMBEDDER=SET,… for one that is too dear for all sets.",
        values="embedders",
        name="--embedder",
    )
    folds: int = flag(5, "Folds of the cross-validation; 0 leaves it out.", ge=0, group=EXECUTION)
    triples: tuple[str, ...] = flag(
        (), "NAME=FILE: ready triples of the set NAME, whose graph with them is also trained on."
    )
    passes: int = flag(2, "How often paths are followed and scored.", ge=1, le=4, group=EXECUTION)
    rounds: int = flag(
        250,
        "Trees on top of the linear score; 0: none.",
        ge=0,
        le=1000,
        group=EXECUTION,
    )
    without: tuple[str, ...] = flag(
        (), "A feature, group of features or kind of edge to leave out; `edge`: all features of edges.", group=EXECUTION
    )


UNFINISHED = ".unfinished"
WRITERS = ("rules", "ragas")
SET_ROLES = ("tune", "report", "halves")


class SynthesizeOptions(GraphOptions):
    """What to make of which corpus; with `check`, the labelled set that synthetic questions are compared with."""

    dataset: str = flag("", "The corpus: a folder of documents or tables, a file, a name.", values="datasets")
    out: Path | None = flag(None, "The folder to write; with --check, a JSON file.", group=OUTPUT)
    count: int = flag(300, "How many questions.", ge=1, name="--questions")
    types: str = flag("all", "Types of questions: bridge,compositional,intersection,comparison,bridge-comparison.")
    role: str = flag(
        "report",
        "What the set is for: tune, report, or halves: one for each, which share no evidence.",
        values="set_roles",
    )
    seed: int = flag(0, "Equal seeds give equal questions.", ge=0)
    force: bool = flag(False, "Write a set that fails its self-check; no run on it names a best label.")
    check: str | None = flag(
        None, "A labelled set: compare what synthetic and its own questions say of the labels.", values="datasets"
    )
    seeds: int = flag(3, "With --check: how many synthetic sets.", ge=1, group=EXECUTION)
    strategies: str = flag("all,all:tuned", "With --check: the labels to compare.", group=STRATEGIES, values="labels")
    by: str = flag(
        "rules",
        "Who writes: rules (with --llm, a model words the rules' paths), or ragas: its generator, with --llm.",
        group=MODELS,
        values="question_writers",
    )
    budget: float | None = None

    @model_validator(mode="after")
    def _one_data_set(self) -> Self:
        if bool(self.dataset) == (self.check is not None):
            raise InputError("name a corpus with --dataset, or a labelled set with --check (one of the two)")
        return self

    @property
    def graph(self) -> GraphOptions:
        """The graph of the corpus, or of the labelled set."""
        return GraphOptions(**{**values_for(GraphOptions, dict(self)), "dataset": self.check or self.dataset})

    @property
    def models(self) -> ModelOptions:
        """The model, where one is named."""
        return ModelOptions(**self.model_settings(), budget=self.budget)

    @property
    def recipe(self) -> Recipe:
        """What the generator is to make. Raises InputError for a type that is none."""
        from hopbench.eval.synthesize.generate import TYPES, Recipe

        named = TYPES if self.types == "all" else tuple(name.strip() for name in self.types.split(",") if name.strip())
        return Recipe(questions=self.count, types=named, seed=self.seed)

    @property
    def folder(self) -> Path:
        """The folder to write. Raises InputError where none is named."""
        if self.out is None:
            raise InputError("--out is missing: name the folder to write")
        return self.out

    def refuse_unusable(self) -> None:
        """Raise InputError for what cannot be made, before any work begins."""
        folder = self.folder
        if self.role not in SET_ROLES:
            raise UnknownNameError("role", self.role, SET_ROLES)
        if self.by not in WRITERS:
            raise UnknownNameError("writer under --by", self.by, WRITERS)
        if self.by == "ragas" and self.llm is None:
            raise InputError("--by ragas asks a language model: name one with --llm MODEL[@URL]")
        if self.budget is not None and self.llm is None:
            raise InputError(
                f"--budget {self.budget:g}: no language model is asked: name one with --llm, or leave it out"
            )
        self.models.check()
        if folder.exists() and (not folder.is_dir() or any(one.name != UNFINISHED for one in folder.iterdir())):
            raise InputError(f"--out {folder}: holds something already: name a folder that does not exist")
