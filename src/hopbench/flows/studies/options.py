"""The settings of training and of synthetic benchmarks. A module of its own that loads little."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, model_validator

from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.models import ModelOptions
from hopbench.flows.settings.setting import EXECUTION, MODELS, OUTPUT, STRATEGIES, Flag, Settings, values_for
from hopbench.retrieval.support.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from hopbench.eval.synthesize.generate import Recipe


class TrainOptions(Settings):
    """The options of `hopbench train`. `out` is None for the figures alone."""

    datasets: Annotated[
        tuple[str, ...],
        Field(description="The sets to learn from, each once: tuning sets only."),
        Flag(values="datasets", name="--dataset"),
    ]
    out: Annotated[Path | None, Field(description="File for the weights; none: only the figures."), Flag(OUTPUT)] = None
    held_out: Annotated[
        Path | None,
        Field(description="Parquet file for the rank of each gold passage by weights learned from others."),
        Flag(OUTPUT),
    ] = None
    embedders: Annotated[
        tuple[str, ...],
        Field(description="The embedders to learn with; EMBEDDER=SET,… for one that is too dear for all sets."),
        Flag(values="embedders", name="--embedder"),
    ] = ("wordllama",)
    folds: Annotated[
        int, Field(description="Folds of the cross-validation; 0 leaves it out.", ge=0), Flag(EXECUTION)
    ] = 5
    triples: Annotated[
        tuple[str, ...],
        Field(description="NAME=FILE: ready triples of the set NAME, whose graph with them is also trained on."),
        Flag(),
    ] = ()
    passes: Annotated[
        int, Field(description="How often paths are followed and scored.", ge=1, le=4), Flag(EXECUTION)
    ] = 2
    rounds: Annotated[
        int,
        Field(
            description="Trees on top of the linear score, and four fifths as many second ones; 0: none.", ge=0, le=1000
        ),
        Flag(EXECUTION),
    ] = 250
    without: Annotated[
        tuple[str, ...],
        Field(description="A feature, group of features or kind of edge to leave out; `edge`: all features of edges."),
        Flag(EXECUTION),
    ] = ()


UNFINISHED = ".unfinished"
WRITERS = ("rules", "ragas")
SET_ROLES = ("tune", "report", "halves")


class SynthesizeOptions(GraphOptions):
    """What to make of which corpus; with `check`, the labelled set that synthetic questions are compared with."""

    dataset: Annotated[
        str, Field(description="The corpus: a folder of documents or tables, a file, a name."), Flag(values="datasets")
    ] = ""
    out: Annotated[Path | None, Field(description="The folder to write; with --check, a JSON file."), Flag(OUTPUT)] = (
        None
    )
    count: Annotated[int, Field(description="How many questions.", ge=1), Flag(name="--questions")] = 300
    types: Annotated[
        str,
        Field(description="Types of questions: bridge,compositional,intersection,comparison,bridge-comparison."),
        Flag(),
    ] = "all"
    role: Annotated[
        str,
        Field(
            description="What the set is for: tune, report, or halves: one for each, which share no evidence.",
        ),
        Flag(values="set_roles"),
    ] = "report"
    seed: Annotated[int, Field(description="Equal seeds give equal questions.", ge=0), Flag()] = 0
    check: Annotated[
        str | None,
        Field(description="A labelled set: compare what synthetic and its own questions say of the labels."),
        Flag(values="datasets"),
    ] = None
    seeds: Annotated[int, Field(description="With --check: how many synthetic sets.", ge=1), Flag(EXECUTION)] = 3
    strategies: Annotated[
        str, Field(description="With --check: the labels to compare."), Flag(STRATEGIES, values="labels")
    ] = "all,all:tuned"
    by: Annotated[
        str,
        Field(
            description="Who writes: rules (with --llm, a model words the rules' paths), or ragas: its generator, with "
            "--llm."
        ),
        Flag(MODELS, values="question_writers"),
    ] = "rules"
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
